"""The mixed-query job end to end: results, restart, kill, tracking, agreement with trec_eval."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from polyray.config import load_config
from polyray.files import read_json
from tasks.mqir.config import MqirConfig
from tasks.mqir.run import MqirResult, run_mqir
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = (
    "systems=[{kind: bm25, name: bm25}, {kind: dense, name: hash, model: 'hashing:64'},"
    " {kind: fusion, name: rrf, of: [bm25, hash]}]"
)
CONDITIONS = 1 + 2 * 8 + 3
SHARDS = 50
"""200 documents in shards of four."""


def quickstart(output: Path, *more: str) -> MqirConfig:
    overrides = [SYSTEMS, f"output={output}", f"tracking={new_store(output)}", *more]
    return load_config(ROOT / "configs" / "quickstart.yaml", overrides, MqirConfig)


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of every result that must not depend on when and how often the job ran."""
    kept = ("results.json", "per_topic.parquet", "config.yaml", "inputs.json")
    files = [p for p in folder.rglob("*") if p.suffix in (".trec", ".csv", ".md", ".tex")]
    files += [folder / name for name in kept]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, ray_session: None
) -> tuple[MqirResult, Path]:
    output = tmp_path_factory.mktemp("mqir")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        return run_mqir(quickstart(output)), output


def test_every_system_is_scored_under_every_condition(finished: tuple[MqirResult, Path]) -> None:
    result, _ = finished
    assert len(result.scores) == 3 * CONDITIONS
    assert {s.condition.scenario for s in result.scores} == {"MonoIR", "CLIR", "MQIR"}
    stored = read_json(result.folder / "results.json")
    assert len(stored["scores"]) == 3 * CONDITIONS
    assert stored["collections"]["en"] == {
        "documents": 200,
        "skipped_empty": 0,
        "skipped_empty_ids": [],
    }
    for score in result.scores:
        assert score.evaluation.topics["judged"] == 40
        assert all(0 <= value <= 1 for value in score.evaluation.measures.values())


def test_lexical_search_needs_shared_words(finished: tuple[MqirResult, Path]) -> None:
    """CLIR < MQIR < MonoIR for BM25 in every language (MiLQ, table 3, has the same order)."""
    result, _ = finished
    bm25 = {
        s.condition.name: s.evaluation.measures["AP@100"]
        for s in result.scores
        if s.system == "bm25" and s.condition.documents == "en"
    }
    for code in ("sw", "so", "fi", "de", "fr", "zh", "fa", "ru"):
        assert bm25[f"en.{code}.native"] < bm25[f"en.{code}.mixed"] < bm25["en.en.english"]


def test_folder_holds_what_the_design_says(finished: tuple[MqirResult, Path]) -> None:
    folder = finished[0].folder
    for name in ("config.yaml", "results.json", "per_topic.parquet", "environment.json"):
        assert (folder / name).stat().st_size > 0
    for suffix in ("csv", "md", "tex"):
        assert (folder / "tables" / f"english_AP_at_100.{suffix}").is_file()
    for suffix in ("png", "html"):
        assert (folder / "plots" / f"native_nDCG_at_20.{suffix}").is_file()
    assert len(list((folder / "runs").glob("*.trec"))) == 3 * CONDITIONS
    assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


def test_tracking_has_one_parent_and_a_child_for_every_score(
    finished: tuple[MqirResult, Path],
) -> None:
    from mlflow import MlflowClient

    result, output = finished
    client = MlflowClient(new_store(output))
    experiment = client.get_experiment_by_name("quickstart")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert (len(parents), len(children)) == (1, 3 * CONDITIONS)
    assert {run.info.status for run in runs} == {"FINISHED"}
    by_name = {run.info.run_name: run.data for run in children}
    for score in result.scores:
        data = by_name[f"{score.system} {score.condition.name}"]
        expected = score.evaluation.measures["AP@100"]
        assert data.metrics["AP_at_100"] == pytest.approx(expected)
        assert data.params["scenario"] == score.condition.scenario
    assert by_name["bm25 en.de.native"].params["bm25.analyzer"] == "en"
    names = {item.path for item in client.list_artifacts(parents[0].info.run_id)}
    assert {"results.json", "tables", "plots", "runs"} <= names


def test_trec_eval_gives_the_same_values_on_every_run(finished: tuple[MqirResult, Path]) -> None:
    """pytrec_eval is trec_eval's own code; per topic, to 1e-6, ties and all."""
    import pytrec_eval

    result, _ = finished
    qrels_file = ROOT / "platform/polyray/sample/qrels/qrels.tsv"
    with qrels_file.open() as handle:
        qrels = pytrec_eval.parse_qrel(handle)
    names = {"AP@100": "map_cut_100", "nDCG@20": "ndcg_cut_20", "P@1": "P_1"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()))
    compared = 0
    for score in result.scores:
        path = result.folder / "runs" / f"{score.system}.{score.condition.name}.trec"
        with path.open() as handle:
            theirs = evaluator.evaluate(pytrec_eval.parse_run(handle))
        for topic, values in theirs.items():
            for ours, name in names.items():
                expected = score.evaluation.per_topic[topic][ours]
                assert values[name] == pytest.approx(expected, abs=1e-6)
                compared += 1
    assert compared > 1000


def test_a_second_start_redoes_nothing_and_ends_the_same(
    finished: tuple[MqirResult, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, output = finished
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    before = tree(result.folder)
    made = {p: p.stat().st_mtime_ns for p in (output / "indexes").rglob("*") if p.is_file()}
    runs = {p: p.stat().st_mtime_ns for p in (result.folder / "runs").iterdir()}
    again = run_mqir(quickstart(output))
    assert again.folder == result.folder
    assert tree(again.folder) == before
    assert made == {p: p.stat().st_mtime_ns for p in (output / "indexes").rglob("*") if p.is_file()}
    assert runs == {p: p.stat().st_mtime_ns for p in (result.folder / "runs").iterdir()}


def test_another_config_gets_another_folder(finished: tuple[MqirResult, Path]) -> None:
    from tasks.mqir.data import read_queries
    from tasks.mqir.systems import Systems

    def folder(*more: str) -> Path:
        config = quickstart(finished[1], *more)
        return Systems(config, read_queries(config)).experiment.folder

    assert folder("workers.actors=1") == finished[0].folder
    assert folder("systems.0.k1=1.2") != finished[0].folder
    assert folder("queries.field=title") != finished[0].folder


def _job(output: Path, log: Path) -> subprocess.Popen[Any]:
    environment = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    command = [sys.executable, "-m", "jobs.mqir", str(ROOT / "configs" / "quickstart.yaml")]
    for setting in (
        "systems=[{kind: dense, name: hash, model: 'hashing:64'}]",
        "targets=[english]",
        f"output={output}",
        f"tracking={new_store(output)}",
        "languages=[de]",
        "workers.shard_documents=4",
    ):
        command += ["--set", setting]
    with log.open("w") as out:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**environment, "PYTHONPATH": f"{ROOT / 'platform'}{os.pathsep}{ROOT}"},
            stdout=out,
            stderr=subprocess.STDOUT,
            process_group=0,
        )


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again(tmp_path: Path) -> None:
    """SIGKILL while shards are being encoded: finished ones stay, the results are the same."""
    output, log = tmp_path / "killed", tmp_path / "log"
    job = _job(output, log)
    try:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and job.poll() is None:
            found = list((output / "indexes").glob("dense-*/?????.json"))
            if len(found) >= 3:
                break
            time.sleep(0.005)
        os.killpg(job.pid, signal.SIGKILL)
    finally:
        job.wait()
    time.sleep(2)
    done = {p: p.stat().st_mtime_ns for p in (output / "indexes").glob("dense-*/?????.json")}
    assert 3 <= len(done) < SHARDS, f"the kill came too late or too early: {log.read_text()}"
    assert not list((output / "quickstart").glob("*/results.json"))

    assert _job(output, log).wait(timeout=240) == 0, log.read_text()
    assert done == {path: path.stat().st_mtime_ns for path in done}
    assert len(list((output / "indexes").glob("dense-*/?????.json"))) == SHARDS

    whole = tmp_path / "whole"
    assert _job(whole, log).wait(timeout=240) == 0, log.read_text()
    (first,) = (output / "quickstart").iterdir()
    (second,) = (whole / "quickstart").iterdir()
    ours, theirs = tree(first), tree(second)
    assert first.name == second.name
    assert {k: v for k, v in ours.items() if k != "config.yaml"} == {
        k: v for k, v in theirs.items() if k != "config.yaml"
    }
    assert not [path for path in output.rglob("*") if path.name.endswith(".tmp")]
