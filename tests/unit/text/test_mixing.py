"""Code-Mixing Index. Expected figures: the case of tagged queries."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from polyray.cli.cmi import cmi
from polyray.errors import ConfigError, InputError
from polyray.text.mixing import code_mixing, mixing_report, read_tags, write_tags

TAGS = st.lists(st.sampled_from(["en", "de", "fa", "u", "ne"]))


def test_figures_of_the_case(cases: Path) -> None:
    folder = cases / "H15_cmi"
    right = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    report = mixing_report(read_tags(folder / "tagged.tsv"))
    found = {key: round(one["cmi_max"], 4) for key, one in report["per_query"].items()}
    assert found == right["utterance"]
    assert round(report["mean_all"]["cmi_max"], 4) == right["corpus_mean_all_9"]
    assert round(report["mean_mixed"]["cmi_max"], 4) == right["corpus_mean_mixed_only(CMI>0)"]
    assert report["share_mixed"] == 5 / 9
    assert report["counts"] == {"queries": 9, "mixed": 5, "tokens": 34, "independent": 8}
    assert report["mean_all"]["cmi_native"] is None


def test_tags_of_the_case(cases: Path) -> None:
    right = json.loads((cases / "H15_cmi" / "expected_tagging.json").read_text(encoding="utf-8"))
    for one in right.values():
        if isinstance(one, dict):
            assert code_mixing(one["tags"]).cmi_max == one["cmi"]


def test_the_two_definitions_differ_where_the_native_language_is_not_the_commonest() -> None:
    assert code_mixing(["en", "en", "en", "de"], "de") == (25.0, 75.0)
    assert code_mixing(["en", "en"], "de") == (0.0, 100.0)
    assert code_mixing(["de", "ne", "u"], "de") == (0.0, 0.0)
    assert code_mixing([], "de") == (0.0, 0.0)
    assert code_mixing(["u", "ne"]) == (0.0, None)
    assert not code_mixing(["en", "en"], "de").mixed


@settings(deadline=None)
@given(TAGS, st.sampled_from(["en", "de"]))
def test_bounds_and_order(tags: list[str], native: str) -> None:
    found = code_mixing(tags, native)
    assert found.cmi_native is not None
    assert 0.0 <= found.cmi_max <= found.cmi_native <= 100.0
    assert math.isfinite(found.cmi_native)
    assert code_mixing(tags[::-1], native) == found
    assert code_mixing([*tags, "u", "ne"], native) == found
    languages = {tag for tag in tags if tag not in ("u", "ne")}
    assert found.mixed == (len(languages) > 1)
    if languages:
        assert found.cmi_max <= 100.0 * (1 - 1 / len(languages)) + 1e-9


def test_a_bad_file_is_refused_with_every_line(tmp_path: Path) -> None:
    path = tmp_path / "tags.tsv"
    path.write_text("id\ttags\nq1\tde EN\nq2 de\nq1\tde\n\tde\nq5\tde x1\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_tags(path)
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5, 6]
    path.write_text("q1\tde en\n", encoding="utf-8")
    with pytest.raises(InputError, match="no header"):
        read_tags(path)


def test_tags_are_read_as_they_were_written(tmp_path: Path) -> None:
    tags = {"q1": ["de", "en", "u"], "q2": [], "q3": ["ne"]}
    write_tags(tmp_path / "tags.tsv", tags)
    assert read_tags(tmp_path / "tags.tsv") == tags


def test_command(tmp_path: Path) -> None:
    tags, out = tmp_path / "tags.tsv", tmp_path / "cmi.json"
    tags.write_text("id\ttags\nq1\tde en en u\nq2\tde de\n", encoding="utf-8")
    app = typer.Typer()
    app.command()(cmi)
    given = ["--tags", str(tags), "--native", "de", "--json", str(out)]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text(encoding="utf-8"))
    third = pytest.approx(100 / 3)
    assert report["per_query"]["q1"] == {"cmi_max": third, "cmi_native": pytest.approx(200 / 3)}
    assert report["mean_mixed"] == report["per_query"]["q1"]
    assert report["share_mixed"] == 0.5
    assert "33.33" in result.output
    assert "no token is tagged" not in result.output
    result = CliRunner().invoke(app, ["--tags", str(tags), "--native", "fr"])
    assert "no token is tagged fr" in result.output
    result = CliRunner().invoke(app, ["--tags", str(tags), "--native", "German"])
    assert isinstance(result.exception, ConfigError)
