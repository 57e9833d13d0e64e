"""The LLM engine over real HTTP, against a scripted OpenAI-compatible server on the loopback."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from polyray.errors import BudgetExceeded, MissingPrerequisite, PolyrayError
from polyray.llm.engine import Asked, answers, ask, estimate
from polyray.llm.outcome import JobStopped
from polyray.llm.parsing import ParseError
from polyray.llm.request import Item, messages
from polyray.llm.scripted import Script
from polyray.llm.server import ScriptedServer, Seen, served
from polyray.llm.settings import LlmSettings
from polyray.llm.store import Answer, Store
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
OK = {"content": "1. {user}", "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


@contextmanager
def serving(script: dict[str, Any], port: int = 0) -> Iterator[tuple[ScriptedServer, str]]:
    server = ScriptedServer(Script.model_validate(script))
    with served(server.application(), port) as url:
        yield server, url


def settings_for(url: str, **more: Any) -> LlmSettings:
    provider = {"kind": "openai", "base_url": url, "model": "m", "api_key_env": None}
    provider |= more.pop("provider", {})
    return LlmSettings.model_validate({"provider": provider, **more})


def items_of(count: int, text: str = "text") -> list[Item]:
    return [Item(f"q{n}", messages(f"{text} {n}"), prompt="test@1") for n in range(count)]


def counted(asked: Asked) -> Counter[str]:
    return Counter(outcome.reason or "ok" for outcome in asked.values())


# The cases of retries.


def scenario(cases: Path, name: str) -> dict[str, Any]:
    lines = (cases / "H16_llm_retries" / "scenarios.jsonl").read_text().splitlines()
    found = next(json.loads(line) for line in lines if f'"{name}"' in line)
    return {"answers": [{"responses": found.get("responses") or found["responses_each"]}]}


def expected(cases: Path) -> Any:
    return json.loads((cases / "H16_llm_retries" / "expected.json").read_text())


def run_scenario(
    cases: Path, tmp_path: Path, name: str, count: int = 1
) -> tuple[ScriptedServer, Asked]:
    limits = expected(cases)["settings"]
    with serving(scenario(cases, name)) as (server, url):
        settings = settings_for(
            url,
            provider={"timeout_s": limits["request_timeout_s"] / 5},
            retries={"attempts": limits["max_attempts"], "first_wait_s": 0.05},
            parameters={"max_tokens": 8},
        )
        try:
            return server, ask(items_of(count), settings, tmp_path / "a.sqlite")
        except PolyrayError as error:
            error.server = server  # type: ignore[attr-defined]
            raise


def test_retry_after_is_waited_for(cases: Path, tmp_path: Path) -> None:
    right = expected(cases)["a_retry_after"]
    server, asked = run_scenario(cases, tmp_path, "a_retry_after")
    assert len(server.seen) == right["calls"]
    assert server.seen[1].came - server.seen[0].came >= right["min_wait_s"]
    assert asked["q0"].parsed == "1. x"
    assert asked["q0"].calls == 2


@pytest.mark.parametrize(
    ("name", "says"), [("b_quota", "quota is spent"), ("e_auth", "API key is refused")]
)
def test_job_stops_at_once(cases: Path, tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(JobStopped, match=says) as caught:
        run_scenario(cases, tmp_path, name)
    assert len(caught.value.server.seen) == expected(cases)[name]["calls"]  # type: ignore[attr-defined]


def test_server_errors_pass(cases: Path, tmp_path: Path) -> None:
    server, asked = run_scenario(cases, tmp_path, "c_server")
    assert [seen.status for seen in server.seen] == [500, 503, 200]
    assert asked["q0"].ok


def test_bad_request_fails_alone(cases: Path, tmp_path: Path) -> None:
    server, asked = run_scenario(cases, tmp_path, "d_bad_request")
    assert len(server.seen) == expected(cases)["d_bad_request"]["calls"]
    assert (asked["q0"].status, asked["q0"].reason) == ("missing", "context_length_exceeded")


def test_timeout_is_tried_again(cases: Path, tmp_path: Path) -> None:
    start = time.monotonic()
    server, asked = run_scenario(cases, tmp_path, "f_timeout")
    assert time.monotonic() - start < expected(cases)["f_timeout"]["max_wall_s"]
    assert len(server.seen) == expected(cases)["f_timeout"]["calls"]
    assert asked["q0"].ok


def test_cut_answer_is_asked_once_more_with_more_room(cases: Path, tmp_path: Path) -> None:
    server, asked = run_scenario(cases, tmp_path, "g_length")
    assert len(server.seen) == 2
    outcome = asked["q0"]
    assert (outcome.status, outcome.reason, outcome.parsed) == ("missing", "truncated", None)
    assert outcome.raw == "1. hal"
    with Store(tmp_path / "a.sqlite") as store:
        rows = store._db.execute("SELECT retake, content FROM answers ORDER BY retake").fetchall()
    assert rows == [(0, "1. hal"), (1, "1. hal")]


def test_storm_multiplies_nothing(cases: Path, tmp_path: Path) -> None:
    server, asked = run_scenario(cases, tmp_path, "h_storm", count=16)
    assert len(server.seen) == expected(cases)["h_storm"]["calls"]
    assert counted(asked) == {"ok": 16}


def test_unknown_model_stops_all_and_keeps_what_was_answered(tmp_path: Path) -> None:
    gone = {"status": 404, "error_code": "model_not_found"}
    script = {
        "delay_s": 0.02,
        "answers": [{"match": "text 30", "responses": [gone]}, {"responses": [OK]}],
    }
    with serving(script) as (server, url):
        settings = settings_for(url, limits={"in_flight": 4})
        with pytest.raises(JobStopped, match="not known there"):
            ask(items_of(200), settings, tmp_path / "a.sqlite")
        answered = sum(seen.answered for seen in server.seen)
        assert len(server.seen) <= 35
        again = ask(items_of(30), settings, tmp_path / "a.sqlite")
        assert again.report.stored == 30
        assert sum(seen.answered for seen in server.seen) == answered


# The storm.


def storm_settings(url: str, **more: Any) -> LlmSettings:
    """A time-out that a busy machine does not reach by itself: such an answer is paid twice."""
    return settings_for(
        url,
        provider={"timeout_s": 5.0},
        limits={"in_flight": 48, "requests_per_minute": 12_000},
        retries={"attempts": 20, "first_wait_s": 0.05, "resamples": 1},
        **more,
    )


STORM = {
    "delay_s": 0.02,
    "answers": [{"responses": [OK]}],
    "faults": {
        "seed": 5,
        "rate_limited": 0.3,
        "retry_after_s": 0.2,
        "server_error": 0.1,
        "hang": 0.05,
        "cut": 0.05,
        "refusal": 0.03,
    },
}


@pytest.mark.slow
def test_storm_of_faults_over_2000_items(tmp_path: Path, ray_session: None) -> None:
    items = items_of(2000)
    with serving(STORM) as (server, url):
        asked = ask(items, storm_settings(url, actors=2), tmp_path / "a.sqlite")
        first = len(server.seen)
        again = ask(items, storm_settings(url), tmp_path / "a.sqlite")
    statuses = Counter(seen.status for seen in server.seen[:first])
    # The faults did land.
    assert statuses[429] > 0.25 * first
    assert statuses[500] > 0.05 * first
    assert asked.report.failures["timeout"] > 0.03 * first
    assert list(asked) == [item.id for item in items]
    reasons = counted(asked)
    assert set(reasons) <= {"ok", "truncated", "refusal"}
    # Twice cut or refused: about the square of the shares.
    assert 0 < sum(reasons.values()) - reasons["ok"] < 40
    assert all(outcome.raw for outcome in asked.values())
    # Each key is answered, and paid, once; nothing that was answered is asked again.
    paid = Counter(seen.key for seen in server.seen if seen.answered)
    assert set(paid.values()) == {1}
    assert asked.report.calls == first
    assert again.report.stored >= reasons["ok"]
    assert {k: v.parsed for k, v in asked.items() if v.ok}.items() <= {
        k: v.parsed for k, v in again.items()
    }.items()
    assert server.most_at_once <= 48
    check_rate(server.seen[:first], went_out(tmp_path / "a.sqlite", url)[:first], 12_000)


def went_out(store: Path, url: str) -> list[float]:
    with Store(store) as kept:
        return [sent for sent, _ in kept.recent(url, "m", 0.0)]


def closer(seen: list[Seen], sent: list[float]) -> float:
    """How much closer together calls arrived than they went out, in seconds: a machine's delays."""
    assert len(seen) == len(sent)
    delays = [one.came - out for one, out in zip(seen, sent, strict=True)]
    return max(delays) - min(delays)


def check_rate(
    seen: list[Seen], sent: list[float], per_minute: float, tokens: bool = False
) -> None:
    """No window holds more than the rate allows and one second's worth at once."""
    arrivals = [(one.came, one.tokens if tokens else 1) for one in seen]
    late = closer(seen, sent)
    for window in (0.5, 1.0, 2.0, 5.0):
        allowed = per_minute / 60 * (window + 1.0 + late) + 1
        start = total = 0
        for came, amount in arrivals:
            total += amount
            while came - arrivals[start][0] > window:
                total -= arrivals[start][1]
                start += 1
            assert total <= allowed, f"{total} in {window} s, {allowed} allowed"


def test_limits_hold_at_the_server_and_are_used(tmp_path: Path) -> None:
    with serving({"delay_s": 0.05, "answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(url, limits={"in_flight": 64, "requests_per_minute": 1200})
        asked = ask(items_of(100), settings, tmp_path / "a.sqlite")
    assert counted(asked) == {"ok": 100}
    sent = went_out(tmp_path / "a.sqlite", url)
    check_rate(server.seen, sent, 1200)
    span = server.seen[-1].came - server.seen[0].came
    # The first second's worth goes at once; the other 80 at 20 a second.
    assert span >= 80 / 20 - closer(server.seen, sent)
    assert span <= 3 * 80 / 20, "the limit is used; how well, benchmarks/bench_llm.py measures"
    assert server.most_at_once <= 64


def test_token_limit_holds_at_the_server(tmp_path: Path) -> None:
    with serving({"delay_s": 0.05, "answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(
            url,
            limits={"in_flight": 64, "tokens_per_minute": 60_000},
            parameters={"max_tokens": 20},
        )
        asked = ask(items_of(300), settings, tmp_path / "a.sqlite")
    assert counted(asked) == {"ok": 300}
    check_rate(server.seen, went_out(tmp_path / "a.sqlite", url), 60_000, tokens=True)


def test_server_that_turns_all_away_is_left_alone(tmp_path: Path) -> None:
    """A limit that the settings do not know: most calls are turned away, so all wait."""
    limit = {"status": 429, "headers": {"retry-after": "0.5"}}
    with serving({"answers": [{"responses": [limit, OK]}]}) as (server, url):
        settings = settings_for(url, limits={"in_flight": 32})
        asked = ask(items_of(150), settings, tmp_path / "a.sqlite")
        assert counted(asked) == {"ok": 150}
        start = server.seen[0].came
        assert sum(seen.came - start < 0.45 for seen in server.seen) <= 80


# Kills.

CHILD = """
import json, sys
from polyray.llm.engine import ask
from polyray.llm.request import Item, messages
from polyray.llm.settings import LlmSettings

url, store, out, actors = sys.argv[1:]
settings = LlmSettings.model_validate({
    "provider": {"kind": "openai", "base_url": url, "model": "m", "api_key_env": None},
    "limits": {"in_flight": 16}, "retries": {"first_wait_s": 0.02, "attempts": 12},
    "prices": {"m": {"input": 1.0, "output": 2.0}}, "parameters": {"max_tokens": 10},
    "actors": int(actors),
})
items = [Item(f"q{n}", messages(f"text {n}"), prompt="test@1") for n in range(500)]
asked = ask(items, settings, store)
rows = {name: [o.status, o.parsed, o.reason, o.raw] for name, o in asked.items()}
with open(out, "w") as handle:
    json.dump({"rows": rows, "usd": asked.report.usd,
               "usd_unanswered": asked.report.usd_unanswered}, handle)
"""
KILLED_SCRIPT = {
    "delay_s": 0.05,
    "answers": [{"responses": [OK]}],
    "faults": {"seed": 3, "server_error": 0.05, "cut": 0.2, "refusal": 0.1},
}


def child(url: str, folder: Path, actors: int = 0) -> subprocess.Popen[bytes]:
    paths = [str(ROOT / "platform"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    store, out = str(folder / "a.sqlite"), str(folder / "out")
    command = [sys.executable, "-c", CHILD, url, store, out, str(actors)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, process_group=0)


@pytest.mark.slow
def test_killed_and_started_again_it_is_the_same_data_set(tmp_path: Path) -> None:
    """Ten kills at random points; one of the killed jobs sends from Ray actors."""
    kills, with_ray, at_once = 10, 4, 16
    draw = random.Random(11)
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    with serving(KILLED_SCRIPT) as (server, url):
        assert child(url, tmp_path / "whole").wait(120) == 0
        whole = json.loads((tmp_path / "whole" / "out").read_text())
        calls = len(server.seen)
    # The same address: it is part of every key, and the faults are drawn by key.
    port = int(url.rpartition(":")[2].partition("/")[0])
    with serving(KILLED_SCRIPT, port) as (server, url):
        landed = 0
        for number in range(kills):
            before = len(server.seen)
            process = child(url, tmp_path / "killed", 2 if number == with_ray else 0)
            due = before + draw.randint(1, max(2, calls // (kills + 1)))
            while process.poll() is None and len(server.seen) < due:
                time.sleep(0.002)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                landed += 1
            process.stderr.close()  # type: ignore[union-attr]
            assert landed == number + 1, "a kill came too late"
        with Store(tmp_path / "killed" / "a.sqlite") as store:
            # Ray actors hold one more in reserve.
            assert store.unanswered() <= at_once * kills + 1
        last = child(url, tmp_path / "killed")
        assert last.wait(120) == 0, last.stderr.read()  # type: ignore[union-attr]
    killed = json.loads((tmp_path / "killed" / "out").read_text())
    assert killed["rows"] == whole["rows"]
    assert {row[0] for row in whole["rows"].values()} == {"ok", "missing"}
    paid = Counter(seen.key for seen in server.seen if seen.answered)
    assert sum(paid.values()) - len(paid) <= at_once * kills
    # The bill: what is known, and at most the bound for calls that were under way when killed.
    bill = sum(1 for seen in server.seen if seen.answered)
    known = killed["usd"] / (whole["usd"] / len(paid))
    assert known == pytest.approx(len(paid), rel=0.02)
    assert bill - len(paid) <= at_once * kills
    if bill > len(paid):
        assert killed["usd_unanswered"] > 0


# Money.


def test_bill_stays_below_the_cap_with_32_in_parallel(tmp_path: Path) -> None:
    responses = [
        {
            "match": f"size {size}!",
            "responses": [
                {
                    "content": "x",
                    "usage": None
                    if size == 7
                    else {"prompt_tokens": 10, "completion_tokens": 5 * size},
                }
            ],
        }
        for size in range(1, 21)
    ]
    items = [Item(f"q{n}", messages(f"{n}: size {n % 20 + 1}!")) for n in range(600)]
    with serving({"delay_s": 0.1, "answers": responses}) as (server, url):
        settings = settings_for(
            url,
            parameters={"max_tokens": 100},
            limits={"in_flight": 32},
            prices={"m": {"input": 1.0, "output": 10.0}},
            budget={"usd": 0.15},
        )
        with pytest.raises(BudgetExceeded, match="budget does not reach"):
            ask(items, settings, tmp_path / "a.sqlite")
        tokens = [seen.tokens for seen in server.seen]
        bill = sum(10 * 1.0 + (t - 10 if t else 35) * 10.0 for t in tokens) / 1e6
        assert server.most_at_once > 16
        assert bill <= 0.15
        # It is not given away either: no further call of the largest size would have fitted.
        assert bill >= 0.15 - 0.025
        before = len(server.seen)
        with pytest.raises(BudgetExceeded):
            ask(items, settings, tmp_path / "a.sqlite")
        assert len(server.seen) - before <= 5


def test_budget_of_requests(tmp_path: Path) -> None:
    with serving({"answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(url, budget={"requests": 10})
        with pytest.raises(BudgetExceeded, match="10 calls of"):
            ask(items_of(20), settings, tmp_path / "a.sqlite")
        assert len(server.seen) == 10
        assert counted(ask(items_of(10), settings, tmp_path / "a.sqlite")) == {"ok": 10}
        assert len(server.seen) == 10


# Hostile servers.


@cache
def bomb() -> bytes:
    """A gigabyte of spaces in a megabyte, made a piece at a time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    piece = b" " * 10_000_000
    return b"".join(packer.compress(piece) for _ in range(100)) + packer.flush()


def hostile(kind: str) -> Any:
    from aiohttp import web

    good = json.dumps({"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]})

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "bad" not in body["messages"][-1]["content"]:
            return web.Response(text=good, content_type="application/json")
        if kind == "cut":
            return web.Response(text=good[:40], content_type="application/json")
        if kind == "error":
            return web.json_response({"error": {"message": "out of order"}})
        if kind == "bomb":
            return web.Response(body=bomb(), headers={"Content-Encoding": "gzip"})
        if kind == "status":
            return web.Response(status=500, text="x" * 30_000_000)
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"x" * (1_000_000 if kind == "huge" else 1))
            if kind == "slow":
                import asyncio

                await asyncio.sleep(0.05)
        return response

    app = web.Application(client_max_size=10**9)
    app.router.add_post("/v1/chat/completions", answer)
    return app


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("cut", "bad_response"),
        ("error", "bad_response"),
        ("bomb", "too_long"),
        ("huge", "too_long"),
        ("slow", "timeout"),
        ("status", "too_long"),
    ],
)
def test_hostile_answers_are_errors_of_their_row(kind: str, reason: str, tmp_path: Path) -> None:
    import resource

    bomb()
    with served(hostile(kind)) as url:
        patience = 0.5 if kind == "slow" else 20.0
        settings = settings_for(
            url, provider={"timeout_s": patience}, retries={"attempts": 2, "first_wait_s": 0.01}
        )
        texts = ["good 1", "bad 1", "good 2", "bad 2"]
        items = [Item(text, messages(text)) for text in texts]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        asked = ask(items, settings, tmp_path / "a.sqlite")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert [asked[text].reason for text in texts] == ["", reason, "", reason]
    assert [asked[text].parsed for text in texts] == ["fine", None, "fine", None]
    # KiB; the server shares this process. Each bad answer is 1,000 MB or 30 MB.
    assert grown < 200_000


def test_nobody_there(tmp_path: Path) -> None:
    settings = settings_for("http://127.0.0.1:9/v1", retries={"attempts": 2, "first_wait_s": 0.01})
    asked = ask(items_of(2), settings, tmp_path / "a.sqlite")
    assert counted(asked) == {"connection": 2}
    assert asked.report.usd_unanswered == 0


# Keys, samples, parsers.


def test_equal_requests_share_one_call(cases: Path, tmp_path: Path) -> None:
    folder = cases / "H17_llm_cache_key"
    right = json.loads((folder / "expected.json").read_text())
    asked_for = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    one, other = ({"delay_s": 0.01, "answers": [{"responses": [OK]}]} for _ in range(2))
    calls = 0
    with serving(one) as (first, url), serving(other) as (second, other_url):
        for row in asked_for:
            mine = other_url if "other" in row["base_url"] else url
            names = ("temperature", "max_tokens", "seed")
            settings = settings_for(
                mine,
                provider={"model": row["model"]},
                parameters={name: row[name] for name in names},
            )
            item = Item(row["id"], messages(row["user"], row["system"]))
            asked = ask([item], settings, tmp_path / "a.sqlite")
            if row["id"] in right["served_from_cache"]:
                assert asked.report.calls == 0
                assert asked[row["id"]].stored
            calls += asked.report.calls
        assert calls == len(first.seen) + len(second.seen) == right["server_calls"]


@pytest.mark.parametrize(
    "bad",
    [
        {"content": "1. hal", "finish_reason": "length"},
        {"content": None, "refusal": "I will not."},
        {"status": 500},
    ],
)
def test_failures_are_never_served_from_the_store(bad: dict[str, Any], tmp_path: Path) -> None:
    with serving({"answers": [{"responses": [bad, OK]}]}) as (server, url):
        settings = settings_for(url, retries={"attempts": 1, "resamples": 0})
        same = messages("the same")
        items = [Item("r1", same), Item("r2", same)]
        asked = ask(items, settings, tmp_path / "a.sqlite")
        assert [outcome.ok for outcome in asked.values()] == [False, True]
        assert len(server.seen) == 2
        assert ask(items, settings, tmp_path / "a.sqlite")["r1"].ok
        assert len(server.seen) == 2


def test_five_samples_are_five_calls_and_replayed(tmp_path: Path) -> None:
    answers = [{"responses": [{"content": f"answer {n}"} for n in range(5)]}]
    items = [Item(f"q#{n}", messages("one"), sample=n) for n in range(5)]
    with serving({"answers": answers}) as (server, url):
        settings = settings_for(url, limits={"in_flight": 1})
        first = ask(items, settings, tmp_path / "a.sqlite")
        again = ask(items, settings, tmp_path / "a.sqlite")
    assert len(server.seen) == 5
    assert {outcome.parsed for outcome in first.values()} == {f"answer {n}" for n in range(5)}
    assert [o.parsed for o in first.values()] == [o.parsed for o in again.values()]


def test_unparsable_answers_are_kept_and_asked_again(tmp_path: Path) -> None:
    def number(item: Item, answer: Answer) -> int:
        try:
            return int(answer.content or "")
        except ValueError:
            raise ParseError("not_integer", "no number") from None

    good = {"responses": [{"content": "maybe 7"}, {"content": "7"}]}
    answers = [{"match": "a", "responses": [{"content": "seven"}]}, good]
    with serving({"answers": answers}) as (server, url):
        settings = settings_for(url, retries={"resamples": 2})
        items = [Item("x", messages("a")), Item("y", messages("b"))]
        asked = ask(items, settings, tmp_path / "a.sqlite", parse=number)
        assert (asked["x"].status, asked["x"].reason, asked["x"].raw) == (
            "missing",
            "not_integer",
            "seven",
        )
        assert asked["y"].parsed == 7
        assert len(server.seen) == 5
        # A better parser needs no call: the raw texts are there.
        lenient = ask(items, settings, tmp_path / "a.sqlite", parse=lambda _, a: a.content)
        assert len(server.seen) == 5
        assert lenient["x"].parsed == "seven"


def test_a_parser_that_breaks_loses_no_answer(tmp_path: Path) -> None:
    with serving({"delay_s": 0.05, "answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(url, limits={"in_flight": 8})
        with pytest.raises(ZeroDivisionError):
            ask(items_of(50), settings, tmp_path / "a.sqlite", parse=lambda item, _: 1 // 0)
        answered = len(server.seen)
        assert answered <= 24
        again = ask(items_of(50), settings, tmp_path / "a.sqlite")
        assert again.report.stored == answered
        assert len(server.seen) == 50


def test_leaving_early_keeps_what_came(tmp_path: Path) -> None:
    with serving({"delay_s": 0.05, "answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(url, limits={"in_flight": 8})
        for number, _ in enumerate(answers(items_of(100), settings, tmp_path / "a.sqlite")):
            if number == 20:
                break
        seen = len(server.seen)
        assert seen < 60
        again = ask(items_of(100), settings, tmp_path / "a.sqlite")
        assert again.report.stored == seen
        assert len(server.seen) == 100


def test_progress_and_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import mlflow

    from polyray import progress as module
    from polyray.tracking import Tracker

    uri, before = new_store(tmp_path), mlflow.get_tracking_uri()
    with serving({"answers": [{"responses": [OK]}]}) as (_, url):
        settings = settings_for(
            url, trace=True, prices={"m": {"input": 1, "output": 1}}, parameters={"max_tokens": 9}
        )
        with (
            Tracker("llm", "run", tracking_uri=uri) as tracker,
            module.Progress("asking") as shown,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(module, "_EVERY", 0.0)
            ask(
                items_of(3),
                settings,
                tmp_path / "a.sqlite",
                progress=lambda report: shown.update("calls", report.done, report.total, "well"),
                tracker=tracker,
            )
            traces = tracker.client.search_traces(locations=[tracker.experiment_id])
            assert mlflow.get_tracking_uri() == before
    assert "asking: calls 3/3, well" in capsys.readouterr().err
    assert len(traces) == 3
    spans = [trace.data.spans[0] for trace in traces]
    assert {span.outputs["content"] for span in spans} == {f"1. text {n}" for n in range(3)}
    assert all(span.inputs["model"] == "m" for span in spans)
    assert all(len(span.attributes["polyray.key"]) == 64 for span in spans)


# Actors.


def test_actor_that_dies_is_replaced(tmp_path: Path, ray_session: None) -> None:
    import threading

    import psutil

    with serving({"delay_s": 0.3, "answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(
            url, limits={"in_flight": 20}, retries={"first_wait_s": 0.02}, actors=2
        )

        def kill() -> None:
            while len(server.seen) < 60:
                time.sleep(0.01)
            below = psutil.Process().children(recursive=True)
            mine = [one for one in below if "ray::LlmActor" in " ".join(one.cmdline())]
            mine[0].kill()

        killer = threading.Thread(target=kill)
        killer.start()
        asked = ask(items_of(200), settings, tmp_path / "a.sqlite")
        killer.join()
    assert counted(asked) == {"ok": 200}
    assert 0 < asked.report.failures["worker_died"] <= 20
    assert len(server.seen) <= 200 + 20


# Secrets.

CANARY = "sk-canary-5f1e9a7c3b"


def test_key_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from aiohttp import web

    seen: list[str] = []
    told_of_this_machine: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent = request.headers["Authorization"]
        seen.append(sent)
        told_of_this_machine.extend(n for n in request.headers if n.lower().startswith("x-stain"))
        text = (await request.json())["messages"][-1]["content"]
        if "refused" in text:
            told = {"error": {"message": f"Incorrect API key provided: {sent}", "code": "x"}}
            return web.json_response(told, status=401)
        if "bad" in text:
            return web.json_response({"error": {"message": sent}}, status=400)
        message = {"content": f"your key is {sent}"}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    monkeypatch.setenv("MY_KEY", CANARY)
    caplog.set_level("DEBUG")
    shown = []
    with served(app) as url:
        settings = settings_for(url, provider={"api_key_env": "MY_KEY"})
        items = [Item("a", messages("good")), Item("b", messages("bad"))]
        asked = ask(items, settings, tmp_path / "run" / "a.sqlite")
        shown += [repr(asked), repr(asked.report), repr(settings), settings.model_dump_json()]
        with pytest.raises(JobStopped) as caught:
            ask([Item("c", messages("refused"))], settings, tmp_path / "run" / "a.sqlite")
        shown += [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__)]
        from polyray.llm.client import OpenAIWorker

        shown.append(repr(OpenAIWorker(settings.provider)))  # type: ignore[arg-type]
    # The fault landed: the server did get the key, and did send it back.
    assert seen == [f"Bearer {CANARY}"] * 3
    assert not told_of_this_machine
    assert "***" in (asked["a"].raw or "")
    assert "***" in asked["b"].detail
    shown.append(caplog.text)
    assert not [text for text in shown if CANARY in text]
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


def test_missing_key_is_named_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    settings = settings_for("http://127.0.0.1:9/v1", provider={"api_key_env": "NO_SUCH_KEY"})
    with pytest.raises(MissingPrerequisite, match="NO_SUCH_KEY"):
        ask(items_of(1), settings, tmp_path / "a.sqlite")


def test_estimate_counts_what_is_missing(tmp_path: Path) -> None:
    with serving({"answers": [{"responses": [OK]}]}) as (server, url):
        settings = settings_for(
            url, parameters={"max_tokens": 50}, prices={"m": {"input": 1.0, "output": 2.0}}
        )
        ask(items_of(4), settings, tmp_path / "a.sqlite")
        told = estimate(items_of(10), settings, tmp_path / "a.sqlite")
        assert (told.requests, told.stored) == (6, 4)
        assert told.output_tokens == 300
        assert 0 < told.usd < told.usd_at_most  # type: ignore[operator]
        assert len(server.seen) == 4


def test_second_writer_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite"), pytest.raises(PolyrayError, match="another job"):
        Store(tmp_path / "a.sqlite")


def test_scripted_provider_says_what_the_server_says(tmp_path: Path) -> None:
    script = {
        "answers": [
            {"match": "text 1", "responses": [{"status": 503}, OK]},
            {"match": "text 2", "responses": [{"status": 400, "error_code": "no"}]},
            {"match": "text 3", "responses": [{"hang_s": 9}, OK]},
            {"match": "text 4", "responses": [{"content": "x", "finish_reason": "length"}]},
            {"match": "text 5", "responses": [{"content": None, "refusal": "No."}]},
            {"match": "text 6", "responses": [{"body": "{"}]},
            {"responses": [OK]},
        ]
    }
    (tmp_path / "script.json").write_text(json.dumps(script))
    retries = {"attempts": 2, "first_wait_s": 0.01}
    provider = {"kind": "scripted", "file": str(tmp_path / "script.json"), "timeout_s": 0.5}
    scripted = LlmSettings.model_validate({"provider": provider, "retries": retries})
    with serving(script) as (_, url):
        http = settings_for(url, provider={"timeout_s": 0.5}, retries=retries)
        one = ask(items_of(8), scripted, tmp_path / "scripted.sqlite")
        other = ask(items_of(8), http, tmp_path / "http.sqlite")
    assert {k: replace(v, key="") for k, v in one.items()} == {
        k: replace(v, key="") for k, v in other.items()
    }
    assert counted(one) == {"ok": 4, "no": 1, "truncated": 1, "refusal": 1, "bad_response": 1}
