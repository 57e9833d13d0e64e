"""The CLSD job end to end, on the embedded sample and on rows of the published files."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from polyray.config import load_config
from polyray.files import read_json
from polyray.indexes import sentences
from tasks.clsd.config import ClsdConfig
from tasks.clsd.run import ClsdResult, run_clsd
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "configs" / "clsd" / "sample.yaml"
HASHING = 'encoders=[{name: hashing, model: "hashing:256"}]'

pytestmark = pytest.mark.usefixtures("ray_session")


@pytest.fixture(scope="module", autouse=True)
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One MLflow store for all tests here: a fresh one takes seconds to set up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path_factory.mktemp("clsd")))
        yield


def config(tmp_path: Path, *overrides: str) -> ClsdConfig:
    return load_config(SAMPLE, [f"output={tmp_path / 'runs'}", *overrides], ClsdConfig)


def figures(result: ClsdResult) -> dict[str, Any]:
    found = read_json(result.folder / "results.json")["scores"]
    return {f"{score['mode']} {score['direction']}": score for score in found}


def head(source: Path, target: Path, count: int) -> Path:
    """The first ``count`` rows of a published file."""
    with source.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle))[: count + 1]
    with target.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows(rows)
    return target


def test_sample_with_hashed_trigrams(tmp_path: Path) -> None:
    result = run_clsd(config(tmp_path, HASHING))
    found = figures(result)
    assert list(found) == ["direct de->fr", "direct fr->de", "pivot de->fr", "pivot fr->de"]
    for score in found.values():
        assert score["P@1"] == score["hits"] / score["pairs"]
    # shared spelling says more in one language than across two
    assert found["pivot de->fr"]["P@1"] > found["direct de->fr"]["P@1"] + 0.3
    folder = result.folder
    for name in ("config.yaml", "environment.json", "plots/clsd.png", "plots/clsd.html"):
        assert (folder / name).stat().st_size > 0
    for ending in ("csv", "md", "tex"):
        assert (folder / "tables" / f"clsd.{ending}").is_file()
    outcomes = pq.read_table(folder / "outcomes.parquet").to_pylist()
    assert sum(row["hit"] for row in outcomes) == sum(score["hits"] for score in found.values())
    assert all(row["hit"] == (row["score_true"] > row["best_distractor_score"]) for row in outcomes)
    values = pq.read_table(folder / "per_topic.parquet").to_pylist()
    assert [row["value"] for row in values] == [float(row["hit"]) for row in outcomes]
    shown = {row[1]: row[2] for row in result.tables[0].rows}
    assert shown["direct"] == pytest.approx(100 * found["direct de->fr"]["P@1"])


def test_a_second_start_encodes_nothing_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    first = run_clsd(config(tmp_path, HASHING))
    before = (first.folder / "results.json").read_bytes()
    again = run_clsd(config(tmp_path, HASHING))
    assert first.encoded_shards == 2
    assert again.encoded_shards == 0
    assert again.folder == first.folder
    assert (again.folder / "results.json").read_bytes() == before


def test_a_killed_job_goes_on_at_the_first_missing_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves: no manifest, a shard without its facts, a temporary file."""
    monkeypatch.setattr(sentences, "SHARD", 100)
    settings = config(tmp_path, HASHING, "modes=[direct]")
    first = run_clsd(settings)
    before = (first.folder / "results.json").read_bytes()
    (index,) = (tmp_path / "runs" / "indexes").iterdir()
    kept = index / "00000.vectors.npy"
    stamp = kept.stat().st_mtime_ns
    (index / "manifest.json").unlink()
    (index / "00002.json").unlink()
    (index / ".00003.vectors.npy.1.tmp").write_bytes(b"half")
    again = run_clsd(settings)
    assert (first.encoded_shards, again.encoded_shards) == (5, 1)
    assert kept.stat().st_mtime_ns == stamp
    assert (again.folder / "results.json").read_bytes() == before


def test_mlflow_has_a_child_for_each_figure(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    result = run_clsd(config(tmp_path, HASHING, "name=clsd-tracked"))
    client = MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("clsd-tracked")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    children = {run.info.run_name: run for run in runs if "mlflow.parentRunId" in run.data.tags}
    assert len(runs) == 5
    child = children["hashing sample pivot fr->de"]
    assert child.data.metrics["P_at_1"] == figures(result)["pivot fr->de"]["P@1"]
    assert child.data.params["model"] == "hashing:256"


def test_packaged_e5_on_rows_of_the_sample(tmp_path: Path) -> None:
    """Every sentence gets e5's query prompt, candidates included."""
    from polyray.files import resolve

    file = head(resolve("sample:clsd/sample.csv"), tmp_path / "few.csv", 6)
    dataset = f'datasets=[{{name: few, path: "{file}"}}]'
    result = run_clsd(config(tmp_path, dataset, "modes=[direct]"))
    score = figures(result)["direct de->fr"]
    assert (score["pairs"], score["texts"], score["truncated"]) == (6, 60, 0)
    assert score["settings"]["prompt.query"] == "query: "
    assert score["settings"]["pooling"] == "mean"
    assert score["hits"] >= 3


@pytest.mark.slow
def test_packaged_e5_on_published_rows(tmp_path: Path, data_root: Path) -> None:
    """The first 20 rows of WMT19; the hits are those rows' in the job's run on the whole file.

    One pair either way, since another precision or batch moves scores in the last digits.
    """
    source = data_root / "clsd" / "CLSD_wmt2019_adversarial_dataset.csv"
    file = head(source, tmp_path / "head.csv", 20)
    dataset = f'datasets=[{{name: WMT19, path: "{file}"}}]'
    found = figures(run_clsd(config(tmp_path, dataset, "modes=[direct]")))
    assert found["direct de->fr"]["pairs"] == 20
    assert found["direct de->fr"]["hits"] == pytest.approx(18, abs=1)
    assert found["direct fr->de"]["hits"] == pytest.approx(15, abs=1)


def test_bad_input_ends_with_status_2_and_leaves_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("French,German\nun,\n", encoding="utf-8")
    command = [sys.executable, "-m", "jobs.clsd", str(SAMPLE)]
    command += ["--set", f'datasets=[{{name: bad, path: "{bad}"}}]', "--set", "modes=[direct]"]
    command += ["--set", f"output={tmp_path / 'runs'}"]
    path = os.pathsep.join([str(ROOT / "platform"), str(ROOT)])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 2
    assert f"{bad}:1: no column de_adv1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
