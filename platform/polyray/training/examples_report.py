"""What was wrong with training files: counted by kind, the first of each kind listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyray.errors import Problem
from polyray.evaluation.tables import Table

__all__ = ["Findings", "Report"]

LISTED = 20
"""Places of each kind that are kept."""


@dataclass
class Findings:
    """Collects problems by kind; memory does not grow with their number."""

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[Problem]] = field(default_factory=dict)

    def add(self, kind: str, file: str | Path, line: int, detail: str = "") -> None:
        """Note one problem."""
        self.note(kind, file, (line,), lambda _: detail)

    def note(
        self,
        kind: str,
        file: str | Path,
        lines: Any,
        detail: Callable[[int], str] = lambda number: "",
    ) -> None:
        """Note one problem for each of ``lines``; ``detail`` tells more of the n-th of them."""
        if not len(lines):
            return
        self.counts[kind] = self.counts.get(kind, 0) + len(lines)
        places = self.places.setdefault(kind, [])
        for number in range(min(len(lines), LISTED - len(places))):
            more = detail(number)
            what = f"{kind}: {more}" if more else kind
            places.append(Problem(str(file), int(lines[number]), what))

    def problems(self, remedy: str) -> list[Problem]:
        """Everything that is listed, and how much more there is of each kind."""
        listed: list[Problem] = []
        for kind, places in self.places.items():
            listed += places
            if (more := self.counts[kind] - len(places)) > 0:
                listed.append(Problem(places[0].file, None, f"{kind}: {more:,} more"))
        return [*listed, Problem("examples", None, "nothing is left to train on", remedy)]


@dataclass(frozen=True)
class Report:
    """How many lines were read and used, and what was left out."""

    lines: int
    used: int
    pairs: int
    counts: dict[str, int]
    places: dict[str, list[str]]

    @classmethod
    def of(cls, findings: Findings, lines: int, used: int, pairs: int) -> Report:
        """The report of a finished reading."""
        places = {kind: [str(one) for one in found] for kind, found in findings.places.items()}
        return cls(lines, used, pairs, dict(findings.counts), places)

    def table(self, caption: str) -> Table:
        """One row a kind of problem, after the totals."""
        rows: list[tuple[str, int, str]] = [
            ("lines read", self.lines, ""),
            ("lines used", self.used, ""),
            ("passages in them", self.pairs, ""),
        ]
        rows += [(kind, count, self.places[kind][0]) for kind, count in self.counts.items()]
        return Table(("what", "count", "first"), rows, caption, ids=("first",))

    def notes(self) -> Iterable[str]:
        """Every listed place, one a line."""
        for places in self.places.values():
            yield from places
