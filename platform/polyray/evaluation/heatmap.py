"""Heat maps of token-level explanations: a PNG, and beside it a page that needs nothing else.

Query tokens go down, passage tokens across; the passage token that each query token matched is
outlined, and what the match adds to the score stands at the right.
"""

from __future__ import annotations

import html
import io
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import PolyrayError
from polyray.evaluation._panels import COLOURS, Panel, Row, Scale, caption, clean, panel, short
from polyray.evaluation.explanation import Explanation
from polyray.evaluation.plots import PALETTE
from polyray.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.image import AxesImage

__all__ = ["heat_map", "heat_maps"]

OUTLINE = PALETTE[5]
MUTED = "#767676"

_FONTS = (
    "DejaVu Sans",
    *(f"Noto Sans {name}" for name in ("CJK SC", "CJK JP", "SC", "JP", "KR")),
    *(f"Noto Sans {name}" for name in ("Arabic", "Devanagari", "Bengali", "Tamil", "Ethiopic")),
    *("WenQuanYi Zen Hei", "Droid Sans Fallback", "Microsoft YaHei", "PingFang SC"),
    *("Hiragino Sans", "Arial Unicode MS", "Unifont"),
)
_CELL = 0.2
"""Side of a cell of the PNG, in inches."""
_NUMBERS = 2.1
"""Width of the contributions beside the cells of the PNG, in cells."""
_SIDE_BY_SIDE = 100
"""The most columns, of all panels together, that stand side by side in the PNG."""
_LARGEST = 16_000
"""The most pixels of the PNG along one side."""


def heat_map(
    path: str | Path,
    explanation: Explanation,
    title: str = "",
    *,
    masks: bool = False,
    max_columns: int = 80,
) -> list[Path]:
    """Draw one explanation; see :func:`heat_maps`."""
    titles = [title] if title else []
    return heat_maps(path, [explanation], titles, masks=masks, max_columns=max_columns)


def heat_maps(
    path: str | Path,
    explanations: Sequence[Explanation],
    titles: Sequence[str] = (),
    *,
    masks: bool = False,
    max_columns: int = 80,
) -> list[Path]:
    """Draw explanations next to each other, all with the same colours for the same similarity.

    Writes ``path`` (a PNG) and the page of the same name ending in ``.html``; returns both. A
    panel's title (default: the query) is followed by the score.

    Unless ``masks``, the rows of [MASK] padding are drawn as one: its cells are the *mean*
    similarity of those rows, its number is the *sum* of their contributions. A passage of more
    than ``max_columns`` tokens is cut to the best matches of all query tokens, which are always
    kept, and the tokens nearest to them; each run of tokens left out is one column "…".

    The PNG shows only the scripts that the installed fonts cover; the page shows every script.
    Raises :class:`~polyray.errors.PolyrayError` where there is nothing to draw, for another number
    of titles than explanations and for ``max_columns`` below 1.
    """
    if not explanations:
        raise PolyrayError("there is nothing to draw: no explanations")
    if titles and len(titles) != len(explanations):
        raise PolyrayError(f"{len(titles)} titles for {len(explanations)} explanations")
    if max_columns < 1:
        raise PolyrayError(f"max_columns is {max_columns}, but at least one has to be shown")
    panels = [
        panel(one, title, masks, max_columns)
        for one, title in zip(explanations, titles or [""] * len(explanations), strict=True)
    ]
    scale = Scale.of(explanations)
    target = Path(path)
    page = target.with_suffix(".html")
    image = _png(_figure(panels, scale))
    text = _page(panels, scale)
    with atomic_path(target) as temporary:
        temporary.write_bytes(image)
    with atomic_path(page) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return [target, page]


def _font(size: float, **style: Any) -> FontProperties:
    from matplotlib.font_manager import FontProperties, fontManager

    installed = set(fontManager.get_font_names())
    families = [name for name in _FONTS if name in installed]
    return FontProperties(family=families, size=size, **style)


def _figure(panels: Sequence[Panel], scale: Scale) -> Figure:
    from matplotlib.figure import Figure

    across = len(panels) > 1 and sum(len(p.columns) for p in panels) <= _SIDE_BY_SIDE
    widths = [max(len(p.columns) + _NUMBERS, 12.0) for p in panels]
    heights = [max(float(len(p.rows)), 5.0) for p in panels]
    if across:
        heights = [max(heights)] * len(panels)
    else:
        widths = [max(widths)] * len(panels)
    left = 0.3 + 0.075 * max(len(short(row.label, 20)) for p in panels for row in p.rows)
    above = 0.8 + 0.075 * max(len(short(label, 20)) for p in panels for label in p.labels)
    grid = (1, len(panels)) if across else (len(panels), 1)
    width = max(4.5, sum(widths[: grid[1]]) * _CELL + left * grid[1] + 0.9)
    height = max(2.8, sum(heights[: grid[0]]) * _CELL + above * grid[0] + 0.6)
    dpi = min(150.0, _LARGEST / max(width, height))
    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    axes: Any = figure.subplots(
        *grid,
        squeeze=False,
        width_ratios=widths[: grid[1]],
        height_ratios=heights[: grid[0]],
    )
    for one, shown, cells, rows in zip(axes.flat, panels, widths, heights, strict=True):
        image = _draw(one, shown, scale)
        one.set_xlim(-0.5, cells - 0.5)
        one.set_ylim(rows - 0.5, -0.5)
        letters = int(18 * max(cells * _CELL, 3.0))
        title = textwrap.fill(short(shown.title, 120), letters)
        title += f"\nscore {shown.explanation.score:z.3f}"
        font = _font(9, weight="bold")
        one.set_title(title, loc="left", fontproperties=font, parse_math=False)
    bar = figure.colorbar(
        image, ax=list(axes.flat), aspect=20, shrink=0.8, fraction=0.4 / width, pad=0.1 / width
    )
    bar.set_label("similarity", fontsize=7)
    bar.ax.tick_params(labelsize=6)
    bar.outline.set_visible(False)
    words = textwrap.fill(caption(panels), int(16 * width))
    figure.supxlabel(words, x=0.01, ha="left", fontsize=7, color=MUTED)
    return figure


def _draw(axes: Axes, panel: Panel, scale: Scale) -> AxesImage:
    import matplotlib
    import numpy as np
    from matplotlib.patches import Rectangle

    n_rows, n_columns = len(panel.rows), len(panel.columns)
    shown = np.full((n_rows, n_columns), np.nan)
    places = {column.start: j for j, column in enumerate(panel.columns) if len(column) == 1}
    for place, j in places.items():
        shown[:, j] = [row.values[place] for row in panel.rows]
    colours = matplotlib.colormaps[COLOURS].with_extremes(bad="#f4f4f4")
    image = axes.imshow(shown, colours, vmin=scale.low, vmax=scale.high, aspect="auto")
    text: dict[str, Any] = {"fontproperties": _font(7), "parse_math": False}
    axes.xaxis.tick_top()
    axes.set_xticks(range(n_columns), [short(t, 20) for t in panel.labels], rotation=90, **text)
    axes.set_yticks(range(n_rows), [short(row.label, 20) for row in panel.rows], **text)
    for label, row in zip(axes.get_yticklabels(), panel.rows, strict=True):
        label.set_color("black" if row.kind == "text" else MUTED)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    end = n_columns - 0.5
    lines: dict[str, Any] = {"colors": "white", "linewidth": 0.5}
    axes.hlines([i - 0.5 for i in range(1, n_rows)], -0.5, end, **lines)
    axes.vlines([j - 0.5 for j in range(1, n_columns)], -0.5, n_rows - 0.5, **lines)
    outline: dict[str, Any] = {"fill": False, "edgecolor": OUTLINE, "linewidth": 1.5, "zorder": 3}
    for i, row in enumerate(panel.rows):
        if row.best is not None:
            axes.add_patch(Rectangle((places[row.best] - 0.5, i - 0.5), 1, 1, **outline))
        number = f"{row.contribution:z.3f}"
        axes.text(end + _NUMBERS, i, number, ha="right", va="center_baseline", fontsize=7)
    return image


def _png(figure: Figure) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    image = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        FigureCanvasAgg(figure).print_png(image)
    return image.getvalue()


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 1em; color: #222; }}
.panels {{ display: flex; flex-wrap: wrap; gap: 1.5em; align-items: flex-start; }}
section {{ max-width: 100%; }}
h2 {{ font-size: 1.1em; margin: .3em 0; }}
dl {{ display: grid; grid-template-columns: auto 1fr; gap: .2em .8em; margin: 0 0 .8em;
 max-width: 60em; font-size: .9em; width: 0; min-width: 100%; }}
dt {{ color: #666; }} dd {{ margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .8em; }}
th {{ font-weight: normal; white-space: nowrap; }}
thead th {{ vertical-align: bottom; padding: .2em 0; }}
thead th span {{ writing-mode: vertical-rl; }}
tbody th, tfoot th {{ text-align: right; padding: 0 .5em; position: sticky; left: 0;
 background: #fff; }}
td {{ min-width: 1.5em; height: 1.5em; padding: 0; text-align: center; border: 1px solid #fff; }}
td.best {{ outline: 2px solid {outline}; outline-offset: -2px; }}
td.gap, th.gap, .aside {{ color: {muted}; }} td.gap {{ background: #f4f4f4; }}
th.match {{ text-align: left; padding: .2em .5em; }}
td.n, th.n {{ text-align: right; padding: 0 .5em; font-variant-numeric: tabular-nums; }}
td.match {{ text-align: left; padding: 0 .5em; white-space: nowrap; }}
tfoot td, tfoot th {{ font-weight: bold; border-top: 2px solid #222; }}
.scale {{ display: inline-block; width: 12em; height: .9em; vertical-align: middle;
 background: linear-gradient(to right, {gradient}); }}
</style>
</head>
<body>
<h1>Token matches</h1>
<p>{caption}</p>
<p>similarity {low} <span class="scale"></span> {high}</p>
<div class="panels">
{panels}
</div>
</body>
</html>
"""

_SECTION = """<section>
<h2 dir="auto">{title}</h2>
<dl>
<dt>query</dt><dd dir="auto">{query}</dd>
<dt>passage</dt><dd dir="auto">{passage}</dd>
<dt>score</dt><dd>{score}</dd>
</dl>
<div class="wide"><table>
<thead><tr><td></td>{head}<th class="n" scope="col">adds</th>\
<th class="match" scope="col">match</th></tr></thead>
<tbody>
{body}
</tbody>
<tfoot><tr><th scope="row">score</th><td colspan="{columns}"></td><td class="n">{score}</td>\
<td></td></tr></tfoot>
</table></div>
</section>"""


def _page(panels: Sequence[Panel], scale: Scale) -> str:
    from matplotlib.colors import to_hex

    low, high = scale
    steps = [low + (high - low) * step / 8 for step in range(9)]
    return _PAGE.format(
        title=_escape("Token matches: " + " | ".join(panel.title for panel in panels)),
        outline=OUTLINE,
        muted=MUTED,
        gradient=", ".join(to_hex(scale.rgb(value)) for value in steps),
        caption=_escape(caption(panels)),
        low=f"{low:z.3f}",
        high=f"{high:z.3f}",
        panels="\n".join(_section(panel, scale) for panel in panels),
    )


def _section(panel: Panel, scale: Scale) -> str:
    head = []
    for label, column in zip(panel.labels, panel.columns, strict=True):
        if len(column) > 1:
            head.append(f'<th class="gap" title="{len(column)} tokens left out">{label}</th>')
        else:
            head.append(f'<th scope="col"><span dir="auto">{_escape(label)}</span></th>')
    return _SECTION.format(
        title=_escape(panel.title),
        query=_escape(panel.explanation.query),
        passage=_escape(panel.explanation.passage),
        score=f"{panel.explanation.score:z.3f}",
        head="".join(head),
        body="\n".join(_table_row(panel, row, scale) for row in panel.rows),
        columns=len(panel.columns),
    )


def _table_row(panel: Panel, row: Row, scale: Scale) -> str:
    from matplotlib.colors import to_hex

    tokens = panel.explanation.passage_tokens
    aside = "" if row.kind == "text" else ' class="aside"'
    cells = [f'<th scope="row"{aside} dir="auto">{_escape(row.label)}</th>']
    mean = "mean " if row.best is None else ""
    for column in panel.columns:
        place = column.start
        if len(column) > 1:
            cells.append('<td class="gap"></td>')
            continue
        value = float(row.values[place])
        red, green, blue = colour = scale.rgb(value)
        best = place == row.best
        ink = "#000" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "#fff"
        cells.append(
            f'<td{" class=best" if best else ""} style="background:{to_hex(colour)};color:{ink}"'
            f' title="{_escape(f"{row.label} / {tokens[place]}: {mean}{value:z.3f}")}">'
            f"{'×' if best else ''}</td>"
        )
    match = "" if row.best is None else _escape(tokens[row.best])
    cells.append(f'<td class="n">{row.contribution:z.3f}</td>')
    cells.append(f'<td class="match" dir="auto">{match}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _escape(text: str) -> str:
    return html.escape(clean(text))
