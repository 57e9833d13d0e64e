"""The live endpoint over HTTP answers what the offline run of the same systems found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from polyray.config import load_config
from polyray.errors import PolyrayError
from polyray.records import Hit
from polyray.runs import Run
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import read_queries
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = (
    "systems=[{kind: bm25}, {kind: dense, name: trigrams, model: 'hashing:256'},"
    " {kind: fusion, name: rrf, of: [bm25, trigrams]}]"
)

JSON = {"Content-Type": "application/json"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> MqirConfig:
    output = tmp_path_factory.mktemp("serve")
    overrides = [
        f"output={output}",
        f"tracking={new_store(output)}",
        "languages=[de]",
        "targets=[english]",
        "native_documents=null",
        SYSTEMS,
    ]
    return load_config(ROOT / "configs" / "quickstart.yaml", overrides, MqirConfig)


@pytest.fixture(scope="module")
def url(config: MqirConfig, ray_session: None, free_port: int) -> Iterator[str]:
    """The address of a service that had to build its indexes."""
    from serve.app import build_app, running

    with running(build_app(config), port=free_port) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Any]:
    import httpx

    with httpx.Client(base_url=url, timeout=60, headers=JSON) as opened:
        yield opened


@pytest.fixture(scope="module")
def offline(config: MqirConfig, url: str) -> Path:
    """The folder of the offline run, which finds the indexes that the service has built."""
    from tasks.mqir.run import run_mqir

    indexes = Path(config.output) / "indexes"
    before = {path: path.stat().st_mtime_ns for path in indexes.rglob("manifest.json")}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        folder = run_mqir(config).folder
    after = {path: path.stat().st_mtime_ns for path in indexes.rglob("manifest.json")}
    assert len(before) == 3
    assert before == after
    return folder


def _ask(client: Any, text: str, system: str) -> list[Hit]:
    body = {"query": text, "system": system, "k": 100}
    hits = client.post("/search", json=body).raise_for_status().json()["hits"]
    return [Hit(hit["doc_id"], hit["score"]) for hit in hits]


@pytest.mark.parametrize("variant", ["native", "mixed"])
def test_answers_equal_the_offline_run(
    client: Any, offline: Path, config: MqirConfig, variant: str
) -> None:
    """Scores within 1e-6 of the offline run's, and the same documents but for near ties.

    The offline run scores 40 queries in one matrix product, the endpoint one: float32 sums differ
    in the last digit, and so may the order of documents closer than that. BM25 is equal.
    """
    runs = {
        name: Run.read(offline / "runs" / f"{name}.en.de.{variant}.trec")
        for name in ("bm25", "trigrams", "rrf")
    }
    for query in read_queries(config).queries["de", variant][:8]:
        live = {name: _ask(client, query.text, name) for name in runs}
        expected = {name: run.get(query.query_id, []) for name, run in runs.items()}
        assert [hit.doc_id for hit in live["bm25"]] == [hit.doc_id for hit in expected["bm25"]]
        for name in ("bm25", "trigrams"):
            scores = [hit.score for hit in expected[name]]
            assert [hit.score for hit in live[name]] == pytest.approx(scores, abs=1e-6)
            by_id = {hit.doc_id: hit.score for hit in expected[name]}
            for hit in live[name]:
                assert hit.score == pytest.approx(by_id.get(hit.doc_id, scores[-1]), abs=1e-6)
        fused = Run.fuse([Run({"q": live[name]}) for name in ("bm25", "trigrams")], k=60, depth=100)
        assert live["rrf"] == fused.top(100)["q"]
        # two documents that change places at rank r move by 1 / ((60 + r) (61 + r)), 2.7e-4 at most
        scores = [hit.score for hit in expected["rrf"]]
        assert [hit.score for hit in live["rrf"]] == pytest.approx(scores, abs=2.7e-4)


def test_health_and_systems(client: Any) -> None:
    assert client.get("/healthz").json() == {
        "status": "ok",
        "systems": ["bm25", "trigrams", "rrf"],
    }
    default = [row["name"] for row in client.get("/systems").json()["systems"] if row["default"]]
    assert default == ["rrf"]


def test_hits_carry_what_is_shown(client: Any) -> None:
    answer = client.post("/search", json={"query": "granite boulders and sand", "k": 1}).json()
    assert (answer["system"], answer["k"]) == ("rrf", 1)
    assert answer["hits"][0]["rank"] == 1
    assert answer["hits"][0]["title"]
    assert 0 < len(answer["hits"][0]["snippet"]) <= 200


def test_bad_requests_and_the_service_lives_on(client: Any) -> None:
    assert client.post("/search", json={"query": " "}).status_code == 422
    assert client.post("/search", content=b"{").status_code == 422
    assert client.post("/search", content=b'{"query": "\\ud800"}').status_code == 422
    unknown = client.post("/search", json={"query": "a", "system": "tfidf"})
    assert (unknown.status_code, "bm25, trigrams, rrf" in unknown.text) == (404, True)
    assert client.get("/nowhere").status_code == 404
    long = client.post("/search", content=b'{"query": "' + b"a" * 70_000 + b'"}')
    assert (long.status_code, set(long.json())) == (413, {"error"})
    assert client.get("/healthz").status_code == 200


def test_concurrent_requests_get_their_own_answers(client: Any, config: MqirConfig) -> None:
    queries = [query.text for query in read_queries(config).queries["de", "mixed"][:16]]

    def ask(text: str) -> list[tuple[str, float]]:
        answer = client.post("/search", json={"query": text}).raise_for_status().json()
        return [(hit["doc_id"], hit["score"]) for hit in answer["hits"]]

    alone = [ask(text) for text in queries]
    start = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ask, queries))
    assert together == alone
    assert time.monotonic() - start < 60


def test_a_taken_port_is_a_plain_error(url: str) -> None:
    from serve.app import running

    port = int(url.rpartition(":")[2])
    with (
        pytest.raises(PolyrayError, match=f"cannot listen on 127.0.0.1:{port}"),
        running(None, port=port),
    ):
        pass
