"""A dense index: float16 passage vectors in shards, searched exactly.

The score of a document is that of its best passage (MaxP). All passages of a document lie in one
shard, so that taking the best of each document inside a shard loses nothing; ``k`` documents come
out wherever the collection has as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.collections.store import DocumentStore
from polyray.errors import ConfigError, PolyrayError
from polyray.indexes.encode import EncodeSettings, encode_shards
from polyray.indexes.manifest import read_manifest, write_manifest
from polyray.indexes.shards import ShardTask, read_vectors, shard_paths
from polyray.runs import Run

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DenseIndex"]

KIND = "dense"
BLOCK, ROWS = 256, 4096
"""Queries and passages that are scored at once."""
PASS = 1024
"""Queries answered in one reading of the vectors."""


class DenseIndex:
    """Opened for search; vectors stay on disk, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        """Open a whole index; raises :class:`~polyray.errors.IndexDamaged` otherwise."""
        self.folder = folder
        self.manifest = read_manifest(folder, KIND)
        self._parts = [_Part(folder, number) for number in range(self.manifest["shards"])]
        self._parts = [part for part in self._parts if part.doc_ids]
        self._doc_ids = [doc_id for part in self._parts for doc_id in part.doc_ids]

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

        from polyray.indexes.topk import TopDocuments

        if k < 1:
            raise ConfigError(f"k must be at least 1, not {k}")
        wanted: np.ndarray = np.ascontiguousarray(vectors, dtype=np.float32)
        if not np.isfinite(wanted).all():
            raise PolyrayError("a query's vector is not finite: check the model and its precision")
        found: dict[str, tuple[list[str], list[float]]] = {}
        for start in range(0, len(query_ids), PASS):
            ids = query_ids[start : start + PASS]
            asked = wanted[start : start + PASS]
            tiles = [asked[at : at + BLOCK] for at in range(0, len(ids), BLOCK)]
            tops = [TopDocuments(len(tile), k, self._doc_ids) for tile in tiles]
            first = 0
            for part in self._parts:
                for passages, starts in part.blocks():
                    for tile, top in zip(tiles, tops, strict=True):
                        scores = tile @ passages.T
                        if len(starts) < len(passages):
                            scores = np.maximum.reduceat(scores, starts, axis=1)
                        top.add(scores, first)
                    first += len(starts)
            columns = (columns for top in tops for columns in top.columns())
            found.update(zip(ids, columns, strict=True))
        return Run.of_columns(found, tag="dense").top(k)


class _Part:
    """One shard: its vectors and where each document's passages begin."""

    def __init__(self, folder: Path, number: int) -> None:
        import numpy as np
        import pyarrow.parquet as pq

        paths = shard_paths(folder, number)
        self._vectors = read_vectors(paths["vectors"])
        columns = pq.read_table(paths["passages"], columns=["doc_id", "index"]).to_pydict()
        self._starts = np.flatnonzero(np.asarray(columns["index"], dtype=np.int64) == 0)
        self.doc_ids: list[str] = [columns["doc_id"][at] for at in self._starts]

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Float32 vectors of some whole documents, and where each one's passages begin in them.

        A block has about :data:`ROWS` passages, so that it and its scores stay in the cache.
        """
        import numpy as np

        ends: np.ndarray = np.append(self._starts[1:], len(self._vectors))
        at = 0
        while at < len(self._starts):
            low = self._starts[at]
            to = max(at + 1, int(np.searchsorted(ends, low + ROWS, side="right")))
            yield self._vectors[low : ends[to - 1]].astype(np.float32), self._starts[at:to] - low
            at = to
