"""Checks across files, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyray.cli.check import check as command
from polyray.collections.check import check_together
from polyray.errors import ConfigError, InputError


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    contents = {
        "docs": "a\tx\nb\t\u200b\n",
        "queries": "q1\tone\nq2\ttwo\nq3\tthree\n",
        "qrels": "q1 0 a 1\nq2 0 b 0\nq4 0 c 1\n",
        "run": "q1 Q0 a 1 1.5 t\nq1 Q0 d 2 0.5 t\n",
        "lexicon": "one\teins\n",
    }
    paths = {}
    for name, text in contents.items():
        path = tmp_path / f"{name}.tsv"
        path.write_text(text, encoding="utf-8")
        paths[name] = str(path)
    return paths


def test_counts(files: dict[str, str]) -> None:
    problems, counts = check_together(**files)
    assert problems == []
    assert counts == {
        "judgments": 3,
        "judged topics": 3,
        "relevant judgments": 2,
        "judged topics without a relevant document": 1,
        "results": 2,
        "topics with results": 1,
        "judged topics without results": 2,
        "topics": 3,
        "topic texts": 3,
        "languages named": 0,
        "topic texts without title": 0,
        "topic texts without title and description": 0,
        "topics without judgments": 1,
        "judged topics that are missing": 1,
        "documents": 2,
        "documents without text": 1,
        "judged or retrieved documents that are missing": 2,
        "words": 1,
        "translations": 1,
    }


def test_command(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    command(**files)
    out = capsys.readouterr().out
    assert "no problems found" in out
    assert "judgments" in out


def test_command_names_all_problems_of_all_files(files: dict[str, str]) -> None:
    Path(files["qrels"]).write_text("q1 0 a 1\nq1 0 b 0.5\n")
    Path(files["run"]).write_text("q1 Q0 a 1 nan t\n")
    with pytest.raises(InputError) as error:
        command(**files)
    assert f"{files['qrels']}:2: " in str(error.value)
    assert f"{files['run']}:1: " in str(error.value)
    assert error.value.exit_code == 2
    with pytest.raises(ConfigError, match="nothing to check"):
        command()
