"""``polyray switch`` with its options, and what it writes of every switched word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from polyray.cli.switch import switch
from polyray.errors import ConfigError, InputError

LEXICON = """\
a lot\tviel\t1
house\thaus\t0
house\tgebäude\t4
house\twohn haus\t0
the\tdie\t1
river\tдом\t1
river\tfluss\t1
"""


def run(tmp_path: Path, *arguments: str) -> Any:
    queries, lexicon = tmp_path / "q.tsv", tmp_path / "lexicon.tsv"
    queries.write_text("007\tA lot: the House\n8\tHouses, the river\n", encoding="utf-8")
    lexicon.write_text(LEXICON, encoding="utf-8")
    app = typer.Typer()
    app.command()(switch)
    files = ("--queries", str(queries), "--lexicon", str(lexicon), "--out", str(tmp_path / "out"))
    options = (*files, "--rate", "1", *arguments)
    return CliRunner().invoke(app, list(options), env={"COLUMNS": "300"})


def test_all_options_together(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    arguments = ("--content-words", "--phrases", "--single-words", "--weights", "--lemmas")
    more = ("--clean", "--senses", "2", "--language", "de", "--keep-case", "--switched", str(told))
    result = run(tmp_path, *arguments, *more)
    assert result.exit_code == 0, result.output
    expected = "007\tviel: the gebäude\n8\tgebäude, the fluss\n"
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected
    assert "wrong script" in result.output
    assert "packaged English list" in result.output
    rows = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["field"], row["tokens"]) for row in rows] == [
        ("007", "title", 3),
        ("8", "title", 3),
    ]
    assert rows[0]["replaced"] == [
        {
            "start": 0,
            "end": 5,
            "word": "A lot",
            "new_start": 0,
            "new_end": 4,
            "translation": "viel",
        },
        {
            "start": 11,
            "end": 16,
            "word": "House",
            "new_start": 10,
            "new_end": 17,
            "translation": "gebäude",
        },
    ]
    for row in rows:
        for one in row["replaced"]:
            assert row["text"][one["start"] : one["end"]] == one["word"]
            assert row["switched"][one["new_start"] : one["new_end"]] == one["translation"]


def test_own_stop_words(tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("house\n", encoding="utf-8")
    stop = ("--stop-words", str(tmp_path / "stop"))
    result = run(tmp_path, "--content-words", *stop)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out").read_text(encoding="utf-8").startswith("007\tA lot: die House\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--senses", "2"), "--clean"),
        (("--stop-words", "x"), "--content-words"),
        (("--segmenter", "magic"), "segmenter"),
        (("--source", "xx"), "source_language"),
    ],
)
def test_wrong_options_write_nothing(
    tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    result = run(tmp_path, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert named in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_weights_that_the_lexicon_lacks(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(switch)
    (tmp_path / "q.tsv").write_text("1\thouse\n", encoding="utf-8")
    (tmp_path / "plain.tsv").write_text("house\thaus\n", encoding="utf-8")
    files = ("--queries", str(tmp_path / "q.tsv"), "--lexicon", str(tmp_path / "plain.tsv"))
    result = CliRunner().invoke(app, [*files, "--out", str(tmp_path / "out"), "--weights"])
    assert isinstance(result.exception, InputError)
    assert "plain.tsv:1" in str(result.exception)
