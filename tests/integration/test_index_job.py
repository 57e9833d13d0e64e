"""The index job, and late interaction as a system of the mixed-query study."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.index import IndexConfig, run_index
from polyray.config import load_config
from polyray.errors import ConfigError
from polyray.files import read_json
from polyray.indexes.plaid.update import settings_of, update_plaid
from polyray.records import Document
from tasks.mqir.config import MqirConfig
from tasks.mqir.run import run_mqir
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
LATE = "{kind: late, name: colbert, model: 'hashing:64', passages: {length: 40, stride: 20}%s}"
BM25 = "{kind: bm25, name: bm25}"
DENSE = "{kind: dense, name: hash, model: 'hashing:64'}"


@pytest.fixture(autouse=True)
def tracked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def overrides(output: Path, *systems: str) -> list[str]:
    return [
        f"systems=[{', '.join(systems)}]",
        f"output={output}",
        f"tracking={new_store(output)}",
        "workers.cpus=1",
    ]


def test_indexes_are_made_once_and_described(tmp_path: Path, ray_session: None) -> None:
    given = overrides(tmp_path, BM25, DENSE, LATE % "")
    config = load_config(ROOT / "configs/index/sample.yaml", given, IndexConfig)
    done = run_index(config)
    (table,) = done.tables
    assert [row[:3] for row in table.rows] == [
        ["bm25", "bm25", 200],
        ["hash", "dense", 200],
        ["colbert", "late", 200],
    ]
    folders = [tmp_path / "indexes" / str(row[6]) for row in table.rows]
    before = {folder: (folder / "manifest.json").stat().st_mtime_ns for folder in folders}
    stored = read_json(done.folder / "results.json")
    late = stored["systems"]["colbert"]
    assert late["model"] == "hashing:64"
    assert late["index.passages"] > 200
    assert late["plaid.bits"] == 2
    assert late["plaid.ncells"] == "by k, as colbert-ai"
    run_index(config)
    assert before == {folder: (folder / "manifest.json").stat().st_mtime_ns for folder in folders}

    # documents go and come with nothing named but the folder
    corrected = Document("doc-0001", "Corrected: the boulders were never ordered.")
    changed = update_plaid(folders[2], add=[corrected], delete=["doc-0001", "doc-0002"])
    assert changed["documents"] == 199
    assert settings_of(folders[2]).encoder.model == "hashing:64"


def test_late_interaction_in_the_study_whole_and_in_parts(
    tmp_path: Path, ray_session: None
) -> None:
    """The hashing encoder knows equal words alone: German queries find less than the others.

    A function word of a query matches in every document as well as any other word, and mixing
    replaces some of them: so English queries need not find more than mixed ones.
    """
    fused = "{kind: fusion, name: rrf, of: [bm25, colbert]}"
    found = {}
    for parts in (1, 2):
        late = LATE % f", parts: {parts}, search: {{exhaustive: true}}"
        given = [*overrides(tmp_path, BM25, late, fused), "languages=[de]", "targets=[english]"]
        config = load_config(ROOT / "configs/quickstart.yaml", given, MqirConfig)
        result = run_mqir(config)
        found[parts] = {
            (score.system, score.condition.scenario): score.evaluation.measures["AP@100"]
            for score in result.scores
        }
        assert len(found[parts]) == 9
    for scenario in ("MonoIR", "MQIR", "CLIR"):
        assert found[2]["colbert", scenario] == pytest.approx(
            found[1]["colbert", scenario], abs=0.02
        ), "parts have codecs of their own"
    whole = found[1]
    for scenario in ("MonoIR", "MQIR"):
        assert whole["colbert", "CLIR"] < 0.5 * whole["colbert", scenario]


def test_wrong_settings_are_named() -> None:
    path = ROOT / "configs/index/sample.yaml"
    with pytest.raises(ConfigError, match="two systems have the same name"):
        load_config(path, [f"systems=[{BM25}, {BM25}]"], IndexConfig)
    with pytest.raises(ConfigError, match="either a model"):
        load_config(path, ["systems=[{kind: late, name: x}]"], IndexConfig)
    with pytest.raises(ConfigError, match=r"documents\.language"):
        load_config(path, ["documents.language=xx"], IndexConfig)
