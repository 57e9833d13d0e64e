"""How alike two sentences look: the measures that the CLSD paper describes its data with."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["BINS", "bin_of", "edit_similarity", "jaccard", "sibling_jaccard", "word_set"]

BINS = ((0.9, 1.0), (0.8, 0.9), (0.7, 0.8), (0.6, 0.7), (0.3, 0.6))
"""Bins of edit similarity, open below and closed above, as in the paper's table of them."""

_WORD = re.compile(r"\b\w\w+\b")


def edit_similarity(first: str, second: str) -> float:
    """InDel ratio in 0..1 (1: equal), what the paper calls Levenshtein similarity.

    >>> edit_similarity("ab", "ac")
    0.5
    """
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(first, second))


def word_set(text: str) -> frozenset[str]:
    """Lower-cased words of two or more word characters (CountVectorizer's default)."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(first: str, second: str) -> float:
    """Shared words of all words, in 0..1; 1 where neither has any.

    >>> jaccard("the old house", "the new house")
    0.5
    """
    own, other = word_set(first), word_set(second)
    return len(own & other) / len(own | other) if own | other else 1.0


def sibling_jaccard(texts: Sequence[str]) -> list[float]:
    """For each distractor its mean Jaccard with the others; none where there is but one."""
    if len(texts) < 2:
        return []
    return [
        sum(jaccard(text, other) for at, other in enumerate(texts) if at != place)
        / (len(texts) - 1)
        for place, text in enumerate(texts)
    ]


def bin_of(similarity: float) -> str:
    """The bin that an edit similarity falls in; ``"0.0-0.3"`` below all of them.

    >>> bin_of(0.9), bin_of(0.91)
    ('0.8-0.9', '0.9-1.0')
    """
    for low, high in BINS:
        if low < similarity <= high:
            return f"{low}-{high}"
    return "0.0-0.3"
