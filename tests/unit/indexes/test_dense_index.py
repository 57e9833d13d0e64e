"""The dense index without Ray: shards, MaxP, ties, resuming, damage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from polyray.collections.store import DocumentStore, fingerprint
from polyray.errors import IndexDamaged, PolyrayError
from polyray.files import read_json
from polyray.indexes.dense import DenseIndex
from polyray.indexes.encode import EncodeSettings, load_worker
from polyray.indexes.shards import ShardEncoder, ShardTask, is_whole, shard_paths
from polyray.models.dense import HashingEncoder
from polyray.models.settings import EncoderSettings
from polyray.records import Document
from polyray.text.tokenizers import WhitespaceTokenizer


class LengthEncoder:
    """Two numbers of a text: its length and the sum of its code points modulo 997."""

    dim = 2

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[len(t), sum(map(ord, t)) % 997] for t in texts], np.float32)

    encode_passages = encode_queries

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        return 0

    def describe(self) -> dict[str, object]:
        return {}


def build(
    folder: Path, documents: list[Document], *, small: int = 2, length: int = 4
) -> DenseIndex:
    """The whole pipeline with the plain worker in place of the Ray stage."""
    from polyray.indexes.manifest import write_manifest

    store = DocumentStore.build(folder / "store", documents, "here", small=small)
    out = folder / "index"
    out.mkdir(exist_ok=True)
    worker = ShardEncoder(HashingEncoder(64), WhitespaceTokenizer(), length, length)
    facts = [worker(task) for task in tasks_of(store, out)]
    totals = {"passages": sum(fact["passages"] for fact in facts)}
    write_manifest(out, "dense", {}, shards=len(store), **totals)
    return DenseIndex(out)


def tasks_of(store: DocumentStore, out: Path) -> list[ShardTask]:
    return [
        ShardTask(number, str(store.folder / "shards" / shard["file"]), shard["sha256"], str(out))
        for number, shard in enumerate(store.manifest["shards"])
    ]


def test_rows_of_vectors_belong_to_the_rows_of_passages(tmp_path: Path, cases: Path) -> None:
    """Expected values: cases/H11_order/expected.csv (text length, checksum of code points)."""
    rows = [json.loads(line) for line in (cases / "H11_order/rows.jsonl").read_text().splitlines()]
    documents = [Document(row["row_id"], row["text"]) for row in rows]
    store = DocumentStore.build(tmp_path / "store", documents, "x", small=3)
    worker = ShardEncoder(LengthEncoder(), WhitespaceTokenizer(), 180, 180)  # type: ignore[arg-type]
    found = {}
    order = []
    for task in reversed(tasks_of(store, tmp_path / "out")):
        worker(task)
    import pyarrow.parquet as pq

    for number in range(len(store)):
        paths = shard_paths(tmp_path / "out", number)
        vectors = np.load(paths["vectors"])
        ids = pq.read_table(paths["passages"])["doc_id"].to_pylist()
        order += ids
        found |= {key: tuple(map(int, vector)) for key, vector in zip(ids, vectors, strict=True)}
    lines = (cases / "H11_order/expected.csv").read_text().splitlines()[1:]
    expected = {key: (int(a), int(b)) for key, a, b in (line.split(",") for line in lines)}
    assert found == expected
    assert order == [row["row_id"] for row in rows]


def test_empty_documents_are_skipped_and_counted(tmp_path: Path, cases: Path) -> None:
    """Right results: cases/H07_empty_passages; exact matches must not shift past empty ones."""
    from polyray.collections.documents import read_documents

    folder = cases / "H07_empty_passages"
    expected = json.loads((folder / "expected.json").read_text())
    path = str(folder / "collection.jsonl")
    store = DocumentStore.build(tmp_path / "s", read_documents(path), fingerprint(path))
    assert store.manifest["skipped_empty_ids"] == expected["skipped_empty"]
    assert store.documents + store.skipped_empty == expected["documents_read"]
    index = build(tmp_path, list(store), small=2)
    queries = [line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines()]
    vectors = HashingEncoder(64).encode_queries([text for _, text in queries])
    run = index.search([key for key, _ in queries], vectors, 1)
    assert {key: run[key][0].doc_id for key in run} == expected["P@1_exact_match"]


def test_ids_stay_strings(tmp_path: Path, cases: Path) -> None:
    """Right results: cases/H06_string_docids."""
    from polyray.collections.documents import read_documents

    folder = cases / "H06_string_docids"
    documents = list(read_documents(str(folder / "collection.jsonl")))
    index = build(tmp_path, documents)
    queries = [line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines()]
    vectors = HashingEncoder(64).encode_queries([text for _, text in queries])
    run = index.search([key for key, _ in queries], vectors, 3)
    relevant = dict(line.split()[::2] for line in (folder / "qrels.txt").read_text().splitlines())
    assert {key: run[key][0].doc_id for key in run} == relevant


@pytest.mark.parametrize("name", ["one", "three"])
def test_fewer_documents_than_asked_for(tmp_path: Path, cases: Path, name: str) -> None:
    """Right results: cases/H08_tiny_collection."""
    from polyray.collections.documents import read_documents

    documents = list(read_documents(str(cases / f"H08_tiny_collection/{name}.jsonl")))
    index = build(tmp_path, documents)
    run = index.search(["q"], HashingEncoder(64).encode_queries(["lamp"]), 10)
    assert sorted(hit.doc_id for hit in run["q"]) == sorted(d.doc_id for d in documents)


def test_best_passage_counts_and_k_documents_come_out(tmp_path: Path) -> None:
    long = Document("long", " ".join(["alpha beta gamma delta"] * 30))
    others = [Document(f"d{i}", f"alpha beta gamma delta word{i}") for i in range(5)]
    index = build(tmp_path, [long, *others], small=10)
    vectors = HashingEncoder(64).encode_queries(["alpha beta gamma delta"])
    run = index.search(["q"], vectors, 4)
    assert len({hit.doc_id for hit in run["q"]}) == 4
    assert index.passages == 30 + 5 * 2
    assert run["q"][0].score == pytest.approx(1, abs=1e-3)


def test_ties_go_by_id_descending_even_at_the_cut(tmp_path: Path) -> None:
    documents = [Document(f"d{i:02d}", "the same words") for i in range(20)]
    for small in (1, 3, 50):
        index = build(tmp_path / str(small), documents, small=small)
        run = index.search(["q"], HashingEncoder(64).encode_queries(["the same words"]), 5)
        assert [hit.doc_id for hit in run["q"]] == ["d19", "d18", "d17", "d16", "d15"]


def test_finished_shards_are_known_and_damaged_ones_are_not_whole(tmp_path: Path) -> None:
    documents = [Document(f"d{i}", f"text number {i}") for i in range(6)]
    store = DocumentStore.build(tmp_path / "store", documents, "x", small=2)
    out = tmp_path / "out"
    settings = EncodeSettings(EncoderSettings(model="hashing:64"), "whitespace", 180, 90)
    worker = load_worker(settings)
    tasks = tasks_of(store, out)
    assert not any(map(is_whole, tasks))
    worker(tasks[1])
    assert [is_whole(task) for task in tasks] == [False, True, False]
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    worker(tasks[1])
    assert first == {path.name: path.read_bytes() for path in out.iterdir()}
    vectors = shard_paths(out, 1)["vectors"]
    vectors.write_bytes(vectors.read_bytes()[:-1])
    assert not is_whole(tasks[1])


@pytest.mark.parametrize("damage", ["cut", "flip", "delete"])
def test_damaged_indexes_are_refused_by_file(tmp_path: Path, damage: str) -> None:
    index = build(tmp_path, [Document(f"d{i}", f"text number {i}") for i in range(6)])
    for name in read_json(index.folder / "manifest.json")["files"]:
        path = index.folder / name
        good = path.read_bytes()
        if damage == "delete":
            path.unlink()
        else:
            changed = bytes([good[-1] ^ 1])
            path.write_bytes(good[:-1] + (changed if damage == "flip" else b""))
        with pytest.raises(IndexDamaged, match=path.name):
            DenseIndex(index.folder)
        path.write_bytes(good)
    DenseIndex(index.folder)


def test_store_is_refused_when_a_shard_changed(tmp_path: Path) -> None:
    store = DocumentStore.build(tmp_path / "s", [Document("a", "x y")], "x")
    shard = next((tmp_path / "s" / "shards").iterdir())
    good = shard.read_bytes()
    shard.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(IndexDamaged, match=shard.name):
        list(store)
    shard.unlink()
    with pytest.raises(IndexDamaged, match=shard.name):
        DocumentStore.open(tmp_path / "s")


def test_an_error_while_reading_leaves_no_store(tmp_path: Path) -> None:
    def documents() -> object:
        yield Document("a", "x")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        DocumentStore.build(tmp_path / "s", documents(), "x")  # type: ignore[arg-type]
    assert not (tmp_path / "s").exists()


def test_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    class Broken(LengthEncoder):
        def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
            return np.full((len(texts), 2), np.nan, np.float32)

        def describe(self) -> dict[str, object]:
            return {"model": "broken", "precision": "float16"}

    store = DocumentStore.build(tmp_path / "store", [Document("a", "x")], "x")
    worker = ShardEncoder(Broken(), WhitespaceTokenizer(), 180, 90)  # type: ignore[arg-type]
    with pytest.raises(PolyrayError, match="broken gave vectors that are not finite in float16"):
        worker(tasks_of(store, tmp_path / "out")[0])
    assert not (tmp_path / "out").exists()
