"""What every retriever promises; a new kind joins by one line in ``KINDS``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from polyray.collections.store import DocumentStore
from polyray.indexes.bm25 import Bm25Index
from polyray.indexes.dense import DenseIndex
from polyray.indexes.encode import EncodeSettings, load_worker
from polyray.indexes.manifest import write_manifest
from polyray.indexes.plaid.build import PlaidSettings, build_plaid, map_here
from polyray.indexes.plaid.search import PlaidIndex, PlaidSearch
from polyray.indexes.shards import ShardTask
from polyray.models.dense import HashingEncoder
from polyray.models.late import load_late
from polyray.models.settings import EncoderSettings, LateSettings
from polyray.records import Document, Query
from polyray.retrieve import Retriever
from polyray.retrieve.kinds import Bm25Retriever, DenseRetriever, FusionRetriever, LateRetriever

DOCUMENTS = [
    Document("007", "The harbour ferry leaves every hour."),
    Document("7", "A small library opened near the park."),
    Document("новость_3", "Паром уходит каждый час."),
    Document("a#b", "Rain is expected in the valley tomorrow.", "Weather"),
    Document("0", "The bakery sells rye bread on Mondays."),
]


def bm25(folder: Path) -> Retriever:
    Bm25Index.build(folder / "bm25", DOCUMENTS, code="en")
    return Bm25Retriever(Bm25Index(folder / "bm25"))


def dense(folder: Path) -> Retriever:
    store = DocumentStore.build(folder / "store", DOCUMENTS, "x", small=2)
    settings = EncodeSettings(EncoderSettings(model="hashing:64"), "words", 180, 90)
    worker = load_worker(settings)
    out = folder / "dense"
    for number, shard in enumerate(store.manifest["shards"]):
        path = str(store.folder / "shards" / shard["file"])
        worker(ShardTask(number, path, shard["sha256"], str(out)))
    windows = {"length": 180, "stride": 90, "tokenizer": "words"}
    write_manifest(out, "dense", {"passages": windows}, shards=len(store), passages=5)
    return DenseRetriever(DenseIndex(out), HashingEncoder(64))


def late(folder: Path) -> Retriever:
    store = DocumentStore.build(folder / "late-store", DOCUMENTS, "x", small=2)
    model = LateSettings(model="hashing:64", device="cpu", precision="float32")
    windows = {"length": 180, "stride": 90, "tokenizer": "words"}
    described = {"passages": windows, "codec": {"bits": 2}}
    settings = PlaidSettings(model, "words")
    build_plaid(folder / "late", store, settings, described, spread=map_here)
    return LateRetriever(PlaidIndex(folder / "late"), load_late(model), PlaidSearch())


def fusion(folder: Path) -> Retriever:
    return FusionRetriever({"bm25": bm25(folder), "dense": dense(folder)}, depth=100)


KINDS: list[Callable[[Path], Retriever]] = [bm25, dense, late, fusion]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def retriever(request: pytest.FixtureRequest, tmp_path: Path) -> Retriever:
    made: Retriever = request.param(tmp_path)
    return made


class TestRetriever:
    def test_the_document_with_the_same_words_comes_first(self, retriever: Retriever) -> None:
        queries = [Query(f"q{i}", document.contents) for i, document in enumerate(DOCUMENTS)]
        run = retriever.retrieve(queries, 3)
        assert {key: run[key][0].doc_id for key in run} == {
            f"q{i}": document.doc_id for i, document in enumerate(DOCUMENTS)
        }

    def test_at_most_k_and_no_document_twice(self, retriever: Retriever) -> None:
        for k in (1, 2, 10):
            hits = retriever.retrieve([Query("q", "the ferry and the library")], k)["q"]
            assert len(hits) <= k
            assert len({hit.doc_id for hit in hits}) == len(hits)

    def test_order_is_by_score_then_id_descending(self, retriever: Retriever) -> None:
        hits = retriever.retrieve([Query("q", "the ferry and the library")], 10)["q"]
        keys = [(hit.score, hit.doc_id) for hit in hits]
        assert keys == sorted(keys, reverse=True)
        assert np.isfinite([hit.score for hit in hits]).all()

    def test_a_blank_query_has_an_empty_list(self, retriever: Retriever) -> None:
        run = retriever.retrieve([Query("a", ""), Query("b", "ferry"), Query("c", "\u200b ")], 3)
        assert run["a"] == []
        assert run["c"] == []
        assert run["b"][0].doc_id == "007"

    def test_no_queries_is_an_empty_run(self, retriever: Retriever) -> None:
        assert len(retriever.retrieve([], 3)) == 0

    def test_the_same_question_gets_the_same_answer(self, retriever: Retriever) -> None:
        queries = [Query("q", "bread and rain"), Query("r", "Паром")]
        assert retriever.retrieve(queries, 5) == retriever.retrieve(queries, 5)

    def test_it_describes_itself_in_flat_values(self, retriever: Retriever) -> None:
        described = retriever.describe()
        assert described["kind"] in {"bm25", "dense", "late", "fusion"}
        for value in described.values():
            assert value is None or isinstance(value, str | int | float | bool | list)
