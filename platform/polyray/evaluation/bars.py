"""Grouped bars of any figure: panels, groups on the axis, one bar a series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from polyray.evaluation.plots import _grouped, _ordered, _write
from polyray.evaluation.tables import Table

__all__ = ["Bar", "grouped_bars"]


class Bar(NamedTuple):
    """One bar of one panel."""

    panel: str
    group: str
    series: str
    value: float


def grouped_bars(
    path: str | Path,
    rows: Sequence[Bar],
    label: str,
    title: str,
    *,
    names: tuple[str, str] = ("panel", "group"),
    top: float = 100.0,
    decimals: int = 1,
) -> list[Path]:
    """Draw one panel after the other, all on one scale from 0 to at most ``top``.

    ``label`` says what the bars measure, ``names`` what panels and groups are. Everything keeps
    the order of ``rows``. Writes ``path`` (a PNG) and the page of the same name ending in
    ``.html``; returns both. Raises :class:`~polyray.errors.PolyrayError` where there is nothing
    to draw.
    """
    bars = [Bar(*row) for row in rows]
    series = _ordered(bar.series for bar in bars)
    groups = _ordered(bar.group for bar in bars)
    panels = {
        panel: {(b.group, b.series): b.value for b in bars if b.panel == panel}
        for panel in _ordered(bar.panel for bar in bars)
    }
    figure = _grouped(panels, groups, series, label, names[1], title, top=top, decimals=decimals)
    table = Table(
        [*names, *series],
        [
            [panel, group, *(values.get((group, one)) for one in series)]
            for panel, values in panels.items()
            for group in groups
            if any((group, one) in values for one in series)
        ],
        title,
        decimals=decimals,
    )
    return _write(Path(path), figure, table)
