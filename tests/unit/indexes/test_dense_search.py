"""Exact dense search against a plain full sort: ties, MaxP, blocks, any order of scores."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyray.errors import PolyrayError
from polyray.indexes import dense
from polyray.indexes.dense import DenseIndex
from polyray.indexes.manifest import write_manifest
from polyray.indexes.shards import shard_paths
from polyray.indexes.topk import TopDocuments

Passages = list[list[tuple[str, np.ndarray]]]


def write_index(folder: Path, shards: Passages) -> DenseIndex:
    """An index with the given documents, each with float16 passages ``[n, dim]``."""
    folder.mkdir()
    for number, documents in enumerate(shards):
        paths = shard_paths(folder, number)
        np.save(paths["vectors"], np.concatenate([rows for _, rows in documents]))
        ids = [doc_id for doc_id, rows in documents for _ in rows]
        places = [at for _, rows in documents for at in range(len(rows))]
        pq.write_table(pa.table({"doc_id": ids, "index": places}), paths["passages"])
    write_manifest(folder, "dense", {}, shards=len(shards), passages=0)
    return DenseIndex(folder)


def reference(shards: Passages, query: np.ndarray, k: int) -> list[tuple[str, float]]:
    """All documents, by the best passage's inner product in float64, then id, both descending."""
    scored = [
        (float((rows.astype(np.float64) @ query.astype(np.float64)).max()), doc_id)
        for documents in shards
        for doc_id, rows in documents
    ]
    return [(doc_id, score) for score, doc_id in sorted(scored, reverse=True)[:k]]


def passages(rng: np.random.Generator, documents: int, most: int, dim: int) -> Passages:
    """Vectors of small whole numbers: inner products are exact, so that many scores tie."""
    ids = [f"d{n}" for n in rng.permutation(documents)]
    made = [
        (doc_id, rng.integers(-3, 4, (rng.integers(1, most + 1), dim)).astype(np.float16))
        for doc_id in ids
    ]
    cuts = sorted(rng.choice(np.arange(1, documents), 4, replace=False).tolist())
    bounds = [0, *cuts, documents]
    return [made[a:b] for a, b in pairwise(bounds)]


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("k", [1, 10, 149, 150, 400])
@pytest.mark.parametrize("small", [False, True])
def test_equals_a_full_sort(
    tmp_path: Path, most: int, k: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(dense, "BLOCK", 3)
        monkeypatch.setattr(dense, "ROWS", 7)
        monkeypatch.setattr(dense, "PASS", 5)
    rng = np.random.default_rng(k)
    shards = passages(rng, 150, most, 6)
    queries = rng.integers(-2, 3, (12, 6)).astype(np.float32)
    run = write_index(tmp_path / "i", shards).search([f"q{n}" for n in range(12)], queries, k)
    for number, query in enumerate(queries):
        found = [(hit.doc_id, hit.score) for hit in run[f"q{number}"]]
        assert found == reference(shards, query, k)


def test_equals_a_full_sort_on_unit_vectors(tmp_path: Path) -> None:
    """Float32 against float64 sums: scores within 1e-5, documents the same but for near ties."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((3000, 64))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    rows[[5, 700, 1500, 2999]] = rows[5]
    shards = [
        [(f"d{n}", rows[n : n + 1]) for n in range(start, start + 600)]
        for start in range(0, 3000, 600)
    ]
    queries = rows[[5, 17, 1234]].astype(np.float32)
    run = write_index(tmp_path / "i", shards).search(["a", "b", "c"], queries, 100)
    for key, query in zip("abc", queries, strict=True):
        expected = reference(shards, query, 100)
        assert [hit.score for hit in run[key]] == pytest.approx([s for _, s in expected], abs=1e-5)
        assert len({hit.doc_id for hit in run[key]} & {doc_id for doc_id, _ in expected}) >= 99
    assert [hit.doc_id for hit in run["a"]][:4] == ["d700", "d5", "d2999", "d1500"]


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "steps"])
def test_memory_is_bounded_and_the_best_stay_whatever_the_order(order: str) -> None:
    blocks, width, k = 60, 50, 7
    rising = np.arange(blocks * width, dtype=np.float32)
    scores = {
        "rising": rising,
        "falling": rising[::-1],
        "equal": np.zeros_like(rising),
        "steps": np.floor(rising / 500),
    }[order]
    ids = [str(n) for n in np.random.default_rng(0).permutation(len(scores))]
    top = TopDocuments(2, k, ids)
    for start in range(0, len(scores), width):
        part = scores[start : start + width]
        top.add(np.stack([part, -part]), start)
        assert sum(map(len, top._scores)) <= 2 * 2 * k
    for (docs, found), values in zip(top.columns(), (scores, -scores), strict=True):
        best = sorted(zip(values.tolist(), ids, strict=True), reverse=True)[:k]
        assert sorted(zip(found, docs, strict=True), reverse=True)[:k] == best


def test_no_queries_and_vectors_that_are_not_finite(tmp_path: Path) -> None:
    index = write_index(tmp_path / "i", [[("a", np.ones((1, 3), np.float16))]])
    assert len(index.search([], np.zeros((0, 3), np.float32), 5)) == 0
    with pytest.raises(PolyrayError, match="not finite"):
        index.search(["q"], np.array([[1, np.nan, 0]], np.float32), 5)
