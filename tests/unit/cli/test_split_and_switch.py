"""``polyray split`` and ``polyray switch`` on small files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from polyray.cli.split import split
from polyray.cli.switch import switch
from polyray.errors import ConfigError, InputError


def _run(command: Callable[..., None], *arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


def test_split(tmp_path: Path) -> None:
    docs = tmp_path / "docs.tsv"
    docs.write_text("d1\tone two three\nd2\t \nd3\tfour\n", encoding="utf-8")
    out = tmp_path / "passages.jsonl"
    result = _run(split, "--docs", str(docs), "--out", str(out), "--length", "2", "--stride", "1")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(row["passage_id"], row["start"], row["end"], row["text"]) for row in rows] == [
        ("d1#0", 0, 7, "one two"),
        ("d1#1", 4, 13, "two three"),
        ("d3#0", 0, 4, "four"),
    ]
    lines = [line for line in result.output.splitlines() if "│" in line]
    assert [line.strip("│ ").rsplit(maxsplit=1)[-1] for line in lines] == ["3", "1", "3"]


def test_split_refuses_before_it_reads(tmp_path: Path) -> None:
    for more in (("--stride", "0"), ("--tokenizer", str(tmp_path / "none"))):
        docs = tmp_path / "docs.tsv"
        docs.write_text("d1\tone\n", encoding="utf-8")
        out = tmp_path / "passages.tsv"
        result = _run(split, "--docs", str(docs), "--out", str(out), *more)
        assert result.exit_code != 0
        assert not out.exists()
    result = _run(split, "--docs", str(docs), "--out", str(tmp_path / "passages"))
    assert isinstance(result.exception, ConfigError)


def test_split_of_a_bad_file_writes_nothing(tmp_path: Path) -> None:
    docs = tmp_path / "docs.tsv"
    docs.write_text("d1\tone\nno tab here\n", encoding="utf-8")
    result = _run(split, "--docs", str(docs), "--out", str(tmp_path / "p.tsv"))
    assert isinstance(result.exception, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["docs.tsv"]


@pytest.mark.parametrize("columns", [2, 3])
def test_switch(tmp_path: Path, columns: int) -> None:
    queries, lexicon, out = (tmp_path / name for name in ("q.tsv", "lexicon.tsv", "out.tsv"))
    cells = ["007", "The old house", "A river."]
    queries.write_text("\t".join(cells[:columns]) + "\n", encoding="utf-8")
    lexicon.write_text("house\thaus\nriver\tfluss\n", encoding="utf-8")
    result = _run(
        switch,
        *("--queries", str(queries), "--lexicon", str(lexicon), "--out", str(out)),
        *("--rate", "1", "--language", "de"),
    )
    assert result.exit_code == 0, result.output
    right = ["007", "The old haus", "A fluss."][:columns]
    assert out.read_text(encoding="utf-8") == "\t".join(right) + "\n"
    assert "1.000" in result.output


def test_switch_at_rate_0_is_the_input(tmp_path: Path) -> None:
    queries, lexicon, out = (tmp_path / name for name in ("q.tsv", "lexicon.tsv", "out.tsv"))
    queries.write_text("1\tThe house, near\n2\tخانه می‌روم\n", encoding="utf-8")
    lexicon.write_text("house\thaus\n", encoding="utf-8")
    arguments = ("--queries", str(queries), "--lexicon", str(lexicon), "--out", str(out))
    assert _run(switch, *arguments, "--rate", "0").exit_code == 0
    assert out.read_bytes() == queries.read_bytes()
    assert isinstance(_run(switch, *arguments, "--rate", "2").exception, ConfigError)
