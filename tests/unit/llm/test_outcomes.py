"""What servers say in ways of their own, and what a store can tell of calls and money."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from polyray.llm.engine import ask
from polyray.llm.limits import RateLimits
from polyray.llm.outcome import Report
from polyray.llm.outcomes import of_body, of_status
from polyray.llm.request import Item, messages
from polyray.llm.settings import Limits, LlmSettings
from polyray.llm.store import Answer, Ended, Sent, Store, Usage
from polyray.llm.work import keys_on_the_dashboard


@pytest.mark.parametrize(
    ("status", "error", "kind", "reason"),
    [
        # the type may say what the code does not
        (429, {"code": "429", "type": "insufficient_quota"}, "stop", "quota"),
        (400, {"message": "Your credit balance is too low"}, "stop", "quota"),
        (400, {"code": 400, "message": "API key not valid. Please pass one."}, "stop", "key"),
        (400, {"message": "The model `x` does not exist"}, "stop", "model"),
        (403, {"message": "input was flagged"}, "answer", ""),
        (400, {"type": "invalid_request_error", "code": "too_long"}, "failed", "too_long"),
        (400, {"type": "invalid_request_error"}, "failed", "invalid_request_error"),
        (400, {"message": "temperature is too high"}, "failed", "bad_request"),
        (400, "a text alone", "failed", "bad_request"),
    ],
)
def test_what_servers_say_in_words(status: int, error: Any, kind: str, reason: str) -> None:
    reply = of_status(status, {}, json.dumps({"error": error}))
    assert (reply.kind, reply.reason) == (kind, reason)


def test_a_filtered_request_is_an_answer_to_keep_that_costs_nothing() -> None:
    body = json.dumps({"error": {"code": "content_filter", "message": "the prompt was filtered"}})
    reply = of_status(400, {}, body)
    assert (reply.finish_reason, reply.content) == ("content_filter", "the prompt was filtered")
    assert (reply.input_tokens, reply.output_tokens, reply.perhaps_paid) == (0, 0, False)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("eos", "eos"),
    ],
)
def test_other_words_for_cut_and_filtered(theirs: str, ours: str) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": theirs}]}
    assert of_body(json.dumps(body)).finish_reason == ours


def test_half_characters_and_absurd_counts() -> None:
    message = {"content": "a\ud800b", "refusal": "\udc00"}
    usage = {"prompt_tokens": 10**30, "completion_tokens": 2}
    choice = {"message": message, "finish_reason": "\ud800"}
    reply = of_body(json.dumps({"choices": [choice], "usage": usage}))
    texts = (reply.content, reply.refusal, reply.finish_reason)
    assert texts == ("a\ufffdb", "\ufffd", "\ufffd")
    assert (reply.input_tokens, reply.output_tokens) == (None, 2)


def stored(path: Path, usd: float | None) -> float:
    """One answered call, one that may have been paid, one to another model; the time now."""
    now = time.time()
    request = json.dumps({"endpoint": "http://a/v1", "model": "m"})
    other = json.dumps({"endpoint": "http://a/v1", "model": "other"})
    with Store(path) as store:
        store.commit(
            sent=[
                Sent(1, "k", "b", 0.25, now - 60),
                Sent(2, "l", "b", 0.25, now - 2),
                Sent(3, "o", "c", 0.25, now - 1),
            ],
            requests=[("b", request), ("c", other)],
        )
        answer = Answer("k", "b", 0, 1, "x", "stop", None, 3000, 100, True, usd, 0.1)
        store.commit(answers=[answer], ended=[Ended(1, "answered", perhaps_paid=True)])
    return now


def test_usage_counts_questions_in_all_runs(tmp_path: Path) -> None:
    stored(tmp_path / "a", 0.5)
    with Store(tmp_path / "a") as store:
        assert store.usage(["b"]) == Usage(2, 1, 3000, 100, 0.5, 0.25)
        assert store.usage(["none"]) == Usage()
        assert store.usage(["b", "c"]) == Usage(3, 1, 3000, 100, 0.5, 0.5)


def test_answers_from_before_there_was_a_price_count(tmp_path: Path) -> None:
    stored(tmp_path / "a", None)
    prices = {"m": (2.0, 10.0)}
    with Store(tmp_path / "a") as store:
        assert store.spent().usd == 0.0
        assert store.spent(prices).usd == pytest.approx(0.007)
        assert store.usage(["b"], prices).usd == pytest.approx(0.007)


def test_calls_of_an_earlier_job_count_for_the_rates(tmp_path: Path) -> None:
    now = stored(tmp_path / "a", None)
    with Store(tmp_path / "a") as store:
        calls = store.recent("http://a/v1", "m", now - 600)
        assert store.recent("http://a/v1", "m", now - 10) == calls[1:]
    assert [(round(now - sent, 3), tokens) for sent, tokens in calls] == [(60, 3100), (2, 0)]
    clock = [0.0]
    rates = RateLimits(Limits(requests_per_minute=6), lambda: clock[0])
    rates.replay([(now - sent, float(tokens)) for sent, tokens in calls])
    # one call in 10.1 s (a hundredth is kept in reserve), the last of them 2 s ago
    assert rates.wait(0) == pytest.approx(8.1, abs=0.05)
    tokens = RateLimits(Limits(tokens_per_minute=6000), lambda: clock[0])
    tokens.replay([(now - sent, float(n)) for sent, n in calls])
    assert tokens.wait(100) == 0
    tokens.replay([(1.0, 3100.0)])
    assert tokens.wait(1) > 29


def test_a_script_by_another_name_is_another_server(tmp_path: Path) -> None:
    for name, text in (("a", "one"), ("b", "two")):
        script = f"answers: [{{responses: [{{content: {text}}}]}}]\n"
        (tmp_path / f"{name}.yaml").write_text(script)
    found = {}
    for name in ("a", "b", "a"):
        provider = {"kind": "scripted", "file": str(tmp_path / f"{name}.yaml")}
        settings = LlmSettings.model_validate({"provider": provider})
        asked = ask([Item("x", messages("q"))], settings, tmp_path / "s.sqlite")
        found[name] = (asked["x"].parsed, asked["x"].stored)
    assert found == {"a": ("one", True), "b": ("two", False)}
    assert asked.report.usage.calls == 1


def test_the_progress_line_has_rate_cost_and_failures() -> None:
    report = Report(total=9, calls=30, seconds=10.0, usd=0.01234, priced=True)
    assert report.line() == "3.0 calls/s, $0.0123"
    report.missing, report.failures = {"refusal": 2}, {"rate_limited": 3, "timeout": 1}
    assert report.line() == "3.0 calls/s, $0.0123, 2 missing, 4 calls failed"
    assert Report().line() == "0.0 calls/s"


@pytest.mark.parametrize(
    ("told", "notes"),
    [
        ({"runtime_env": {"env_vars": {"MY_KEY": "sk-1", "POLYRAY_DATA": "x"}}}, 1),
        ({"runtime_env": {"env_vars": {"POLYRAY_DATA": "x"}}}, 0),
        ({"runtime_env": None, "metadata": {}}, 0),
        (None, 0),
    ],
)
def test_a_key_that_was_submitted_to_ray_is_told_of(
    told: object, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    if told is not None:
        monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(told))
    provider = {"kind": "openai", "base_url": "http://h/v1", "model": "m", "api_key_env": "MY_KEY"}
    scripted = {"kind": "scripted", "file": "answers.yaml"}
    engines = [LlmSettings.model_validate({"provider": each}) for each in (provider, scripted)]
    found = keys_on_the_dashboard(engines)
    assert len(found) == notes
    assert all(note.startswith("MY_KEY came") and "sk-1" not in note for note in found)
