"""The training job: three recipes from one config, tracked, restarted, named in a study."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.train import run_train
from polyray.collections.topics import read_topics
from polyray.config import load_config
from polyray.files import read_json
from polyray.models.late_files import checkpoint_of
from polyray.models.settings import LateSettings
from polyray.training.examples import Examples
from polyray.training.plan import planned, training_flop
from polyray.training.settings import TrainingSettings
from polyray.training.study import TrainConfig, students
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config(
    data_root: Path,
    tiny_backbone: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> TrainConfig:
    """small.yaml on a two-layer student: 12 XQuAD questions, 3 steps of 4 queries x 3 passages."""
    monkeypatch.setenv("POLYRAY_DATA", str(data_root))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    topics = read_topics(str(data_root / "xquad/queries/en_queries.tsv"), language="en")[:12]
    qrels = (data_root / "xquad/qrels/qrels.tsv").read_text().splitlines()
    right = {line.split()[0]: line.split()[2] for line in qrels if len(line.split()) > 2}
    others = sorted(set(right.values()))
    lines = []
    for number, topic in enumerate(topics):
        wrong = [d for d in others[number : number + 3] if d != right[topic.topic_id]][:2]
        pairs = [[right[topic.topic_id], 9.0], *([d, 1.0] for d in wrong)]
        lines.append(json.dumps([topic.topic_id, *pairs]))
    examples = tmp_path / "examples.jsonl"
    examples.write_text("\n".join(lines) + "\n", encoding="utf-8")
    small = {"steps": 3, "batch_size": 4, "save_every": 3, "log_every": 1, "warmup_steps": 0}
    given = [
        f"source.examples={examples}",
        "source.nway=3",
        "seeds=[1]",
        f"student.backbone={tiny_backbone('xlmr')}",
        "student.dim=16",
        "training.freeze={embeddings: true, layers: 1}",
        "training.precision=float32",
        *(f"training.{name}={value}" for name, value in small.items()),
        f"output={tmp_path}/runs",
        "workers.cpus=1",
        "workers.concurrent=2",
    ]
    return load_config(ROOT / "configs/train/small.yaml", given, TrainConfig)


def test_three_recipes_are_trained_tracked_and_named(
    config: TrainConfig, tmp_path: Path, ray_session: None
) -> None:
    from mlflow import MlflowClient

    done = run_train(config)
    (table,) = done.tables
    names = ["mono-seed1", "cross-seed1", "mixed-seed1"]
    assert [row[0] for row in table.rows] == names
    assert [row[1] for row in table.rows] == [3, 3, 3], done.notes
    assert (done.folder / "plots" / "losses.png").stat().st_size > 1000

    client = MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("distill-small")
    assert experiment is not None
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(names) < set(runs)
    curve = client.get_metric_history(runs["mixed-seed1"].info.run_id, "loss")
    stored = read_json(done.folder / "results.json")["mixed-seed1"]
    wanted = [(line["step"], line["loss"]) for line in stored["history"] if "loss" in line]
    assert [(point.step, point.value) for point in curve] == wanted

    run = f"run:{runs['mixed-seed1'].info.run_id}/best"
    folder = Path(checkpoint_of(LateSettings(model=run)))
    link = tmp_path / "runs" / "distill-small" / "students" / "mixed-seed1" / "best"
    assert folder.samefile(link)
    assert read_json(folder / "config.json")["architectures"] == ["HF_ColBERT"]

    before = {name: (done.folder / "students" / name / "done.json").stat() for name in names}
    again = run_train(config)
    assert again.folder == done.folder
    after = {name: (done.folder / "students" / name / "done.json").stat() for name in names}
    assert {n: s.st_mtime_ns for n, s in after.items()} == {
        n: s.st_mtime_ns for n, s in before.items()
    }


def test_students_of_a_seed_differ_in_their_queries_alone(
    config: TrainConfig, tmp_path: Path
) -> None:
    """The same questions, passages and scores in the same order; the languages are the recipe's."""
    recipes = config.recipes
    made = {
        name: Examples.prepare(
            config.source,
            recipe,
            tmp_path / "examples",
            seed=1,
            alongside=[other for other in recipes.values() if other is not recipe],
        )
        for name, recipe in recipes.items()
    }
    seen = {name: [examples.at(i) for i in range(50)] for name, examples in made.items()}
    for mono, cross, mixed in zip(seen["mono"], seen["cross"], seen["mixed"], strict=True):
        assert mono.query_id == cross.query_id == mixed.query_id
        assert mono.passages == cross.passages == mixed.passages
        assert mono.scores == cross.scores == mixed.scores
    assert all(a.query != b.query for a, b in zip(seen["mono"], seen["cross"], strict=True))
    assert any(a.query != b.query for a, b in zip(seen["mono"], seen["mixed"], strict=True))
    trials = students(config, tmp_path, dict.fromkeys(recipes, tmp_path), {})
    own = ("name", "place", "recipe", "recipe_name", "examples", "card")
    facts = [trial.model_dump(exclude=set(own)) for trial in trials]
    assert all(fact == facts[0] for fact in facts)


def test_the_plan_of_the_paper(monkeypatch: pytest.MonkeyPatch, data_root: Path) -> None:
    """XLM-R large, 200,000 steps of 64 x 6 passages of 183 tokens: about 2.6e19 operations.

    6 x 302 million weights x 1.45e10 tokens (12 layers' weights a width squared: 12 x 24 x 1024^2).
    """
    paper = TrainingSettings()
    assert training_flop(24, 1024, paper, 6) == pytest.approx(2.62e19, rel=0.01)
    config = load_config(ROOT / "configs/train/milq-neuclir.yaml", [], TrainConfig)
    assert config.training.model_copy(
        update={"precision": "auto", "gradient_checkpointing": False, "log_every": 10}
    ) == paper.model_copy(update={"save_every": 5000})
    (table,) = planned(config).tables
    assert [row[0] for row in table.rows] == ["mono-seed42", "cross-seed42", "mixed-seed42"]
    assert [row[3:6] for row in table.rows] == [[200_000, 12_800_000, 76_800_000]] * 3


def test_a_search_makes_trials_with_names_and_refuses_what_is_no_setting(
    data_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from polyray.errors import ConfigError

    monkeypatch.setenv("POLYRAY_DATA", str(data_root))
    path = ROOT / "configs/train/small.yaml"
    grid = "learning_rate: {kind: grid, values: [1.0e-5, 5.0e-5]}"
    drawn = "clip_norm: {kind: uniform, low: 0.5, high: 5, log: true}"
    given = ["seeds=[1]", f"search={{samples: 2, seed: 3, space: {{{grid}, {drawn}}}}}"]
    config = load_config(path, given, TrainConfig)
    trials = students(config, tmp_path, dict.fromkeys(config.recipes, tmp_path), {})
    assert len(trials) == 3 * 2 * 2
    assert len({trial.name for trial in trials}) == len(trials)
    assert trials[0].name.startswith("mono-seed1-learning_rate1e-05-clip_norm")
    assert {trial.training.learning_rate for trial in trials} == {1e-5, 5e-5}
    assert all(0.5 <= trial.training.clip_norm <= 5 for trial in trials)
    with pytest.raises(ConfigError, match="no such setting"):
        load_config(path, ["search={space: {rate: {kind: grid, values: [1]}}}"], TrainConfig)


def test_variants_depart_in_what_they_name_alone(
    data_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from polyray.errors import ConfigError

    monkeypatch.setenv("POLYRAY_DATA", str(data_root))
    path = ROOT / "configs/train/ablations.yaml"
    config = load_config(path, [], TrainConfig)
    made = students(config, tmp_path, dict.fromkeys(config.recipes, tmp_path), {})
    trials = {trial.name.removeprefix("mixed-seed1-"): trial for trial in made}
    assert list(trials) == list(config.variants)
    plain = trials["none"]
    assert plain.training == config.training
    assert trials["expansion"].student == plain.student.model_copy(update={"expansion": True})
    assert trials["expansion"].training == plain.training
    assert trials["softer-teacher"].student == plain.student
    loss = trials["softer-teacher"].training.loss
    assert loss.model_dump() == plain.training.loss.model_dump() | {"teacher_temperature": 2.0}
    with pytest.raises(ConfigError, match="no such setting"):
        load_config(path, ["variants={odd: {student.colour: red}}"], TrainConfig)
    with pytest.raises(ConfigError, match="not of student"):
        load_config(path, ["variants={odd: {seed: 3}}"], TrainConfig)
