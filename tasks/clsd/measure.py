"""P@1 as the CLSD paper has it: the true translation against its distractors.

A hit needs a score strictly higher than every distractor's: a tie is a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from polyray.errors import PolyrayError
from tasks.clsd.data import ClsdFile

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Direction",
    "Pair",
    "PairOutcome",
    "directions",
    "inner_products",
    "judge",
    "pairs",
    "summary",
]

Score = Callable[[str, str], float]
"""The similarity of a query and a candidate, both given as text."""


class Direction(NamedTuple):
    """From the query's language to the candidates'.

    >>> str(Direction("de", "fr"))
    'de->fr'
    """

    query: str
    candidates: str

    def __str__(self) -> str:
        return f"{self.query}->{self.candidates}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A query, its true translation and its distractors by column name, missing ones left out."""

    row_id: str
    direction: Direction
    query: str
    true: str
    distractors: dict[str, str]


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What came of one pair; ``best_distractor`` is the column of the highest-scoring one (the
    first of equals), ``candidates`` counts the true translation and the distractors."""

    row_id: str
    direction: str
    hit: bool
    score_true: float
    best_distractor: str
    best_distractor_score: float
    candidates: int

    @property
    def tie(self) -> bool:
        """A miss because the best distractor scores the same."""
        return self.score_true == self.best_distractor_score


def directions(file: ClsdFile) -> tuple[Direction, Direction]:
    """Both directions of a file."""
    first, second = file.languages
    return Direction(first, second), Direction(second, first)


def pairs(file: ClsdFile, direction: Direction) -> Iterator[Pair]:
    """The pairs of one direction that have a distractor; one without any cannot be missed."""
    for row in file.rows:
        found = {
            f"{direction.candidates}_adv{number}": text
            for number, text in enumerate(row.distractors[direction.candidates], start=1)
            if text is not None
        }
        if found:
            query = row.sentences[direction.query]
            yield Pair(row.row_id, direction, query, row.sentences[direction.candidates], found)


def judge(pair: Pair, score: Score) -> PairOutcome:
    """Score a pair. Raises :class:`~polyray.errors.PolyrayError` for a score that is no number."""
    true = score(pair.query, pair.true)
    scores = {name: score(pair.query, text) for name, text in pair.distractors.items()}
    if any(value != value for value in (true, *scores.values())):
        raise PolyrayError(f"row {pair.row_id!r}, {pair.direction}: a score is not a number")
    best = max(scores, key=lambda name: scores[name])
    return PairOutcome(
        pair.row_id,
        str(pair.direction),
        true > scores[best],
        true,
        best,
        scores[best],
        1 + len(scores),
    )


def inner_products(texts: Sequence[str], vectors: np.ndarray) -> Score:
    """Inner products in double precision of the texts' vectors, float32 ``[n, dim]``.

    Equal texts and equal vectors score equal to the last bit: each distinct pair of vectors is
    computed once.
    """
    import numpy as np

    place = {text: row for row, text in enumerate(texts)}
    known: dict[tuple[bytes, bytes], float] = {}

    def score(query: str, candidate: str) -> float:
        left, right = vectors[place[query]], vectors[place[candidate]]
        key = (left.tobytes(), right.tobytes())
        if key not in known:
            known[key] = float(np.dot(left.astype(np.float64), right.astype(np.float64)))
        return known[key]

    return score


def summary(outcomes: Sequence[PairOutcome]) -> dict[str, Any]:
    """``P@1`` as a fraction (None without pairs), and the counts of pairs, hits and ties."""
    hits = sum(outcome.hit for outcome in outcomes)
    return {
        "P@1": hits / len(outcomes) if outcomes else None,
        "pairs": len(outcomes),
        "hits": hits,
        "ties": sum(outcome.tie for outcome in outcomes),
    }
