"""Inverted lists: for every centroid the passages that have a token near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from polyray.indexes.plaid.engine import native

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = ["inverted_lists"]

Chunk = tuple["np.ndarray", "np.ndarray"]
"""int32 codes ``[tokens]`` and the number of tokens of each passage, int64."""


def inverted_lists(
    chunks: Callable[[], Iterator[Chunk]], centroids: int, *, dropped: np.ndarray | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 passage numbers, centroid after centroid, and int64 ``[centroids]`` their counts.

    Each list is ascending and names a passage once. ``chunks`` is called twice, to count and to
    fill; memory holds the lists and one chunk. ``dropped``, bool ``[passages]``, leaves passages
    out. The numbers end with as many zeros as colbert-ai adds.
    """
    import torch

    lengths = torch.zeros(centroids, dtype=torch.int64)
    lists = torch.zeros(0, dtype=torch.int32)
    _fill(chunks(), dropped, lengths, lists)
    starts = lengths.cumsum(0) - lengths
    lists = torch.zeros(_room(lengths), dtype=torch.int32)
    if len(lists):
        _fill(chunks(), dropped, starts, lists)
    return lists, lengths


def _fill(
    chunks: Iterator[Chunk], dropped: np.ndarray | None, ends: torch.Tensor, lists: torch.Tensor
) -> None:
    """Every chunk's passages into ``lists``; ``ends`` moves from each list's start to its end."""
    import torch

    latest = torch.full((len(ends),), -1, dtype=torch.int32)
    out = torch.zeros(0, dtype=torch.bool) if dropped is None else torch.from_numpy(dropped)
    passages = 0
    for codes, lengths in chunks:
        native().add_passages(
            torch.from_numpy(codes), torch.from_numpy(lengths), passages, out, latest, ends, lists
        )
        passages += len(lengths)


def _room(lengths: torch.Tensor) -> int:
    """All lists, and zeros behind where the longest would reach over the end, as in colbert-ai."""
    longest = int(lengths.max()) if len(lengths) else 0
    last = int(lengths[:-1].sum())
    total = int(lengths.sum())
    return total if last + longest <= total else total + longest
