"""A dense index: float16 passage vectors in shards, searched exactly.

The score of a document is that of its best passage (MaxP). All passages of a document lie in one
shard, so that taking the best of each document inside a shard loses nothing; ``k`` documents come
out wherever the collection has as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.collections.store import DocumentStore
from polyray.errors import ConfigError
from polyray.indexes.encode import EncodeSettings, encode_shards
from polyray.indexes.manifest import read_manifest, write_manifest
from polyray.indexes.shards import ShardTask, read_vectors, shard_paths
from polyray.records import Hit
from polyray.runs import Run

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DenseIndex", "top_documents"]

KIND = "dense"
BLOCK = 64
"""Queries scored at once against a shard."""


class DenseIndex:
    """Opened for search; vectors stay on disk, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        """Open a whole index; raises :class:`~polyray.errors.IndexDamaged` otherwise."""
        self.folder = folder
        self.manifest = read_manifest(folder, KIND)
        self._parts = [_Part(folder, number) for number in range(self.manifest["shards"])]
        self._parts = [part for part in self._parts if len(part.doc_ids)]

    @classmethod
    def build(
        cls,
        folder: Path,
        store: DocumentStore,
        settings: EncodeSettings,
        described: dict[str, Any],
        *,
        actors: int | None = None,
        cpus: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Encode the store's shards that are not there yet; returns how many were encoded now.

        ``described`` goes into the manifest as settings. Needs a running Ray unless all is done.
        """
        if (folder / "manifest.json").is_file():
            read_manifest(folder, KIND)
            return 0
        tasks = [
            ShardTask(
                number,
                str((store.folder / "shards" / shard["file"]).resolve()),
                shard["sha256"],
                str(folder.resolve()),
            )
            for number, shard in enumerate(store.manifest["shards"])
        ]
        folder.mkdir(parents=True, exist_ok=True)
        encoded = encode_shards(tasks, settings, actors=actors, cpus=cpus, progress=progress)
        from polyray.files import read_json

        facts = [read_json(shard_paths(folder, task.number)["done"]) for task in tasks]
        totals = {
            name: sum(fact[name] for fact in facts)
            for name in ("documents", "passages", "truncated", "without_passages")
        }
        write_manifest(folder, KIND, described, shards=len(tasks), **totals)
        return encoded

    @property
    def passages(self) -> int:
        """Passages in the index."""
        return int(self.manifest["passages"])

    def search(self, query_ids: Sequence[str], vectors: np.ndarray, k: int) -> Run:
        """The best ``k`` documents of each query vector, float32 ``[n, dim]``.

        Exact: inner products in float32 of the stored float16 vectors; ties by document id,
        descending.
        """
        import numpy as np

        if k < 1:
            raise ConfigError(f"k must be at least 1, not {k}")
        rankings: dict[str, list[Hit]] = {}
        for start in range(0, len(query_ids), BLOCK):
            ids = query_ids[start : start + BLOCK]
            block = np.ascontiguousarray(vectors[start : start + BLOCK], dtype=np.float32)
            found: list[list[tuple[str, float]]] = [[] for _ in ids]
            for part in self._parts:
                for row, best in enumerate(part.search(block, k)):
                    found[row] += best
            for query_id, pairs in zip(ids, found, strict=True):
                rankings[query_id] = top_documents(pairs, k)
        return Run(rankings, tag="dense")


def top_documents(pairs: list[tuple[str, float]], k: int) -> list[Hit]:
    """The best ``k`` of (document id, score), by score, then by id, both descending."""
    pairs = sorted(pairs, key=lambda pair: pair[0], reverse=True)
    pairs.sort(key=lambda pair: -pair[1])
    return [Hit(doc_id, score) for doc_id, score in pairs[:k]]


class _Part:
    """One shard: its vectors and where each document's passages begin."""

    def __init__(self, folder: Path, number: int) -> None:
        import numpy as np
        import pyarrow.parquet as pq

        paths = shard_paths(folder, number)
        self.vectors = read_vectors(paths["vectors"])
        columns = pq.read_table(paths["passages"], columns=["doc_id", "index"]).to_pydict()
        self.starts = np.flatnonzero(np.asarray(columns["index"], dtype=np.int64) == 0)
        self.doc_ids = [columns["doc_id"][at] for at in self.starts]

    def search(self, queries: np.ndarray, k: int) -> list[list[tuple[str, float]]]:
        """The best ``k`` documents of the shard for each row, ties at the end included."""
        import numpy as np

        scores = queries @ np.asarray(self.vectors, dtype=np.float32).T
        if len(self.starts) < scores.shape[1]:
            scores = np.maximum.reduceat(scores, self.starts, axis=1)
        answers = []
        for row in scores:
            if len(row) > k:
                kept = np.flatnonzero(row >= np.partition(row, len(row) - k)[len(row) - k])
            else:
                kept = np.arange(len(row))
            answers.append([(self.doc_ids[at], float(row[at])) for at in kept])
        return answers
