"""Searching a PLAID index: candidates by centroids, pruned, then scored by decompressed tokens.

The index in memory is colbert-ai's ``IndexScorer``, which its Searcher runs on. What its settings
leave open is settled at every call: the Searcher keeps those of the first ``k`` it sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from polyray.errors import ConfigError, IndexDamaged
from polyray.indexes.manifest import read_manifest
from polyray.indexes.plaid.engine import candidates, packed_max_sim, ranker
from polyray.indexes.plaid.files import IDS, recover
from polyray.indexes.plaid.finalize import KIND
from polyray.runs import Run

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = ["PlaidIndex", "PlaidSearch"]

TOGETHER = 32
"""Queries that an exhaustive search compares with a passage once it is decompressed."""

_Found = tuple["np.ndarray", "np.ndarray"]
"""Passage numbers and float32 scores, best first."""


class PlaidSearch(BaseModel):
    """How thoroughly to search; what is not given goes by ``k``, as in colbert-ai.

    ``ncells`` centroids a query token give candidates, of which ``ndocs`` pass the first filter
    (tokens near centroids that score below ``centroid_score_threshold`` left out) and a quarter of
    these the second. ``exhaustive`` scores every passage instead.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ncells: int | None = Field(default=None, gt=0)
    centroid_score_threshold: float | None = Field(default=None, ge=-1, le=1)
    ndocs: int | None = Field(default=None, gt=3)
    exhaustive: bool = False

    def at(self, k: int) -> PlaidSearch:
        """All settings for the first ``k`` passages.

        >>> PlaidSearch(ndocs=512).at(10)
        PlaidSearch(ncells=1, centroid_score_threshold=0.5, ndocs=512, exhaustive=False)
        """
        cells, threshold, docs = (
            (1, 0.5, 256)
            if k <= 10
            else (2, 0.45, 1024)
            if k <= 100
            else (4, 0.4, max(4 * k, 4096))
        )
        return PlaidSearch(
            ncells=self.ncells or cells,
            centroid_score_threshold=(
                threshold
                if self.centroid_score_threshold is None
                else self.centroid_score_threshold
            ),
            ndocs=self.ndocs or docs,
            exhaustive=self.exhaustive,
        )


class PlaidIndex:
    """Opened for search; with ``memory_map`` codes and residuals stay on disk.

    Codes and residuals are loaded at the first search: a job that only builds does without.
    """

    def __init__(self, folder: Path, *, memory_map: bool = False) -> None:
        """Open a whole index; raises :class:`~polyray.errors.IndexDamaged` otherwise."""
        import numpy as np
        import pyarrow.parquet as pq

        recover(folder)
        self.folder = folder
        self.manifest = read_manifest(folder, KIND)
        table = pq.read_table(folder / IDS, columns=["doc_id", "deleted"])
        names = table["doc_id"].combine_chunks().dictionary_encode()
        self._documents: np.ndarray = names.indices.to_numpy(zero_copy_only=False)
        self._doc_ids: list[str] = names.dictionary.to_pylist()
        self._deleted: np.ndarray = table["deleted"].to_numpy()
        self._memory_map = memory_map
        self._live = int((~self._deleted).sum())
        self._live_documents = len(np.unique(self._documents[~self._deleted]))

    @cached_property
    def _ranker(self) -> Any:
        loaded = ranker(self.folder, self._memory_map)
        if len(loaded.doclens) != len(self._documents):
            raise IndexDamaged(
                f"{self.folder}: ids.parquet does not fit the chunks: remove it and rerun"
            )
        return loaded

    def __len__(self) -> int:
        """Passages that can be found."""
        return self._live

    def search(
        self, query_ids: Sequence[str], vectors: Sequence[np.ndarray], k: int, how: PlaidSearch
    ) -> Run:
        """The best ``k`` documents of each query, each by its best passage (MaxP).

        ``vectors`` are float32 ``[tokens, dim]`` a query. More passages are looked at until ``k``
        documents are found or there are no more.
        """
        found: dict[str, tuple[list[str], list[float]]] = {}
        pending = list(zip(query_ids, vectors, strict=True))
        now = how.at(k)
        while pending:
            ranked = self._rank([matrix for _, matrix in pending], now)
            again = []
            for (query_id, matrix), (numbers, scores) in zip(pending, ranked, strict=True):
                found[query_id] = self._best(numbers, scores, k)
                if len(found[query_id][0]) < min(k, self._live_documents):
                    again.append((query_id, matrix))
            pending, now = (again, self._wider(now)) if not self._widest(now) else ([], now)
        return Run.of_columns({query: found[query] for query in query_ids}, tag="late")

    def passages(
        self, vectors: Sequence[np.ndarray], k: int, how: PlaidSearch
    ) -> list[tuple[list[int], list[float]]]:
        """Numbers and scores of the best ``k`` passages of each query, as the Searcher has them."""
        ranked = self._rank(vectors, how.at(k))
        return [(numbers[:k].tolist(), scores[:k].tolist()) for numbers, scores in ranked]

    def _best(
        self, numbers: np.ndarray, scores: np.ndarray, k: int
    ) -> tuple[list[str], list[float]]:
        best: dict[int, float] = {}
        for document, score in zip(self._documents[numbers].tolist(), scores.tolist(), strict=True):
            if document not in best:
                best[document] = score
        # equal scores are ordered by id before the cut, as trec_eval does
        order = sorted(((s, self._doc_ids[d]) for d, s in best.items()), reverse=True)[:k]
        return [doc_id for _, doc_id in order], [score for score, _ in order]

    def _widest(self, how: PlaidSearch) -> bool:
        return how.exhaustive or (
            int(how.ncells or 0) >= len(self._ranker.codec.centroids)
            and int(how.ndocs or 0) // 4 >= len(self._documents)
        )

    def _wider(self, how: PlaidSearch) -> PlaidSearch:
        return how.model_copy(
            update={
                "ncells": min(2 * int(how.ncells or 1), len(self._ranker.codec.centroids)),
                "ndocs": min(4 * int(how.ndocs or 4), 4 * len(self._documents) + 4),
            }
        )

    def _rank(self, vectors: Sequence[np.ndarray], how: PlaidSearch) -> list[_Found]:
        import torch

        dim = self._ranker.codec.dim
        for matrix in vectors:
            if matrix.ndim != 2 or matrix.shape[1] != dim:
                raise ConfigError(f"{self.folder} holds vectors of {dim} dimensions")
        matrices = [torch.from_numpy(matrix) for matrix in vectors]
        with torch.inference_mode():
            if how.exhaustive:
                return self._exhaustive(matrices)
            return [self._pruned(matrix, how) for matrix in matrices]

    def _pruned(self, matrix: torch.Tensor, how: PlaidSearch) -> _Found:
        cells = min(int(how.ncells or 1), len(self._ranker.codec.centroids))
        threshold = float(how.centroid_score_threshold or 0)
        numbers = candidates(self._ranker, matrix, cells, threshold, int(how.ndocs or 4))
        return _best_first(numbers, packed_max_sim(self._ranker, [matrix], numbers)[:, 0])

    def _exhaustive(self, matrices: Sequence[torch.Tensor]) -> list[_Found]:
        import numpy as np
        import torch

        numbers = torch.from_numpy(np.flatnonzero(~self._deleted).astype(np.int32))
        ranked: list[_Found] = []
        for start in range(0, len(matrices), TOGETHER):
            scores = packed_max_sim(self._ranker, matrices[start : start + TOGETHER], numbers)
            ranked += [_best_first(numbers, column) for column in scores.T]
        return ranked


def _best_first(numbers: torch.Tensor, scores: torch.Tensor) -> _Found:
    """Equal scores go to the lower number."""
    import numpy as np

    places, values = numbers.numpy(), scores.numpy()
    order = np.lexsort((places, -values))
    return places[order], values[order]
