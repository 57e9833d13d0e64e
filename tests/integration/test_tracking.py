"""Tracking against a real MLflow store (sqlite) in a temporary folder."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyray.errors import PolyrayError
from polyray.tracking import CONFIG_HASH, Tracker, environment, metric_name, metric_names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlflow")


@pytest.fixture(autouse=True)
def elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working folder of its own: the default store lies there."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(folder)
    yield
    assert sorted(p.name for p in folder.iterdir() if p.name != "input") == [
        "mlartifacts",
        "mlflow.db",
    ]


def artifact(tracker: Tracker, run_id: str, name: str, into: Path) -> str:
    path = tracker.client.download_artifacts(run_id, name, str(into))
    return Path(path).read_text(encoding="utf-8")


def case_metrics(cases: Path) -> dict[str, float]:
    with (cases / "H12_mlflow_names" / "metrics.csv").open(encoding="utf-8") as handle:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(handle)}


def test_names_of_the_case(cases: Path, tmp_path: Path) -> None:
    right = json.loads((cases / "H12_mlflow_names" / "expected.json").read_text(encoding="utf-8"))
    metrics = case_metrics(cases)
    for name, mapped in right["mapping"].items():
        assert metric_name(name) == mapped
    for name in right["accepted_as_is"]:
        assert metric_name(name) == name
    with pytest.raises(PolyrayError) as caught:
        metric_names(metrics)
    assert "nDCG@20" in str(caught.value)
    assert "nDCG_at_20" in str(caught.value)
    with Tracker("case", "collision") as tracker:
        with pytest.raises(PolyrayError):
            tracker.child("both", {}, metrics, {})
        del metrics["nDCG_at_20"]
        child = tracker.child("one", {"k1": 0.9}, metrics, {"polyray.system": "bm25"})
        data = tracker.client.get_run(child).data
    assert data.metrics == {
        "MAP_at_100": 0.1,
        "nDCG_at_20": 0.2,
        "P_at_1": 0.3,
        "eval/zh-en/MAP_at_100": 0.4,
        "f1_macro": 0.5,
        "loss_percent": 0.6,
        "tokens/s": 0.7,
    }
    assert data.tags["metric_not_finite.empty_metric"] == "nan"
    assert data.tags["metric_not_finite.broken_metric"] == "inf"
    kept = json.loads(artifact(tracker, child, "metrics.json", tmp_path))
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    assert kept == {**finite, "empty_metric": "nan", "broken_metric": "inf"}


def test_a_job_and_its_children(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "main.csv").write_text("a,b\n")
    prompt = "Translate. " * 100
    with Tracker("study", "job", {CONFIG_HASH: "abc"}) as tracker:
        tracker.log_params({"model": "e5", "prompt": prompt})
        tracker.log_metrics({"AP@100": 0.5, "loss": math.nan})
        with pytest.raises(PolyrayError, match="AP_at_100"):
            tracker.log_metrics({"AP_at_100": 0.5})
        tracker.log_dataset("ntrex", "data/ntrex", "f" * 64)
        tracker.log_artifacts(tmp_path)
        child = tracker.child("bm25 de native", {"k1": 0.9, "text": prompt}, {"P@1": 1.0})
    parent = tracker.client.get_run(tracker.run_id)
    assert parent.info.status == "FINISHED"
    assert parent.info.run_name == "job"
    assert parent.data.metrics == {"AP_at_100": 0.5}
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    assert parent.data.params == {"model": "e5", "prompt.sha256": digest}
    assert artifact(tracker, tracker.run_id, "long_params/prompt.txt", tmp_path) == prompt
    assert artifact(tracker, tracker.run_id, "tables/main.csv", tmp_path) == "a,b\n"
    kept = json.loads(artifact(tracker, tracker.run_id, "metrics.json", tmp_path))
    assert kept == {"AP@100": 0.5, "loss": "nan"}
    dataset = parent.inputs.dataset_inputs[0].dataset
    assert (dataset.name, json.loads(dataset.profile)) == ("ntrex", {"digest": "f" * 64})
    run = tracker.client.get_run(child)
    assert run.info.status == "FINISHED"
    assert run.data.tags["mlflow.parentRunId"] == tracker.run_id
    assert run.data.params == {"k1": "0.9", "text.sha256": digest}
    assert (folder / "mlartifacts").is_dir()


def test_a_child_is_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    with Tracker("study", "batches") as tracker:
        calls: list[dict[str, Any]] = []
        real = tracker.client.log_batch

        def counted(run_id: str, **batch: Any) -> None:
            calls.append(batch)
            real(run_id, **batch)

        monkeypatch.setattr(tracker.client, "log_batch", counted)
        metrics = {f"m@{i}": float(i) for i in range(50)}
        tracker.child("one", {"a": 1}, {**metrics, "x": math.inf}, {})
        assert len(calls) == 1
        many = {f"m@{i}": float(i) for i in range(1700)}
        child = tracker.child("many", {f"p{i}": i for i in range(150)}, many, {})
        data = tracker.client.get_run(child).data
        assert (len(data.metrics), len(data.params)) == (1700, 150)


def test_an_error_ends_the_run_as_failed() -> None:
    tracker = Tracker("study", "fails")
    with pytest.raises(ValueError, match="broken"), tracker:
        raise ValueError("broken")
    assert tracker.client.get_run(tracker.run_id).info.status == "FAILED"
    tracker = Tracker("study", "interrupted")
    with pytest.raises(KeyboardInterrupt), tracker:
        raise KeyboardInterrupt
    assert tracker.client.get_run(tracker.run_id).info.status == "KILLED"


def test_stale_runs_of_the_same_configuration_are_ended() -> None:
    stale = Tracker("study", "stale", {CONFIG_HASH: "0af3"})
    other = Tracker("study", "other", {CONFIG_HASH: "another"})
    stale.__enter__()
    other.__enter__()
    trial = stale.client.create_run(
        stale.experiment_id, tags={"mlflow.parentRunId": stale.run_id}
    ).info.run_id
    with Tracker("study", "again", {CONFIG_HASH: "0af3"}) as tracker:
        status = {
            name: tracker.client.get_run(run_id).info.status
            for name, run_id in (
                ("stale", stale.run_id),
                ("trial", trial),
                ("other", other.run_id),
                ("own", tracker.run_id),
            )
        }
    other.__exit__(None, None, None)
    assert status == {"stale": "KILLED", "trial": "KILLED", "other": "RUNNING", "own": "RUNNING"}


def test_a_configuration_hash_is_a_word() -> None:
    with pytest.raises(PolyrayError, match="not a hash"):
        Tracker("study", "x", {CONFIG_HASH: "it's"})


def test_the_environment_variable_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
    assert Tracker("study", "x", tracking_uri="sqlite:///elsewhere.db").uri.endswith("/mlflow.db")


def test_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    with (
        pytest.raises(PolyrayError, match="MLflow at file:"),
        Tracker("study", "x", tracking_uri=(tmp_path / "mlruns").as_uri()),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("nDCG(dcg='exp-log2')@20", "nDCG_dcg_exp-log2_at_20"),
        ("a__b", "a__b"),
        ("/eval//x@1/../y", "eval/x_at_1/y"),
        ("%", "percent"),
        ("Genauigkeit für %", "Genauigkeit_für_percent"),
        ("x\n", "x"),
    ],
)
def test_more_names(name: str, mapped: str) -> None:
    assert metric_name(name) == mapped


def test_names_that_cannot_be_kept() -> None:
    with pytest.raises(PolyrayError):
        metric_name("()")
    assert len(metric_name("x" * 300)) == 250
    assert metric_name("x" * 300) != metric_name("x" * 301)


def test_mlflow_accepts_every_mapped_name() -> None:
    names = ["nDCG(dcg='exp-log2')@20", "/eval//x@1", "%", "x" * 300, "a b", "...@", "-"]
    with Tracker("study", "names") as tracker:
        child = tracker.child("names", dict.fromkeys(names, 1), dict.fromkeys(names, 1.0))
        data = tracker.client.get_run(child).data
    assert len(data.metrics) == len(data.params) == len(names)


def test_the_environment_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary-1234")
    record = environment()
    assert "canary-1234" not in json.dumps(record, allow_nan=False)
    assert record["packages"]["mlflow"]
    assert record["cpu"]["count"] >= record["cpu"]["usable"] >= 1
    assert record["memory_bytes"] > 1 << 28
