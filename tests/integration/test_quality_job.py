"""The query-quality job end to end, with an LLM that is scripted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from polyray.config import load_config
from polyray.errors import ConfigError, InputError, MissingPrerequisite
from polyray.files import read_json
from polyray.text.mixing import mixing_report, read_tags
from tasks.quality.config import QualityConfig
from tasks.quality.estimate import estimate_quality
from tasks.quality.run import QualityResult, run_quality
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "configs" / "quality" / "sample.yaml"


@pytest.fixture(scope="module", autouse=True)
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path_factory.mktemp("quality")))
        yield


def config(tmp_path: Path, *overrides: str) -> QualityConfig:
    given = [f"output={tmp_path / 'runs'}", "languages=[de, zh]", *overrides]
    return load_config(SAMPLE, given, QualityConfig)


def mixing(result: QualityResult, queries: str, code: str, variant: str) -> dict[str, Any]:
    rows = read_json(result.folder / "results.json")["mixing"]
    (row,) = [
        row
        for row in rows
        if (row["source"], row["queries"], row["language"], row["variant"])
        == ("lingua-context", queries, code, variant)
    ]
    return dict(row)


def test_sample(tmp_path: Path) -> None:
    result = run_quality(config(tmp_path))
    for queries in ("title", "description"):
        for code in ("de", "zh"):
            native, mixed = (mixing(result, queries, code, v) for v in ("native", "mixed"))
            assert native["mean_all"]["cmi_native"] < 5
            assert 25 < mixed["mean_all"]["cmi_max"] <= 50
            assert mixed["mean_all"]["cmi_native"] >= mixed["mean_all"]["cmi_max"]
            assert mixed["share_mixed"] > 0.9
    folder = result.folder
    # what the job counted, anybody can count again from the tags that it leaves
    tags = read_tags(folder / "tags" / "lingua-context" / "title.de.mixed.tsv")
    assert (
        mixing_report(tags, "de")["mean_all"] == mixing(result, "title", "de", "mixed")["mean_all"]
    )
    tokens = (folder / "tokens" / "title.de.mixed.tsv").read_text(encoding="utf-8").splitlines()
    assert [len(line.split("\t")[1].split(" ")) for line in tokens[1:]] == list(
        map(len, tags.values())
    )
    for name in (
        "quality",
        "quality_title",
        "mixing_title",
        "preferences",
        "annotators",
        "sources",
    ):
        assert (folder / "tables" / f"{name}.csv").stat().st_size > 0
    for name in ("plots/code_mixing.png", "plots/ratings.png", "environment.json", "config.yaml"):
        assert (folder / name).stat().st_size > 0
    values = pq.read_table(folder / "per_topic.parquet").to_pylist()
    assert {row["measure"] for row in values} >= {"cmi_max", "cmi_native", "realism"}
    assert any("no tagger" in note for note in result.notes) == (not result.quality.tagger)


@pytest.mark.slow
def test_ntrex_titles_give_the_published_figures(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every figure of the README's table, at its one decimal."""
    monkeypatch.setenv("POLYRAY_DATA", str(data_root))
    path = ROOT / "configs" / "quality" / "ntrex.yaml"
    given = load_config(path, [f"output={tmp_path / 'runs'}"], QualityConfig)
    settings = given.model_copy(
        update={"queries": given.queries[:1], "token_languages": given.token_languages[:1]}
    )
    result = run_quality(settings)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for measure in ("cmi_native", "cmi_max"):
        for variant in ("native", "mixed"):
            line = text.split(f"| {measure}, {variant} | ", 1)[1].split("\n", 1)[0]
            said = [float(cell) for cell in line.rstrip(" |").split(" | ")]
            found = [
                mixing(result, "title", code, variant)["mean_all"][measure]
                for code in settings.languages
            ]
            found.append(sum(found) / len(found))
            assert said == pytest.approx(found, abs=0.051), (measure, variant)


def test_a_second_start_tags_nothing_and_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, "languages=[de]")
    first = run_quality(settings)
    before = (first.folder / "results.json").read_bytes()
    monkeypatch.setattr("polyray.text.token_languages.LinguaTagger.tag", None)
    again = run_quality(settings)
    assert again.folder == first.folder
    assert (again.folder / "results.json").read_bytes() == before


def test_tags_from_a_file_and_judgments_of_unknown_queries(tmp_path: Path) -> None:
    first = run_quality(config(tmp_path, "languages=[de]"))
    path = f"{first.folder}/tags/lingua/{{queries}}.{{language}}.{{variant}}.tsv"
    source = json.dumps([{"kind": "file", "name": "people", "path": path}])
    ratings = ["ratings=null", "preferences=null"]
    again = run_quality(config(tmp_path, "languages=[de]", f"token_languages={source}", *ratings))
    assert again.quality.tags["people"] == first.quality.tags["lingua"]
    judged = tmp_path / "ratings.csv"
    header = "queries,language,query_id,annotator,accuracy,fluency,realism\n"
    judged.write_text(f"{header}title,ru,T01,a,1,1,1\ntitle,de,T99,a,1,1,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r":3: no mixed query title, de, T99") as error:
        run_quality(config(tmp_path, "languages=[de]", f"ratings={judged}"))
    assert len(error.value.problems) == 1
    with pytest.raises(ConfigError, match="only"):
        config(tmp_path, 'token_languages=[{kind: file, path: "{place}.tsv"}]')
    judged.write_text(f"{header}title,deu,T01,a,1,1,1\ntitle,DE,T01,a,1,1,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r":2: language 'deu'.*\n.*:3: language 'DE'"):
        run_quality(config(tmp_path, "languages=[de]", f"ratings={judged}"))
    judged.write_text(f"{header}title,ru,T01,a,1,1,1\ntitle,de,T01,a,1,1,1\n", encoding="utf-8")
    result = run_quality(config(tmp_path, "languages=[de]", f"ratings={judged}"))
    assert any("left out: 1 ru" in note for note in result.notes)
    missing = f'token_languages=[{{kind: file, path: "{tmp_path}/{{variant}}.tsv"}}]'
    with pytest.raises(InputError, match="no such file") as error:
        run_quality(config(tmp_path, "languages=[de]", missing, *ratings))
    assert len(error.value.problems) == 6


def test_a_tagger_that_is_not_there_is_said_before_any_work(tmp_path: Path) -> None:
    if find_spec("stanza") is not None:
        pytest.skip("stanza is installed")
    with pytest.raises(MissingPrerequisite, match="stanza is not installed"):
        run_quality(config(tmp_path, "tagger=stanza"))
    assert not (tmp_path / "runs").exists()


def _script(path: Path, *rules: dict[str, Any]) -> str:
    path.write_text(json.dumps({"answers": list(rules)}), encoding="utf-8")
    return json.dumps({"provider": {"kind": "scripted", "file": str(path)}})


def test_ratings_and_tags_by_a_scripted_llm(tmp_path: Path) -> None:
    """Good answers are counted; a refusal and a wrong number of tags are missing, not numbers."""
    good = '{"accuracy": 3, "fluency": 2}'
    rating = _script(
        tmp_path / "ratings.json",
        {"match": "Erosion", "responses": [{"content": "I would rather not say."}]},
        {"match": "", "responses": [{"content": good}]},
    )
    tagging = _script(tmp_path / "tags.json", {"match": "", "responses": [{"content": "de en"}]})
    source = f"[{{kind: lingua, name: lingua-context}}, {{kind: llm, engine: {tagging}}}]"
    settings = config(
        tmp_path, "languages=[de]", f"llm_ratings={{engine: {rating}}}", f"token_languages={source}"
    )
    planned = estimate_quality(settings)
    assert [row[:2] for row in planned.rows] == [["llm", 240], ["ratings", 80]]
    result = run_quality(settings)
    rated = result.quality.llm_ratings
    assert 0 < len(rated) < 80
    assert set(map(tuple, (own.values() for own in rated.values()))) == {(3, 2)}
    used = read_json(result.folder / "results.json")["llm"]
    # a refusal is asked about once more, as a new sample
    assert used["ratings"]["calls"] == used["ratings"]["answers"] == 80 + (80 - len(rated))
    assert used["llm"]["calls"] > 240
    assert (result.folder / "tables" / "llm.csv").is_file()
    missing = result.quality.facts["missing_ratings"]
    assert sum(sum(own.values()) for own in missing.values()) == 80 - len(rated)
    row = dict(zip(result.tables[0].columns, result.tables[0].rows[0], strict=True))
    assert (row["title LLM Acc."], row["title LLM Flu."]) == (3.0, 2.0)
    tags = result.quality.tags["llm"]
    assert all(len(own) == 2 for found in tags.values() for own in found.values())
    assert result.quality.facts["missing_tags"]["llm"]["title.de.mixed"]["count_mismatch"] > 20
    assert any("left out" in note for note in result.notes)
    assert [row[1] for row in estimate_quality(settings).rows] != [240, 80]  # stored by now


def test_without_one_usable_tag_nothing_is_a_number(tmp_path: Path) -> None:
    tagging = _script(tmp_path / "tags.json", {"match": "", "responses": [{"content": "no idea"}]})
    source = f"[{{kind: llm, engine: {tagging}}}]"
    result = run_quality(
        config(tmp_path, "languages=[de]", f"token_languages={source}", "tagger=none")
    )
    rows = read_json(result.folder / "results.json")["mixing"]
    assert {row["share_mixed"] for row in rows} == {None}
    (table,) = [table for table in result.tables if "title: Code-Mixing" in table.caption]
    assert set(table.rows[0][1:]) == {None}
