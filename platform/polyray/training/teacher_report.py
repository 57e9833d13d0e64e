"""What a teacher's scores are like: how easy the examples are, and how sharp the teacher is."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

from polyray.evaluation.tables import Table
from polyray.files import open_binary

__all__ = ["TeacherReport"]

_PARTS = (0, 10, 25, 50, 75, 90, 100)


class TeacherReport:
    """Counts over a file of ``[qid, [pid, score], ...]`` lines, the positive first.

    The margin is the positive's score less the best other one's; the spread is the standard
    deviation of a line's scores; the share is the positive's part of the softmax over the line,
    which is the target that a student learns. A positive that ties is not first.
    """

    def __init__(self, path: Path) -> None:
        self._ranks, self._margins = array("q"), array("d")
        self._spreads, self._shares = array("d"), array("d")
        self._pairs = 0
        import orjson

        with open_binary(path) as handle:
            for line in handle:
                self._add([score for _, score in orjson.loads(line)[1:]])

    def _add(self, scores: list[float]) -> None:
        import numpy as np

        values: np.ndarray = np.array(scores)
        others = values[1:]
        self._pairs += len(values)
        self._ranks.append(1 + int((others >= values[0]).sum()))
        self._margins.append(float(values[0] - others.max(initial=-np.inf)))
        self._spreads.append(float(values.std()))
        powers = np.exp(values - values.max())
        self._shares.append(float(powers[0] / powers.sum()))

    def facts(self) -> dict[str, Any]:
        """Figures by name; percentiles by ``p10`` and so on."""
        import numpy as np

        ranks = np.array(self._ranks)
        found: dict[str, Any] = {
            "lines": len(ranks),
            "pairs": self._pairs,
            "positive_first": float((ranks == 1).mean()),
            "positive_reciprocal_rank": float((1 / ranks).mean()),
        }
        for name, values in (
            ("margin", self._margins),
            ("spread", self._spreads),
            ("positive_share", self._shares),
        ):
            column = np.array(values)
            finite = column[np.isfinite(column)]
            found[f"{name}_mean"] = float(finite.mean()) if len(finite) else None
            for part in _PARTS if len(finite) else ():
                found[f"{name}_p{part}"] = float(np.percentile(finite, part))
        return found

    def table(self, caption: str) -> Table:
        """One row a distribution, and the share of lines whose positive is first."""
        facts = self.facts()
        names = [*(f"p{part}" for part in _PARTS), "mean"]
        rows = [
            [shown, *(facts.get(f"{name}_{part}") for part in names)]
            for name, shown in (
                ("margin", "margin of the positive"),
                ("spread", "standard deviation in a line"),
                ("positive_share", "softmax share of the positive"),
            )
        ]
        first = f"positive first in {facts['positive_first']:.1%} of {facts['lines']:,} lines"
        return Table(["of a line", *names], rows, f"{caption}: {first}", decimals=3)
