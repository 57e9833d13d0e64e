"""Inverted lists: for every centroid the passages that have a token near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = ["inverted_lists"]

POSTINGS = 1 << 28
"""Tokens sorted at once: about 13 bytes of memory each."""

Chunk = tuple["np.ndarray", "np.ndarray"]
"""int32 codes ``[tokens]`` and the number of tokens of each passage."""


def inverted_lists(
    chunks: Callable[[], Iterator[Chunk]],
    centroids: int,
    *,
    dropped: np.ndarray | None = None,
    postings: int = POSTINGS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 passage numbers, centroid after centroid, and int64 ``[centroids]`` their counts.

    Each list is ascending and names a passage once. ``chunks`` is called for every pass over the
    codes: one where all fit into ``postings``, else one a range of centroids. ``dropped``, bool
    ``[passages]``, leaves passages out. The numbers end with as many zeros as colbert-ai adds.
    """
    import numpy as np
    import torch

    counts: np.ndarray = np.zeros(centroids, np.int64)
    for codes, _ in chunks():
        counts += np.bincount(codes, minlength=centroids)
    pieces, lengths = [], []
    for first, last in _ranges(counts, postings):
        whole = first == 0 and last == centroids
        numbers, length = _lists(
            chunks(), first, last, whole, dropped, int(counts[first:last].sum())
        )
        pieces.append(numbers)
        lengths.append(length)
    ivf = np.concatenate(pieces) if len(pieces) != 1 else pieces[0]
    ivf_lengths = torch.from_numpy(np.concatenate(lengths).astype(np.int64))
    return _padded(torch.from_numpy(ivf), ivf_lengths), ivf_lengths


def _ranges(counts: np.ndarray, postings: int) -> list[tuple[int, int]]:
    """Ranges of centroids that hold at most ``postings`` tokens, or are one centroid."""
    import numpy as np

    ends = np.cumsum(counts)
    ranges, first = [], 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + postings, side="right")))
        ranges.append((first, last))
        first = last
    return ranges


def _lists(
    chunks: Iterator[Chunk],
    first: int,
    last: int,
    whole: bool,
    dropped: np.ndarray | None,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Passage numbers and counts of the centroids in ``[first, last)``."""
    import numpy as np
    from scipy.sparse import coo_array

    rows: np.ndarray = np.empty(size, np.int32)
    columns: np.ndarray = np.empty(size, np.int32)
    filled = passages = 0
    for codes, doclens in chunks:
        numbers: np.ndarray = np.repeat(
            np.arange(passages, passages + len(doclens), dtype=np.int32), doclens
        )
        passages += len(doclens)
        if not whole or dropped is not None:
            kept = np.ones(len(codes), bool) if whole else (codes >= first) & (codes < last)
            if dropped is not None:
                kept &= ~dropped[numbers]
            codes, numbers = codes[kept], numbers[kept]
        end = filled + len(codes)
        np.subtract(codes, first, out=rows[filled:end])
        columns[filled:end] = numbers
        filled = end
    rows, columns = rows[:filled], columns[:filled]
    # passages come in ascending order, so that a counting sort by centroid leaves every list sorted
    table = coo_array(
        (np.ones(filled, np.bool_), (rows, columns)), shape=(last - first, max(passages, 1))
    ).tocsr()
    return table.indices.astype(np.int32, copy=False), np.diff(table.indptr)


def _padded(ivf: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Zeros behind the lists where the longest would reach over the end, as in colbert-ai."""
    import torch

    longest = int(lengths.max()) if len(lengths) else 0
    last = int(lengths[:-1].sum())
    if last + longest <= len(ivf):
        return ivf
    return torch.cat((ivf, torch.zeros(longest, dtype=ivf.dtype)))
