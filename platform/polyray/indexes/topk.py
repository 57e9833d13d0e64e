"""The best documents of many queries at once, out of scores that come block by block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

__all__ = ["TopDocuments"]


class TopDocuments:
    """Keeps what can still be among the best ``k`` of each query, ties included.

    A score counts only if it reaches its query's floor: the k-th best score of what has been
    seen. Most blocks then cost one comparison a score. Ties go by document id, descending.
    """

    def __init__(self, queries: int, k: int, doc_ids: Sequence[str]) -> None:
        """``doc_ids`` are those of all documents, in the order of their numbers."""
        import numpy as np

        self._queries, self._k, self._doc_ids = queries, k, doc_ids
        self._floor: np.ndarray = np.full((queries, 1), -np.inf, np.float32)
        self._rows: list[np.ndarray] = []
        self._docs: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._size, self._limit = 0, 2 * k * queries

    def add(self, scores: np.ndarray, first: int) -> None:
        """Scores, float32 ``[queries, n]``, of ``n`` documents from number ``first`` on."""
        import numpy as np

        width = scores.shape[1]
        if not self._size and width > self._k:
            self._floor = np.partition(scores, width - self._k, axis=1)[:, [width - self._k]]
        kept = np.flatnonzero(scores >= self._floor)
        self._rows.append(kept // width)
        self._docs.append(kept % width + first)
        self._scores.append(scores.reshape(-1)[kept])
        self._size += len(kept)
        if self._size > self._limit:
            self._prune()
            if self._size > self._limit:
                self._cut_ties()

    def columns(self) -> list[tuple[list[str], list[float]]]:
        """For each query the ids and scores of the best ``k`` documents, and of ties with the k-th.

        By falling score; those that tie in any order.
        """
        if not self._size:
            return [([], []) for _ in range(self._queries)]
        self._prune()
        begins = self._begins(self._rows[0]).tolist()
        ids = list(map(self._doc_ids.__getitem__, self._docs[0].tolist()))
        scores = self._scores[0].tolist()
        return [(ids[a:b], scores[a:b]) for a, b in pairwise(begins)]

    def _begins(self, rows: np.ndarray) -> np.ndarray:
        """Where each query's entries begin in sorted ``rows``, and the end of the last."""
        import numpy as np

        counts: np.ndarray = np.bincount(rows, minlength=self._queries)
        return np.append(0, np.cumsum(counts))

    def _prune(self) -> None:
        """Raise the floors and drop what lies under them; sorts by query and falling score."""
        import numpy as np

        rows, docs, scores = (np.concatenate(x) for x in (self._rows, self._docs, self._scores))
        order = np.argsort(_falling_keys(rows, scores))
        rows, docs, scores = rows[order], docs[order], scores[order]
        begins = self._begins(rows)
        full = np.flatnonzero(np.diff(begins) >= self._k)
        self._floor[full, 0] = scores[begins[full] + self._k - 1]
        self._keep(rows, docs, scores, scores >= self._floor[rows, 0])

    def _cut_ties(self) -> None:
        """Drop documents that tie with a k-th best one and come after it by id."""
        import numpy as np

        rows, docs, scores = self._rows[0], self._docs[0], self._scores[0]
        begins = self._begins(rows)
        wanted: np.ndarray = np.ones(len(rows), bool)
        for row in np.flatnonzero(np.diff(begins) > self._k):
            places = range(begins[row], begins[row + 1])
            ranked = sorted(places, key=lambda at: (scores[at], self._doc_ids[int(docs[at])]))
            wanted[ranked[: -self._k]] = False
        self._keep(rows, docs, scores, wanted)

    def _keep(
        self, rows: np.ndarray, docs: np.ndarray, scores: np.ndarray, wanted: np.ndarray
    ) -> None:
        self._rows, self._docs, self._scores = [rows[wanted]], [docs[wanted]], [scores[wanted]]
        self._size = len(self._rows[0])


def _falling_keys(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Whole numbers, uint64, that sort by row and then by falling float32 score.

    One key a pair sorts three times as fast as two. The bits of a float sort like whole numbers
    once the sign bit is flipped, or all bits where it is set.
    """
    import numpy as np

    bits = np.negative(scores).view(np.uint32)
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return rows.astype(np.uint64) << np.uint64(32) | bits
