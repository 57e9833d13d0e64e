"""One collection in several index parts, each searched by an actor of its own, then merged.

For collections that one machine cannot hold: a part is a whole PLAID index of some of the document
shards, so that no document is spread over two of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.indexes.actors import user_error
from polyray.indexes.manifest import read_manifest
from polyray.indexes.plaid.finalize import KIND
from polyray.indexes.plaid.search import PlaidIndex, PlaidSearch
from polyray.runs import Run

if TYPE_CHECKING:
    import numpy as np

__all__ = ["PlaidParts", "merged", "part_shards"]


def part_shards(shards: int, parts: int) -> list[range]:
    """Runs of shards, as even as can be; fewer than ``parts`` where there are fewer shards.

    >>> part_shards(5, 2)
    [range(0, 3), range(3, 5)]
    """
    parts = max(1, min(parts, shards))
    size, more = divmod(shards, parts)
    ends = [size * part + min(part, more) for part in range(parts + 1)]
    return [range(first, last) for first, last in pairwise(ends)]


def merged(runs: Sequence[Run], query_ids: Sequence[str], k: int) -> Run:
    """The best ``k`` documents of each query over runs that share no document."""
    found: dict[str, tuple[list[str], list[float]]] = {}
    for query_id in query_ids:
        docs: list[str] = []
        scores: list[float] = []
        for run in runs:
            some, values = run.ranked(query_id)
            docs += some
            scores += values
        found[query_id] = docs, scores
    return Run.of_columns(found, tag="late").top(k)


class _Part:
    """Ray's side of one part: opens it once, answers batches of query vectors."""

    def __init__(self, folder: str, memory_map: bool) -> None:
        self._index = PlaidIndex(Path(folder), memory_map=memory_map)

    def search(
        self, query_ids: list[str], vectors: list[np.ndarray], k: int, how: PlaidSearch
    ) -> Run:
        return self._index.search(query_ids, [matrix.copy() for matrix in vectors], k, how)


class PlaidParts:
    """Looks like one index; Ray is started or joined at the first search.

    It is left by ``close``, or when the object is gone.
    """

    def __init__(
        self, folders: Sequence[Path], *, address: str | None = None, memory_map: bool = False
    ) -> None:
        """Check every part's manifest; raises :class:`~polyray.errors.IndexDamaged`."""
        self._folders = list(folders)
        self.manifests = [read_manifest(folder, KIND) for folder in self._folders]
        self.manifest = self.manifests[0]
        self._address, self._memory_map = address, memory_map
        self._actors: list[Any] = []
        self._end: weakref.finalize[..., PlaidParts] | None = None

    def search(
        self, query_ids: Sequence[str], vectors: Sequence[np.ndarray], k: int, how: PlaidSearch
    ) -> Run:
        """As :meth:`~polyray.indexes.plaid.search.PlaidIndex.search`, over all parts."""
        import ray
        from ray.exceptions import RayError

        if self._end is None:
            self._end = self._start()
        asked = (list(query_ids), list(vectors), k, how)
        try:
            runs = ray.get([actor.search.remote(*asked) for actor in self._actors])
        except RayError as error:
            raise user_error(error) from None
        return merged(runs, query_ids, k)

    def _start(self) -> weakref.finalize[..., PlaidParts]:
        import ray

        from polyray.cluster import started

        opened = ExitStack()
        opened.enter_context(started(address=self._address))
        spread = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_Part)
        self._actors = [
            spread.remote(str(folder.resolve()), self._memory_map) for folder in self._folders
        ]
        return weakref.finalize(self, _close, opened, self._actors)

    def close(self) -> None:
        """End the actors, and Ray where this object started it."""
        if self._end is not None:
            self._end()
            self._end = None


def _close(opened: ExitStack, actors: list[Any]) -> None:
    import ray

    if ray.is_initialized():
        for actor in actors:
            ray.kill(actor)
    opened.close()
