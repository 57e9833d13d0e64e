"""Bar charts of the two studies: a PNG, and beside it a page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyray.errors import PolyrayError
from polyray.evaluation.tables import Table, plain
from polyray.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CLSDBar", "ScenarioBar", "clsd_bars", "scenario_bars"]

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Colours that colour-blind readers tell apart (Okabe and Ito 2008)."""

SCENARIOS = ("CLIR", "MQIR", "MonoIR")
"""The order of the bars: native, mixed and document-language queries."""


class ScenarioBar(NamedTuple):
    """One bar: how well a system does for one language in one scenario."""

    system: str
    language: str
    scenario: str
    value: float


class CLSDBar(NamedTuple):
    """One bar: how often (percent) a model picks the true translation."""

    model: str
    dataset: str
    direction: str
    value: float


def scenario_bars(
    path: str | Path, rows: Sequence[ScenarioBar], measure: str, title: str = ""
) -> list[Path]:
    """Draw one panel a system, one group of bars a language, one bar a scenario.

    Languages, systems and scenarios other than CLIR, MQIR and MonoIR keep the order of ``rows``.
    Writes ``path`` (a PNG) and the page of the same name ending in ``.html``; returns both.
    Raises :class:`~polyray.errors.PolyrayError` where there is nothing to draw.
    """
    bars = [ScenarioBar(*row) for row in rows]
    given = _ordered(bar.scenario for bar in bars)
    series = [s for s in SCENARIOS if s in given] + [s for s in given if s not in SCENARIOS]
    panels = {
        system: {(b.language, b.scenario): b.value for b in bars if b.system == system}
        for system in _ordered(bar.system for bar in bars)
    }
    groups = _ordered(bar.language for bar in bars)
    figure = _grouped(panels, groups, series, measure, "query language", title)
    table = Table(
        ["system", "language", *series],
        [
            [system, language, *(panel.get((language, s)) for s in series)]
            for system, panel in panels.items()
            for language in groups
            if any((language, s) in panel for s in series)
        ],
        title or f"{measure} by language and scenario",
    )
    return _write(Path(path), figure, table)


def clsd_bars(path: str | Path, rows: Sequence[CLSDBar], title: str = "") -> list[Path]:
    """Draw P@1 in percent: one panel a data set, one group a model, one bar a direction.

    Writes ``path`` (a PNG) and the page of the same name ending in ``.html``; returns both.
    Raises :class:`~polyray.errors.PolyrayError` where there is nothing to draw.
    """
    bars = [CLSDBar(*row) for row in rows]
    series = _ordered(bar.direction for bar in bars)
    panels = {
        dataset: {(b.model, b.direction): b.value for b in bars if b.dataset == dataset}
        for dataset in _ordered(bar.dataset for bar in bars)
    }
    groups = _ordered(bar.model for bar in bars)
    figure = _grouped(panels, groups, series, "P@1 (%)", "", title, top=100.0, decimals=1)
    table = Table(
        ["data set", "model", *series],
        [
            [dataset, model, *(panel.get((model, s)) for s in series)]
            for dataset, panel in panels.items()
            for model in groups
            if any((model, s) in panel for s in series)
        ],
        title or "P@1 in percent: the true translation scores above every distractor",
        decimals=1,
    )
    return _write(Path(path), figure, table)


def _ordered(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _grouped(
    panels: Mapping[str, Mapping[tuple[str, str], float]],
    groups: Sequence[str],
    series: Sequence[str],
    label: str,
    group_label: str,
    title: str,
    top: float = 1.0,
    decimals: int = 2,
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    if not panels:
        raise PolyrayError("there is nothing to plot: no rows")
    width = min(40.0, max(6.0, 1.6 + 0.42 * len(groups) * (len(series) + 0.8)))
    figure = Figure(figsize=(width, 0.9 + 2.6 * len(panels)), dpi=120, layout="constrained")
    rows: Any = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)
    highest = max((v for panel in panels.values() for v in panel.values()), default=0.0)
    for axes, (name, panel) in zip(rows[:, 0], panels.items(), strict=True):
        _panel(axes, panel, groups, series, decimals)
        axes.set_title(name, fontsize=10, loc="left", parse_math=False)
        axes.set_ylabel(label)
        axes.set_ylim(0.0, min(top, highest * 1.15) if highest > 0 else top)
    last = rows[-1, 0]
    longest = max(map(len, groups))
    turned = {"rotation": 20, "ha": "right"} if longest > 9 else {}
    last.set_xticks(range(len(groups)), groups, parse_math=False, **turned)
    last.set_xlabel(group_label)
    handles = [Patch(color=PALETTE[i % len(PALETTE)]) for i in range(len(series))]
    legend = figure.legend(handles, series, loc="outside right upper", frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    if title:
        figure.suptitle(title, fontsize=11, parse_math=False)
    return figure


def _panel(
    axes: Axes,
    panel: Mapping[tuple[str, str], float],
    groups: Sequence[str],
    series: Sequence[str],
    decimals: int,
) -> None:
    step = 0.84 / len(series)
    for number, one in enumerate(series):
        places = [i for i, group in enumerate(groups) if (group, one) in panel]
        offset = (number - (len(series) - 1) / 2) * step
        bars = axes.bar(
            [place + offset for place in places],
            [panel[groups[place], one] for place in places],
            step * 0.94,
            color=PALETTE[number % len(PALETTE)],
        )
        axes.bar_label(bars, fmt=f"%.{decimals}f", fontsize=6, padding=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(-0.6, len(groups) - 0.4)


def _write(path: Path, figure: Figure, table: Table) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    image = io.BytesIO()
    canvas.print_png(image)
    page = path.with_suffix(".html")
    with atomic_path(path) as temporary:
        temporary.write_bytes(image.getvalue())
    with atomic_path(page) as temporary:
        temporary.write_text(_page(image.getvalue(), table), encoding="utf-8")
    return [path, page]


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em; color: #222; }}
img {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin-top: 1.5em; }}
th, td {{ padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: left; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
<h1>{title}</h1>
<img src="data:image/png;base64,{image}" alt="{title}; the figures are in the table below">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</body>
</html>
"""


def _page(image: bytes, table: Table) -> str:
    numeric = table.numeric()
    marks = [' class="n"' if right else "" for right in numeric]

    def row(tag: str, cells: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{mark}>{html.escape(plain(cell))}</{tag}>"
            for mark, cell in zip(marks, cells, strict=True)
        )

    return _PAGE.format(
        title=html.escape(plain(table.caption)),
        image=base64.b64encode(image).decode("ascii"),
        head=row("th", list(table.columns)),
        body="\n".join(f"<tr>{row('td', cells)}</tr>" for cells in table.texts()),
    )
