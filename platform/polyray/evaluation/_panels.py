"""What a heat map shows of an explanation, however it is drawn: rows, columns, colours, words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from polyray.evaluation.explanation import Explanation, Kind

if TYPE_CHECKING:
    import numpy as np

__all__ = ["COLOURS", "GAP", "Panel", "Row", "Scale", "caption", "clean", "panel", "short"]

COLOURS = "Blues"
"""Matplotlib's colour map of all panels, light for the lowest similarity."""

GAP = "…"
"""The label of a column that stands for passage tokens left out."""

_UNDRAWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Row(NamedTuple):
    """A row of a panel: one query token, or all [MASK] tokens together (``best`` is None)."""

    label: str
    kind: Kind
    values: np.ndarray
    contribution: float
    best: int | None


@dataclass(frozen=True, slots=True)
class Panel:
    """What is shown of one explanation; a column of more than one token is an elision."""

    title: str
    explanation: Explanation
    rows: list[Row]
    columns: list[range]

    @property
    def labels(self) -> list[str]:
        """The heads of the columns."""
        tokens = self.explanation.passage_tokens
        return [tokens[c.start] if len(c) == 1 else GAP for c in self.columns]

    @property
    def folded(self) -> bool:
        """Whether the [MASK] rows are drawn as one."""
        return any(row.best is None for row in self.rows)


class Scale(NamedTuple):
    """The similarities that the lightest and the darkest colour stand for."""

    low: float
    high: float

    @classmethod
    def of(cls, explanations: Sequence[Explanation]) -> Scale:
        """One scale for all: from the lowest to the highest similarity of any of them."""
        low = min(float(one.similarity.min()) for one in explanations)
        high = max(float(one.similarity.max()) for one in explanations)
        return cls(low, high) if low < high else cls(low - 0.5, high + 0.5)

    def rgb(self, value: float) -> tuple[float, float, float]:
        """The colour of a similarity, each part in 0..1."""
        import matplotlib

        red, green, blue, _ = matplotlib.colormaps[COLOURS](
            (value - self.low) / (self.high - self.low)
        )
        return red, green, blue


def panel(explanation: Explanation, title: str, masks: bool, max_columns: int) -> Panel:
    """Choose what is shown of one explanation; the title is the query where there is none."""
    rows = _rows(explanation, masks)
    return Panel(title or explanation.query, explanation, rows, _columns(explanation, max_columns))


def _rows(explanation: Explanation, masks: bool) -> list[Row]:
    kinds = explanation.kinds
    folded = [] if masks else [i for i, kind in enumerate(kinds) if kind == "mask"]
    contributions = explanation.contributions
    best = explanation.best
    rows = []
    for i, (token, kind) in enumerate(zip(explanation.query_tokens, kinds, strict=True)):
        if i not in folded:
            values = explanation.similarity[i]
            rows.append(Row(token, kind, values, float(contributions[i]), int(best[i])))
        elif i == folded[0]:
            mean = explanation.similarity[folded].mean(axis=0)
            total = float(contributions[folded].sum())
            rows.append(Row(f"{token} ×{len(folded)}", kind, mean, total, None))
    return rows


def _columns(explanation: Explanation, most: int) -> list[range]:
    """Every passage token, or the best matches with what is nearest to them and the gaps."""
    import numpy as np

    n = len(explanation.passage_tokens)
    best = np.unique(explanation.best)
    keep = set(range(n))
    if n > most:
        distance = np.abs(np.arange(n)[:, None] - best[None, :]).min(axis=1)
        nearest = np.argsort(distance, kind="stable")
        keep = set(nearest[: max(most, len(best))].tolist())
    columns = []
    for kept, run in groupby(range(n), key=keep.__contains__):
        places = list(run)
        if kept:
            columns += [range(i, i + 1) for i in places]
        else:
            columns.append(range(places[0], places[-1] + 1))
    return columns


def clean(text: str) -> str:
    """The text with control characters and lone surrogates replaced."""
    return _UNDRAWABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def short(text: str, most: int) -> str:
    """The text on one line of at most ``most`` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1] + GAP


def caption(panels: Sequence[Panel]) -> str:
    """How to read the panels, as far as they show it."""
    parts = [
        "Outlined: the passage token most similar to each query token (MaxSim). Right: what the"
        " match adds to the score, the sum of these numbers."
    ]
    if any(panel.folded for panel in panels):
        parts.append(
            "[MASK] rows are drawn as one: mean similarity in the cells, sum of their contributions"
            " at the right."
        )
    if any(len(column) > 1 for panel in panels for column in panel.columns):
        parts.append(f"{GAP} stands for passage tokens left out, none of them a match.")
    return " ".join(parts)
