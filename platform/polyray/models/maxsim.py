"""Exact MaxSim (Khattab & Zaharia 2020, equation 3): what every faster scorer is held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polyray.errors import PolyrayError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["max_sim"]


def max_sim(queries: Sequence[np.ndarray], passages: Sequence[np.ndarray]) -> np.ndarray:
    """float32 ``[queries, passages]``: over a query's tokens, the sum of their best similarities.

    Every element is float32 ``[tokens, dim]``. There is no padding, so that none can win, also
    where all similarities are negative. Raises :class:`~polyray.errors.PolyrayError` for a passage
    without tokens: it has no best similarity.

    >>> import numpy as np
    >>> query = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    >>> float(max_sim([query], [np.array([[-0.6, -0.8]], np.float32)])[0, 0])
    -1.399999976158142
    """
    import numpy as np

    if not passages or not queries:
        return np.zeros((len(queries), len(passages)), np.float32)
    lengths = np.array([len(matrix) for matrix in passages])
    if not lengths.all():
        raise PolyrayError(f"passage {int(np.argmin(lengths))} has no tokens to compare with")
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    tokens = np.concatenate(list(passages))
    scores: np.ndarray = np.empty((len(queries), len(passages)), np.float32)
    for row, query in enumerate(queries):
        best = np.maximum.reduceat(tokens @ query.T, starts, axis=0)
        scores[row] = best.sum(axis=1)
    return scores
