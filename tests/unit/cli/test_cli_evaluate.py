from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from polyray.cli.evaluate import evaluate
from polyray.errors import InputError

APP = typer.Typer()
APP.command()(evaluate)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n3 0 a 0\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n3 Q0 a 1 1 t\n9 Q0 a 1 1 t\n")
    return ["--qrels", str(tmp_path / "qrels"), "--run", str(tmp_path / "run")]


def test_the_table_names_both_means_and_the_gaps(files: list[str]) -> None:
    result = CliRunner().invoke(APP, files, env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "The headline is the mean, topics with a relevant document" in result.output
    assert "mean, all judged topics" in result.output
    assert "1 judged topic without results, 1 run topic without judgments" in result.output
    assert "1 topic without relevant documents: 3" in result.output
    assert "0.3333" in result.output


def test_json_on_the_output_is_json_only(files: list[str]) -> None:
    options = ["--measure", "AP@100", "--measure", "P@1", "--json", "-"]
    result = CliRunner().invoke(APP, [*files, *options])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "measures": {"AP@100": 0.5, "P@1": 0.5},
        "measures_all_judged": {"AP@100": 1 / 3, "P@1": 1 / 3},
        "topics": {"judged": 3, "with_relevant": 2, "retrieved": 2, "missing": 1, "unjudged": 1},
        "per_topic": {
            "1": {"AP@100": 1.0, "P@1": 1.0},
            "2": {"AP@100": 0.0, "P@1": 0.0},
            "3": {"AP@100": 0.0, "P@1": 0.0},
        },
    }


def test_json_file_and_topics(files: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(APP, [*files, "--per-topic", "--json", str(tmp_path / "o.json")])
    assert result.exit_code == 0
    assert "Every judged topic" in result.output
    written = json.loads((tmp_path / "o.json").read_text())
    assert list(written["measures"]) == sorted(["AP@100", "nDCG@20", "P@1", "R@100"])


def test_duplicates(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("1 Q0 b 1 3 t\n1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n")
    result = CliRunner().invoke(APP, files)
    assert isinstance(result.exception, InputError)
    assert "lines 2 and 3" in str(result.exception)
    result = CliRunner().invoke(APP, [*files, "--duplicates", "best", "--json", "-"])
    assert json.loads(result.stdout)["per_topic"]["1"]["AP@100"] == 0.5
