"""Result tables: one object, written as CSV, Markdown and LaTeX, and shown in the terminal."""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polyray.errors import PolyrayError
from polyray.files import atomic_path

if TYPE_CHECKING:
    import rich.table

    from polyray.evaluation.measures import Evaluation

__all__ = ["Cell", "Table", "TopicValue", "plain", "topic_values", "write_per_topic"]

Cell = str | int | float | None
"""A cell; None is written as an empty one."""

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{char: f"\\{char}" for char in "&%$#_{}"},
    }
)
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&])")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)*|[.,]\d+)([eE][+-]?\d+)?\s?%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Table:
    """Columns, rows and a caption.

    ``decimals`` is the number of decimals of floats, for all columns or by column name;
    ``ids`` names the columns that hold ids, which are never changed; ``best`` names the columns
    whose highest value stands out in Markdown, LaTeX and the terminal.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    decimals: int | Mapping[str, int] = 4
    ids: Iterable[str] = ()
    best: Iterable[str] = field(default=())

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                wanted = len(self.columns)
                raise PolyrayError(f"table row {number}: {len(row)} cells for {wanted} columns")

    def write(self, folder: str | Path, name: str) -> list[Path]:
        """Write ``name.csv``, ``name.md`` and ``name.tex`` into ``folder``, each atomically."""
        written = []
        for ending, text in (("csv", self.csv()), ("md", self.markdown()), ("tex", self.latex())):
            path = Path(folder) / f"{name}.{ending}"
            with atomic_path(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
            written.append(path)
        return written

    def csv(self) -> str:
        """RFC 4180 text with a header; a text cell that a spreadsheet would run as a formula
        gets an apostrophe in front (numbers and ids are left as they are)."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([_defused(name) for name in self.columns])
        ids = set(self.ids)
        for row in self.rows:
            cells = []
            for column, cell in zip(self.columns, row, strict=True):
                text = self._text(column, cell)
                safe = column in ids or not isinstance(cell, str)
                cells.append(text if safe else _defused(re.sub("\r\n?", "\n", text)))
            writer.writerow(cells)
        return out.getvalue()

    def markdown(self) -> str:
        """A pipe table, with the caption above it."""
        lines = [_markdown(self.caption), ""] if self.caption else []
        lines.append(f"| {' | '.join(map(_markdown, self.columns))} |")
        rule = ["---:" if numeric else "---" for numeric in self.numeric()]
        lines.append(f"| {' | '.join(rule)} |")
        for cells in self._cells():
            shown = [f"**{_markdown(t)}**" if bold else _markdown(t) for t, bold in cells]
            lines.append(f"| {' | '.join(shown)} |")
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """A ``table`` environment with booktabs rules; needs ``\\usepackage{booktabs}``."""
        letters = "".join("r" if numeric else "l" for numeric in self.numeric())
        lines = [r"\begin{table}", r"\centering"]
        if self.caption:
            lines.append(rf"\caption{{{_latex(self.caption)}}}")
        lines += [rf"\begin{{tabular}}{{{letters}}}", r"\toprule"]
        lines += [" & ".join(map(_latex, self.columns)) + r" \\", r"\midrule"]
        for cells in self._cells():
            shown = [rf"\textbf{{{_latex(t)}}}" if bold else _latex(t) for t, bold in cells]
            lines.append(" & ".join(shown) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def rich(self) -> rich.table.Table:
        """The table for the terminal; markup and control characters of cells do nothing."""
        import rich.table
        from rich.text import Text

        table = rich.table.Table(title=Text(plain(self.caption)) if self.caption else None)
        for name, numeric in zip(self.columns, self.numeric(), strict=True):
            table.add_column(Text(plain(name)), justify="right" if numeric else "left")
        for cells in self._cells():
            table.add_row(*(Text(plain(t), style="bold" if bold else "") for t, bold in cells))
        return table

    def _text(self, column: str, cell: Cell) -> str:
        if cell is None:
            return ""
        if isinstance(cell, float) and math.isfinite(cell):
            places = self.decimals
            return f"{cell:.{places if isinstance(places, int) else places.get(column, 4)}f}"
        return str(cell)

    def texts(self) -> list[list[str]]:
        """Every cell as text, floats with their fixed decimals."""
        return [
            [self._text(column, cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def numeric(self) -> list[bool]:
        """For each column, whether it holds numbers (and gaps) only."""
        return [
            any(isinstance(row[index], int | float) for row in self.rows)
            and not any(isinstance(row[index], str) for row in self.rows)
            for index in range(len(self.columns))
        ]

    def _cells(self) -> list[list[tuple[str, bool]]]:
        """Every cell as its text and whether it is the highest of a column of ``best``."""
        shown = self.texts()
        marked: set[tuple[int, int]] = set()
        for index, column in enumerate(self.columns):
            if column not in set(self.best) or len(self.rows) < 2:
                continue
            values = [
                (cell, number)
                for number, row in enumerate(self.rows)
                if isinstance(cell := row[index], int | float) and math.isfinite(cell)
            ]
            if values:
                top = shown[max(values)[1]][index]
                marked |= {(n, index) for _, n in values if shown[n][index] == top}
        return [
            [(text, (number, index) in marked) for index, text in enumerate(row)]
            for number, row in enumerate(shown)
        ]


def plain(text: str) -> str:
    """``text`` with control and direction characters made visible, on one line.

    For places where text must neither act (terminals) nor deceive (pages).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c
        for c in re.sub(r"[\t\r\n]+", " ", text)
    )


def _defused(text: str) -> str:
    start = text.lstrip(" ")
    return f"'{text}" if start.startswith(_FORMULA) and not _NUMBER.fullmatch(start) else text


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", plain(text))


def _latex(text: str) -> str:
    return plain(text).translate(_LATEX)


class TopicValue(NamedTuple):
    """One measure of one topic under one system: a row of ``per_topic.parquet``."""

    system: str
    query_language: str
    variant: str
    topic_id: str
    measure: str
    value: float
    document_language: str = ""


def topic_values(
    evaluation: Evaluation,
    system: str,
    query_language: str = "",
    variant: str = "",
    document_language: str = "",
) -> list[TopicValue]:
    """The rows of one evaluation, for :func:`write_per_topic`."""
    return [
        TopicValue(system, query_language, variant, topic, measure, value, document_language)
        for topic, values in evaluation.per_topic.items()
        for measure, value in values.items()
    ]


def write_per_topic(path: str | Path, rows: Iterable[TopicValue]) -> None:
    """Write rows as Parquet with the columns of :class:`TopicValue`, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = TopicValue._fields
    schema = pa.schema([(name, pa.float64() if name == "value" else pa.string()) for name in names])
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), temporary)
