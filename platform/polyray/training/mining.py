"""Candidates for a teacher: each query's positive, then hard negatives out of rankings."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from polyray.config import Settings
from polyray.errors import InputError, Problem
from polyray.files import atomic_path
from polyray.retrieve.settings import Bm25System, DenseSystem
from polyray.runs import Run

__all__ = ["Mined", "Mining", "candidates", "mine"]

System = Annotated[Bm25System | DenseSystem, Field(discriminator="kind")]


class Mining(Settings):
    """Which negatives: ``negatives`` a query, from the ranks ``first_rank`` to ``last_rank``.

    Ranks count what a system finds, positives included. ``top`` takes the best, ``sample`` draws
    them with ``seed``. Several systems take turns. Documents of ``min_grade`` and above are
    positives: each gets a line of its own, and none is ever a negative.
    """

    systems: tuple[System, ...] = Field(min_length=1)
    negatives: int = Field(default=15, gt=0)
    first_rank: int = Field(default=1, gt=0)
    last_rank: int = Field(default=200, gt=0)
    choice: Literal["top", "sample"] = "top"
    seed: int = 42
    min_grade: int = 1

    @model_validator(mode="after")
    def _sound(self) -> Mining:
        if self.last_rank < self.first_rank:
            raise ValueError("last_rank is above first_rank")
        names = [system.name for system in self.systems]
        if len(set(names)) != len(names):
            raise ValueError("two systems have the same name")
        return self


@dataclass(frozen=True, slots=True)
class Mined:
    """How many lines were written, and which queries have none or fewer negatives than asked."""

    lines: int
    without_positive: tuple[str, ...]
    without_negatives: tuple[str, ...]
    fewer: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """The counts, and the first ids of each kind."""
        kinds = ("without_positive", "without_negatives", "fewer")
        found: dict[str, Any] = {"lines": self.lines}
        for kind in kinds:
            ids = getattr(self, kind)
            found |= {kind: len(ids), f"{kind}_ids": list(ids[:20])}
        return found


def candidates(
    query_id: str, runs: Sequence[Run], positives: Sequence[str], settings: Mining
) -> list[str]:
    """Negatives of one query, at most ``settings.negatives``: the systems' picks in turn.

    >>> run = Run({"q": [("a", 3.0), ("b", 2.0), ("c", 1.0)]})
    >>> candidates("q", [run], ["b"], Mining(systems=({"kind": "bm25"},), negatives=2))
    ['a', 'c']

    The draws depend on the seed, the query's id and the system's name alone.
    """
    orders = []
    for system, run in zip(settings.systems, runs, strict=True):
        ranked = run.ranked(query_id)[0] if query_id in run else ()
        window = list(ranked[settings.first_rank - 1 : settings.last_rank])
        if settings.choice == "sample":
            name = f"{settings.seed}\0{system.name}\0{query_id}"
            digest = hashlib.sha256(name.encode()).digest()
            random.Random(int.from_bytes(digest)).shuffle(window)
        orders.append(window)
    return _in_turn(orders, set(positives), settings.negatives)


def _in_turn(orders: Sequence[Sequence[str]], taken: set[str], most: int) -> list[str]:
    """The first ``most`` distinct ids, the lists taking turns; ``taken`` are passed over."""
    found: list[str] = []
    waiting = [iter(order) for order in orders]
    while waiting and len(found) < most:
        for order in list(waiting):
            pick = next((one for one in order if one not in taken), None)
            if pick is None:
                waiting.remove(order)
            elif len(found) < most:
                taken.add(pick)
                found.append(pick)
    return found


def mine(
    query_ids: Sequence[str],
    positives: Mapping[str, Sequence[str]],
    runs: Sequence[Run],
    settings: Mining,
    path: Path,
) -> Mined:
    """Write ``[qid, positive, negative, ...]`` JSON lines, one a positive, atomically.

    A query without positives or without any negative is left out. Raises
    :class:`~polyray.errors.InputError` where no line is left.
    """
    lines = 0
    without_positive, without_negatives, fewer = [], [], []

    def made() -> Iterator[list[str]]:
        for query_id in query_ids:
            own = positives.get(query_id, ())
            negatives = candidates(query_id, runs, own, settings) if own else []
            if not own:
                without_positive.append(query_id)
            elif not negatives:
                without_negatives.append(query_id)
            elif len(negatives) < settings.negatives:
                fewer.append(query_id)
            if negatives:
                yield from ([query_id, positive, *negatives] for positive in own)

    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as out,
    ):
        for line in made():
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            lines += 1
        if not lines:
            what = "no query has both a positive and a negative"
            raise InputError(Problem(str(path), None, what, "check queries, qrels and documents"))
    return Mined(lines, tuple(without_positive), tuple(without_negatives), tuple(fewer))
