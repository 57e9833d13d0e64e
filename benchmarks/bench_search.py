"""Exact dense search over an index on disk, against FAISS's flat index in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._measure import Row, interleaved, row, seconds, threads

if TYPE_CHECKING:
    import numpy as np

    from polyray.indexes.dense import DenseIndex

DOCUMENTS, DIM, QUERIES, K = 200_000, 384, 256, 100
ROUNDS = 9
TARGET = 0.95


def unit_vectors(count: int, seed: int) -> np.ndarray:
    """Random float32 ``[count, DIM]`` of unit length."""
    import numpy as np

    rows = np.random.default_rng(seed).standard_normal((count, DIM), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def write_index(folder: Path, vectors: np.ndarray) -> DenseIndex:
    """An index of one passage a document, cut into shards as a collection of that size is."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from polyray.collections.store import LARGE, SMALL, SMALL_SHARDS
    from polyray.indexes.dense import KIND, DenseIndex
    from polyray.indexes.manifest import write_manifest
    from polyray.indexes.shards import shard_paths

    start = number = 0
    while start < len(vectors):
        end = min(start + (SMALL if number < SMALL_SHARDS else LARGE), len(vectors))
        paths = shard_paths(folder, number)
        np.save(paths["vectors"], vectors[start:end].astype(np.float16))
        ids = [f"doc-{at:07d}" for at in range(start, end)]
        table = pa.table({"doc_id": ids, "index": pa.array([0] * len(ids), pa.int64())})
        pq.write_table(table, paths["passages"])
        start, number = end, number + 1
    write_manifest(folder, KIND, {}, shards=number, passages=len(vectors))
    return DenseIndex(folder)


def measure(quick: bool = False) -> list[Row]:
    """Seconds of one batch of queries; both give the same documents."""
    import faiss
    import numpy as np

    count = 5_000 if quick else DOCUMENTS
    stored, queries = unit_vectors(count, 1), unit_vectors(QUERIES, 2)
    keys = [f"q{number}" for number in range(QUERIES)]
    faiss.omp_set_num_threads(threads())
    flat = faiss.IndexFlatIP(DIM)
    flat.add(stored.astype(np.float16).astype(np.float32))
    with tempfile.TemporaryDirectory() as folder:
        index = write_index(Path(folder), stored)
        del stored
        _, numbers = flat.search(queries, K)
        run = index.search(keys, queries, K)
        same = sum(
            len({hit.doc_id for hit in run[key]} & {f"doc-{n:07d}" for n in row_})
            for key, row_ in zip(keys, numbers, strict=True)
        )
        # The k-th and the next score may lie nearer than float32 sums tell apart.
        if same < 0.9999 * QUERIES * K - 1:
            raise AssertionError(f"only {same} of {QUERIES * K} documents are the same")
        pairs = interleaved(
            lambda: seconds(lambda: index.search(keys, queries, K)),
            lambda: seconds(lambda: flat.search(queries, K)),
            2 if quick else ROUNDS,
        )
    return [
        row(
            "exact dense search",
            pairs,
            TARGET,
            other="faiss IndexFlatIP, float32 in memory, row numbers for an answer",
            documents=count,
            dim=DIM,
            queries=QUERIES,
            k=K,
            stored="float16 on disk",
            same_documents=same,
        )
    ]
