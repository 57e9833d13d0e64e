from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from polyray.errors import PolyrayError
from polyray.evaluation import evaluate
from polyray.evaluation.plots import CLSDBar, ScenarioBar, clsd_bars, scenario_bars
from polyray.evaluation.tables import Table, TopicValue, topic_values, write_per_topic
from polyray.records import Qrel
from polyray.runs import Run

TABLE = Table(
    ["system", "id", "AP@100", "n"],
    [["=cmd|' /C calc'!A0", "=7", 0.51239, 3], ["R&D_50% {x} \\ $a^b$ ~", "-7", -0.1, None]],
    "A *caption* with 50%",
    decimals={"AP@100": 3},
    ids=["id"],
    best=["AP@100"],
)


def shown(table: Table) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(table.rich())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_csv_defuses_text_but_neither_ids_nor_numbers() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows[0] == ["system", "id", "AP@100", "n"]
    assert rows[1] == ["'=cmd|' /C calc'!A0", "=7", "0.512", "3"]
    assert rows[2][1:] == ["-7", "-0.100", ""]


@pytest.mark.parametrize("text", ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "-"])
def test_formulas_in_text(text: str) -> None:
    rows = list(csv.reader(io.StringIO(Table(["t"], [[text]]).csv(), newline="")))
    assert rows[1] == [f"'{text}".replace("\r", "\n")]


@pytest.mark.parametrize("text", ["-0.5", "+3", "-1e-5", "-12 %", "1-2", "a=b", "", "Grüße, du"])
def test_numbers_and_plain_text_stay(text: str) -> None:
    rows = list(csv.reader(io.StringIO(Table(["t", "u"], [[text, ""]]).csv())))
    assert rows[1] == [text, ""]


def test_latex_escapes_everything_special() -> None:
    tex = TABLE.latex()
    assert r"R\&D\_50\% \{x\} \textbackslash{} \$a\textasciicircum{}b\$ \textasciitilde{}" in tex
    assert r"\caption{A *caption* with 50\%}" in tex
    assert r"\textbf{0.512}" in tex
    assert r"\begin{tabular}{llrr}" in tex


def test_markdown_escapes_and_marks_the_best() -> None:
    text = Table(["s", "x"], [["a|b", 1.0], ["<b>\n*", 2.0]], decimals=1, best=["x"]).markdown()
    assert text.splitlines() == [
        "| s | x |",
        "| --- | ---: |",
        r"| a\|b | 1.0 |",
        r"| \<b\> \* | **2.0** |",
    ]


def test_ties_for_best_as_shown() -> None:
    table = Table(["x"], [[0.12341], [0.12344], [0.1]], best=["x"])
    assert table.markdown().count("**0.1234**") == 2


def test_terminal_text_neither_acts_nor_marks_up() -> None:
    text = shown(Table(["[red]x"], [["\x1b[31m[bold]evil[/bold] \u202eabc"]]))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]evil[/bold]" in text
    assert "[red]x" in text


def test_write_gives_three_files(tmp_path: Path) -> None:
    paths = TABLE.write(tmp_path / "tables", "main")
    assert [path.name for path in paths] == ["main.csv", "main.md", "main.tex"]
    assert sorted(p.name for p in (tmp_path / "tables").iterdir()) == sorted(
        path.name for path in paths
    )
    assert paths[0].read_text(encoding="utf-8") == TABLE.csv()


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(PolyrayError, match="row 2: 1 cells for 2 columns"):
        Table(["a", "b"], [[1, 2], [3]])


def test_per_topic_parquet(tmp_path: Path) -> None:
    run = Run({"007": [("a", 1.0)]})
    result = evaluate(run, [Qrel("007", "a", 1)], ["P@1", "AP@100"])
    rows = topic_values(result, "bm25", "de", "native")
    write_per_topic(tmp_path / "per_topic.parquet", rows)
    table = pq.read_table(tmp_path / "per_topic.parquet")
    assert tuple(table.column_names) == TopicValue._fields
    assert table.to_pylist()[0] == {
        "system": "bm25",
        "query_language": "de",
        "variant": "native",
        "topic_id": "007",
        "measure": "P@1",
        "value": 1.0,
        "document_language": "",
    }
    write_per_topic(tmp_path / "none.parquet", [])
    assert pq.read_table(tmp_path / "none.parquet").schema == table.schema


def test_plots_and_their_pages(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> $x^{"
    rows = [
        ScenarioBar(system, language, scenario, value)
        for system in ("bm25", evil)
        for language in ("German", "Somali")
        for scenario, value in (("MonoIR", 0.6), ("CLIR", 0.1), ("MQIR", 0.4))
    ]
    png, page = scenario_bars(tmp_path / "a.png", rows[:-1], "AP@100", "NTREX")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http://" not in text
    assert "https://" not in text
    assert text.index("CLIR</th>") < text.index("MQIR</th>") < text.index("MonoIR</th>")
    png, page = clsd_bars(tmp_path / "b.png", [CLSDBar("e5", "WMT19", "de→fr", 87.9)])
    assert png.stat().st_size > 1000
    assert "87.9" in page.read_text(encoding="utf-8")
    with pytest.raises(PolyrayError, match="nothing to plot"):
        clsd_bars(tmp_path / "c.png", [])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.png", "b.html", "b.png"]
