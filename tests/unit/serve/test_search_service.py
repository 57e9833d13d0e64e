"""The plain search service and its HTTP routes, with stand-ins for the retrievers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from polyray.config import load_config
from polyray.errors import ConfigError, InputError
from serve.api import MAX_BODY, create_api
from serve.app import last_error
from serve.messages import SearchRequest
from serve.service import SearchService, UnknownSystem, prepare, snippet_of
from tasks.mqir.config import MqirConfig

ROOT = Path(__file__).resolve().parents[3]


class _Words:
    """A retriever without Java or Ray: shared words, and the ids seen in one thread only."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def retrieve(self, queries: Any, k: int) -> Any:
        import threading

        from polyray.runs import Run

        self.threads.add(threading.get_ident())
        hits = {f"d{n}": 1.0 / n for n in range(1, 121)}
        return Run({q.query_id: list(hits.items())[:k] for q in queries})

    def describe(self) -> dict[str, Any]:
        return {"kind": "words"}


def _config(output: Path, *overrides: str) -> MqirConfig:
    given = [f"output={output}", "languages=[de]", *overrides]
    return load_config(ROOT / "configs" / "quickstart.yaml", given, MqirConfig)


@pytest.fixture
def words() -> _Words:
    return _Words()


@pytest.fixture
def service(tmp_path: Path, words: _Words, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A service whose systems are stand-ins, over documents d1 to d120."""
    from tasks.mqir.systems import Systems

    monkeypatch.setattr(Systems, "retrievers", lambda *_: {"bm25": words, "rrf": words})
    shown = {f"d{n}": (f"title {n}", f"text {n}") for n in range(1, 121)}
    monkeypatch.setattr("serve.service._shown", lambda _store: shown)
    with SearchService(_config(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(service: SearchService) -> Any:
    from starlette.testclient import TestClient

    headers = {"Content-Type": "application/json"}
    return TestClient(create_api(service), raise_server_exceptions=False, headers=headers)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": " \u200b\n"}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "a\ud800"}, "query"),
        ({"query": 7}, "query"),
        ({"query": "a", "k": 0}, "k"),
        ({"query": "a", "k": 101}, "k"),
        ({"query": "a", "k": "5"}, "k"),
        ({"query": "a", "k": True}, "k"),
        ({"query": "a", "system": 3}, "system"),
        ({"query": "a", "depth": 3}, "depth"),
    ],
)
def test_requests_that_are_refused(body: dict[str, Any], place: str, client: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        SearchRequest(**body)
    assert {error["loc"][0] for error in caught.value.errors()} == {place}
    answer = client.post("/search", content=json.dumps(body))
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"{place}: ")


def test_defaults_and_bounds_of_a_request(service: SearchService) -> None:
    answer = service.search(SearchRequest(query="x" * 2000))
    assert (answer.system, answer.k, len(answer.hits)) == ("rrf", 10, 10)
    assert [hit.rank for hit in answer.hits] == list(range(1, 11))
    assert answer.hits[1].model_dump() == {
        "rank": 2,
        "doc_id": "d2",
        "score": 0.5,
        "title": "title 2",
        "snippet": "text 2",
    }
    assert answer.took_ms >= 0
    assert len(service.search(SearchRequest(query="x", k=100, system="bm25")).hits) == 100


def test_an_unknown_system_is_named_with_those_there_are(service: SearchService) -> None:
    with pytest.raises(UnknownSystem, match=r"'tfidf'.*bm25, rrf"):
        service.search(SearchRequest(query="a", system="tfidf"))


def test_all_searches_run_in_one_thread(service: SearchService, words: _Words) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: service.search(SearchRequest(query=f"q{n}")), range(32)))
    assert [answer.query for answer in answers] == [f"q{n}" for n in range(32)]
    assert len(words.threads) == 1


def test_routes(client: Any) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "systems": ["bm25", "rrf"]}
    systems = client.get("/systems").json()
    assert systems["documents"] == "en"
    assert systems["systems"][1] == {"name": "rrf", "default": True, "kind": "words"}
    found = client.post("/search", json={"query": "Küste", "k": 2})
    assert found.status_code == 200
    assert [hit["doc_id"] for hit in found.json()["hits"]] == ["d1", "d2"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 60_000, b"null", b'"a"', b"[1]"])
def test_bodies_that_are_no_request(client: Any, body: bytes) -> None:
    answer = client.post("/search", content=body)
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}


def test_a_body_that_is_not_said_to_be_json_is_refused(client: Any) -> None:
    answer = client.post(
        "/search", content=b'{"query": "a"}', headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["error"]


def test_a_key_that_is_no_text_does_not_break_the_answer(client: Any) -> None:
    answer = client.post("/search", content=b'{"query": "a", "\\ud800": 1}')
    assert answer.status_code == 422


def test_other_errors_are_json_too(client: Any, words: _Words) -> None:
    unknown = client.post("/search", json={"query": "a", "system": "tfidf"})
    assert unknown.status_code == 404
    assert "bm25, rrf" in unknown.json()["error"]
    assert client.get("/nowhere").json() == {"error": "Not Found"}
    wrong = client.get("/search")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    words.retrieve = None  # type: ignore[assignment,method-assign]
    failed = client.post("/search", json={"query": "a"})
    assert failed.status_code == 500
    assert "Traceback" not in failed.text
    assert "NoneType" not in failed.text


@pytest.mark.parametrize("announced", [True, False])
def test_long_bodies_are_refused(client: Any, announced: bool) -> None:
    body = b'{"query": "a"' + b" " * MAX_BODY + b"}"
    pieces = (body[at : at + 8192] for at in range(0, len(body), 8192))
    answer = client.post("/search", content=body if announced else pieces)
    assert answer.status_code == 413
    fits = b'{"query": "a"' + b" " * (MAX_BODY - 14) + b"}"
    assert client.post("/search", content=fits).status_code == 200


def test_inputs_are_checked_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'fr'.*allowed: en, de"):
        prepare(_config(tmp_path), "fr")
    with pytest.raises(InputError, match=r"nowhere\.tsv"):
        prepare(_config(tmp_path, "documents.path=nowhere.tsv"))
    assert prepare(_config(tmp_path))[1] == "en"
    assert prepare(_config(tmp_path, "targets=[native]"))[1] == "de"
    assert not list(tmp_path.iterdir())


def test_snippets() -> None:
    assert snippet_of("") == ""
    assert snippet_of(" two\n words ") == "two words"
    words = "word " * 60
    assert snippet_of(words) == "word " * 39 + "…"
    assert snippet_of("字" * 300) == "字" * 199 + "…"
    assert len(snippet_of("x" * 500)) == 200


def test_the_reason_at_the_end_of_a_traceback() -> None:
    ours = "RuntimeError: Traceback\n  File x\npolyray.errors.InputError: a:1: bad\nb:2: bad\n"
    assert last_error(ours) == "a:1: bad\nb:2: bad"
    assert last_error("Traceback\n  File x\nValueError: odd\n") == "ValueError: odd"
    assert last_error("") == ""
