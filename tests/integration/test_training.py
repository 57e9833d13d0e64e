"""The training loop, alone and on Ray, on a two-layer student and real questions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from polyray.collections.documents import read_documents
from polyray.collections.topics import read_topics
from polyray.errors import ConfigError, TrainingFailed
from polyray.files import write_json
from polyray.models.late import TorchLateEncoder, load_late
from polyray.models.maxsim import max_sim
from polyray.models.settings import LateSettings
from polyray.training.distributed import Trainers, run_trial, run_trials
from polyray.training.loop import Trained, train
from polyray.training.settings import TrainingSettings
from polyray.training.validation import Validation


@dataclass(frozen=True)
class Row:
    """An example, as the loop takes it."""

    query: str
    passages: tuple[str, ...]
    scores: tuple[float, ...]


@pytest.fixture(scope="module")
def rows(data_root: Path) -> list[Row]:
    """XQuAD's English questions: their own paragraph and three others; shared words as scores."""
    paragraphs = {
        d.doc_id: d.contents for d in read_documents(str(data_root / "xquad/docs/en_docs.tsv"))
    }
    ids = list(paragraphs)
    topics = read_topics(str(data_root / "xquad/queries/en_queries.tsv"), language="en")
    answers = dict(
        line.split()[0::2]
        for line in (data_root / "xquad/qrels/qrels.tsv").read_text().splitlines()
        if len(line.split()) >= 3
    )
    made = []
    for number, topic in enumerate(topics[:64]):
        right = answers[topic.topic_id]
        others = [ids[(number * 7 + step * 31) % len(ids)] for step in (1, 2, 3)]
        texts = [paragraphs[doc_id][:300] for doc_id in (right, *others)]
        words = set(topic.title.lower().split())
        scores = [5.0 * len(words & set(text.lower().split())) / len(words) for text in texts]
        made.append(Row(topic.title, tuple(texts), (scores[0] + 5.0, *scores[1:])))
    return made


@pytest.fixture(scope="module")
def student(tiny_backbone: Callable[[str], Path]) -> LateSettings:
    backbone = str(tiny_backbone("xlmr"))
    return LateSettings(backbone=backbone, dim=16, device="cpu", precision="float32")


def settings(**more: Any) -> TrainingSettings:
    given = {
        "steps": 6,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "query_maxlen": 16,
        "doc_maxlen": 48,
        "log_every": 1,
        "save_every": 2,
        "precision": "float32",
    }
    return TrainingSettings(**(given | more))


def losses(trained: Trained) -> list[float]:
    return [line["loss"] for line in trained.history if "loss" in line]


@pytest.fixture(scope="module")
def unbroken(
    rows: list[Row], student: LateSettings, tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    folder = tmp_path_factory.mktemp("unbroken")
    return train(student, settings(), rows, folder, seed=7)


def test_the_loss_falls(rows: list[Row], student: LateSettings, tmp_path: Path) -> None:
    longer = settings(steps=24, save_every=24)
    found = losses(train(student, longer, rows, tmp_path, seed=7))
    assert len(found) == 24
    assert np.mean(found[-8:]) < 0.7 * np.mean(found[:8]), "the third pass against the first"


def test_the_same_seed_gives_the_same_losses(
    rows: list[Row], student: LateSettings, tmp_path: Path, unbroken: Trained
) -> None:
    again = train(student, settings(), rows, tmp_path / "again", seed=7)
    assert losses(again) == losses(unbroken)
    other = train(student, settings(), rows, tmp_path / "other", seed=8)
    assert losses(other) != losses(unbroken), "dropout is drawn from the seed"


CHILD = """
import json, os, signal, sys
from pathlib import Path
from tests_training import Row, settings
from polyray.models.settings import LateSettings
from polyray.training.loop import train

rows = [Row(q, tuple(p), tuple(s)) for q, p, s in json.loads(Path(sys.argv[1]).read_text())]
student = LateSettings.model_validate_json(sys.argv[2])
at = int(sys.argv[4])

def report(line):
    if line["step"] == at:
        os.kill(os.getpid(), signal.SIGKILL)

train(student, settings(), rows, Path(sys.argv[3]), seed=7, report=report)
"""


@pytest.mark.parametrize("at", [1, 5])
def test_killed_and_resumed_it_gives_the_unbroken_losses(
    rows: list[Row], student: LateSettings, tmp_path: Path, unbroken: Trained, at: int
) -> None:
    """Steps 2 and 4 leave checkpoints: killed at 5 it goes on from 4, at 1 from the start."""
    given = tmp_path / "rows.json"
    given.write_text(json.dumps([(row.query, row.passages, row.scores) for row in rows]))
    code = CHILD.replace("from tests_training", f"from {Path(__file__).stem}")
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    arguments = [str(given), student.model_dump_json(), str(tmp_path / "run"), str(at)]
    killed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    torn = tmp_path / "run" / "checkpoints" / "checkpoint-9"
    torn.mkdir(parents=True)  # as a kill in the middle of writing leaves it
    resumed = train(student, settings(), rows, tmp_path / "run", seed=7)
    assert resumed.facts["resumed_from"] == (4 if at == 5 else 0)
    assert losses(resumed) == losses(unbroken)
    mine, theirs = (weights(trained.folder / "last") for trained in (resumed, unbroken))
    assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert train(student, settings(), rows, tmp_path / "run", seed=7).facts == resumed.facts


def weights(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


@pytest.fixture
def workers(ray_session: None) -> None:
    """Ray, whose workers get what this file defines by value: they cannot import it."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Small:
    """A trial of the tests."""

    name: str
    folder: Path
    student: LateSettings
    settings: TrainingSettings
    rows: list[Row]
    seed: int = 7
    dies_at: int = 0

    def train(self, report: Callable[[dict[str, float]], None] | None) -> Trained:
        def watched(line: dict[str, float]) -> None:
            mark = self.folder / "died"
            if line["step"] == self.dies_at and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if report is not None:
                report(line)

        return train(
            self.student, self.settings, self.rows, self.folder, seed=self.seed, report=watched
        )


def test_two_workers_give_the_gradients_of_one(
    rows: list[Row], student: LateSettings, tmp_path: Path, workers: None
) -> None:
    """Batches of 8 on one worker, of 4 on two: losses, gradient norms and weights, to 1e-5.

    Without dropout, whose draws differ by worker.
    """
    same = settings(steps=3, save_every=3, dropout=False, clip_norm=100.0)
    one = train(student, same, rows, tmp_path / "one", seed=7)
    trial = Small("workers-2", tmp_path / "two", student, same, rows)
    two = run_trial(trial, Trainers(workers=2, cpus=1))
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)
    norms = [[line["grad_norm"] for line in t.history if "grad_norm" in line] for t in (one, two)]
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)
    mine, theirs = weights(one.folder / "last"), weights(two.folder / "last")
    for name, value in mine.items():
        np.testing.assert_allclose(theirs[name], value, atol=1e-5, err_msg=name)


def test_tune_runs_what_is_not_done_and_one_that_fails_stops_no_other(
    rows: list[Row], student: LateSettings, tmp_path: Path, workers: None, unbroken: Trained
) -> None:
    """One trial whose worker dies once, one that diverges, one that was finished before."""
    folder = tmp_path / "trials"
    diverging = settings(learning_rate=1e30, clip_norm=0)
    trials = [
        Small("dies-once", folder / "dies-once", student, settings(), rows, dies_at=5),
        Small("diverges", folder / "diverges", student, diverging, rows),
        Small("done-before", folder / "done-before", student, settings(), rows),
    ]
    train(student, settings(), rows, folder / "done-before", seed=7)
    before = (folder / "done-before" / "done.json").stat().st_mtime_ns
    results = run_trials(trials, Trainers(cpus=1, concurrent=2))
    assert [result.trial.name for result in results] == [trial.name for trial in trials]
    died, diverged, done = results
    assert died.trained is not None
    assert (folder / "dies-once" / "died").exists(), "the fault landed"
    assert died.trained.facts["resumed_from"] == 4
    # one thread here and two there add up in another order
    assert losses(died.trained) == pytest.approx(losses(unbroken), rel=1e-6)
    assert diverged.trained is None
    assert "the loss is" in diverged.error
    assert done.trained is not None
    assert (folder / "done-before" / "done.json").stat().st_mtime_ns == before


@dataclass(frozen=True)
class Measured:
    """A trial that trains nothing and reports a measure that is known beforehand."""

    name: str
    folder: Path
    value: float

    def train(self, report: Callable[[dict[str, float]], None] | None) -> Trained:
        assert report is not None
        (self.folder / "checkpoints" / "checkpoint-1").mkdir(parents=True)
        for step in (1.0, 2.0, 3.0):
            report({"step": step, "loss": 1.0})
            report({"step": step, "eval_ndcg_at_10": self.value})
            if step < 3 and self.value < 0.5:
                time.sleep(120)  # what stops it comes before
        write_json(self.folder / "done.json", {"best": self.value})
        return Trained(self.folder, {"best": self.value})


def test_successive_halving_stops_the_worse_one_and_for_good(tmp_path: Path, workers: None) -> None:
    from jobs.train import halving

    trials = [Measured(f"{n}-{v}", tmp_path / "s" / str(n), v) for n, v in enumerate((0.9, 0.1))]
    for again in (False, True):
        scheduler = halving(steps=3, grace=1, reduction=2)
        results = run_trials(
            trials,
            Trainers(cpus=1, concurrent=1),
            scheduler=scheduler,
            metric="eval_ndcg_at_10",
        )
        good, bad = results
        assert good.trained is not None
        assert bad.trained is None
        assert bad.error == "stopped early: step 1, eval_ndcg_at_10 0.1000"
        assert not (bad.trial.folder / "checkpoints").exists()
        assert again or (good.trial.folder / "checkpoints").exists()


def test_a_trial_whose_end_comes_before_its_last_report_was_read_ends(
    tmp_path: Path, workers: None
) -> None:
    """Ray's own TuneReportCallback stops for good here: Tune reads each report late."""
    from ray.tune.schedulers import FIFOScheduler

    class Slow(FIFOScheduler):
        read: ClassVar[list[float]] = []

        def on_trial_result(self, controller: Any, trial: Any, result: Any) -> str:
            self.read.append(result["step"])
            if result["step"] == 3.0:
                time.sleep(3)
            return str(super().on_trial_result(controller, trial, result))

    trial = Measured("quick", tmp_path / "quick", 0.9)
    (result,) = run_trials([trial], Trainers(cpus=1), scheduler=Slow(), metric="eval_ndcg_at_10")
    assert result.trained is not None
    assert Slow.read[:6] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_both_forms_hold_the_trained_model_and_colbert_ai_scores_alike(
    rows: list[Row], unbroken: Trained
) -> None:
    """Scores of stock colbert-ai's Checkpoint and of both saved forms agree to 1e-4."""
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.infra import ColBERTConfig
    from colbert.modeling.checkpoint import Checkpoint

    queries = [row.query for row in rows[:4]]
    passages = [row.passages[0] for row in rows[:4]]
    folder = unbroken.folder / "best"
    scores = []
    for form in (folder, folder / "sentence-transformers"):
        encoder = load_late(LateSettings(model=str(form), device="cpu", precision="float32"))
        scores.append(max_sim(encoder.encode_queries(queries), encoder.encode_passages(passages)))
    with quiet():
        stock = Checkpoint(str(folder), ColBERTConfig.load_from_checkpoint(str(folder)))
        asked = stock.queryFromText(queries)
        held = stock.docFromText(passages, bsize=4, keep_dims=False)[0]
    theirs = max_sim([q.float().numpy() for q in asked], [d.float().numpy() for d in held])
    assert scores[1] == pytest.approx(scores[0], abs=1e-4)
    assert theirs == pytest.approx(scores[0], abs=1e-4)
    assert "last_loss" in (folder / "README.md").read_text()


def test_loss_and_gradient_are_colbert_ai_s(rows: list[Row], student: LateSettings) -> None:
    """``colbert/training/training.py``: log-softmax of both, batchmean with a log target."""
    import torch
    from sentence_transformers.multi_vector_encoder import losses as theirs

    from polyray.training.loop import _Collator

    encoder = load_late(student.model_copy(update={"query_maxlen": 16, "doc_maxlen": 48}))
    assert isinstance(encoder, TorchLateEncoder)
    batch = _Collator(encoder, rows)([{"number": number} for number in range(8)])
    label = batch.pop("label")
    names = ["query", *(f"passage{way}" for way in range(4))]
    columns = [
        {k.removeprefix(f"{n}_"): v for k, v in batch.items() if k.startswith(f"{n}_")}
        for n in names
    ]
    alpha = 2.0
    ours = theirs.MultiVectorDistillKLDivLoss(encoder.model, teacher_temperature=1 / alpha)
    found = ours(columns, label)
    found.backward()
    weight = next(m for m in encoder.model if hasattr(m, "linear")).linear.weight
    gradient = weight.grad.clone()
    encoder.model.zero_grad()
    queries = encoder.model(dict(columns[0]), task="query")
    scores = []
    for column in columns[1:]:
        documents = encoder.model(dict(column), task="document")
        similarity = queries["token_embeddings"] @ documents["token_embeddings"].transpose(1, 2)
        similarity = similarity.masked_fill(~documents["attention_mask"].bool()[:, None], -9999)
        best = similarity.max(-1).values * queries["attention_mask"]
        scores.append(best.sum(-1))
    student_scores = torch.log_softmax(torch.stack(scores, 1), dim=-1)
    teacher = torch.log_softmax(label * alpha, dim=-1)
    expected = torch.nn.KLDivLoss(reduction="batchmean", log_target=True)(student_scores, teacher)
    expected.backward()
    assert float(found) == pytest.approx(float(expected), abs=1e-5)
    np.testing.assert_allclose(gradient.numpy(), weight.grad.numpy(), atol=1e-5)


def test_validation_keeps_the_best_checkpoint(
    rows: list[Row], student: LateSettings, tmp_path: Path
) -> None:
    """nDCG@10 is measured every second step; a learning rate of nothing leaves the first best."""
    watched = settings(steps=6, validate_every=2, learning_rate=1e-12)
    pool = Validation(rows[:16])
    trained = train(student, watched, rows, tmp_path, seed=7, validation=pool)
    measured = [line["eval_ndcg_at_10"] for line in trained.history if "eval_ndcg_at_10" in line]
    assert len(measured) == 3
    assert trained.facts["best"] == max(measured)
    assert trained.facts["best_step"] == 2 * (measured.index(max(measured)) + 1)
    best = load_late(
        LateSettings(
            model=str(tmp_path / "best"),
            device="cpu",
            precision="float32",
            query_maxlen=16,
            doc_maxlen=48,
        )
    )
    assert isinstance(best, TorchLateEncoder)
    assert pool.ndcg(best) == pytest.approx(max(measured), abs=1e-6)


def test_frozen_weights_stay(rows: list[Row], student: LateSettings, tmp_path: Path) -> None:
    given = settings(steps=2, freeze={"embeddings": True, "layers": 1}, save_every=2)
    trained = train(student, given, rows, tmp_path, seed=7)
    before = weights(Path(TorchLateEncoder(student).checkpoint))
    after = weights(trained.folder / "last")
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert "linear.weight" in changed
    assert any(".layer.1." in name for name in changed)
    assert not any(".embeddings." in name or ".layer.0." in name for name in changed)
    assert trained.facts["trainable_weights"] < trained.facts["weights"]


@pytest.mark.parametrize("kind", ["xlmr", "bert"])
def test_frozen_layers_are_computed_once_a_text(
    rows: list[Row], tiny_backbone: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    """Losses, gradient norms and weights are those of a training that keeps nothing, to 1e-5."""
    from polyray.training import trunk

    student = LateSettings(
        backbone=str(tiny_backbone(kind)), dim=16, device="cpu", precision="float32"
    )
    made: list[trunk.FrozenTrunk] = []

    class Counted(trunk.FrozenTrunk):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    found = []
    for size in (64, 0):
        freeze = {"embeddings": True, "layers": 1, "cache_mib": size}
        given = settings(steps=12, freeze=freeze, save_every=12)  # 96 of 64 examples
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trunk, "FrozenTrunk", Counted)
            found.append(train(student, given, rows, tmp_path / str(size), seed=7))
    kept, every_time = found
    (one,) = made
    texts = {row.query for row in rows} | {text for row in rows for text in row.passages}
    assert one.computed == len(one._known), "nothing was computed twice"
    assert one.computed <= 1.05 * len(texts)
    assert losses(kept) == pytest.approx(losses(every_time), rel=1e-5)
    norms = [[line["grad_norm"] for line in t.history if "grad_norm" in line] for t in found]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    mine, theirs = (weights(trained.folder / "last") for trained in found)
    assert set(mine) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(mine[name], value, atol=1e-5, err_msg=name)


def test_a_killed_training_with_frozen_layers_goes_on_with_the_same_losses(
    rows: list[Row], student: LateSettings, tmp_path: Path
) -> None:
    """A text's states do not depend on the batch that it came in first."""

    class Killed(Exception):
        pass

    def report(line: dict[str, float]) -> None:
        if line["step"] == 5:
            raise Killed

    given = settings(freeze={"embeddings": True, "layers": 1})
    whole = train(student, given, rows, tmp_path / "whole", seed=7)
    with pytest.raises(Killed):
        train(student, given, rows, tmp_path / "killed", seed=7, report=report)
    resumed = train(student, given, rows, tmp_path / "killed", seed=7)
    assert resumed.facts["resumed_from"] == 4
    assert losses(resumed) == losses(whole)


def test_what_cannot_be_trained_is_refused(
    rows: list[Row], student: LateSettings, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="the model has 2 layers"):
        train(student, settings(freeze={"layers": 9}), rows, tmp_path)
    with pytest.raises(ConfigError, match="no examples"):
        train(student, settings(), [], tmp_path)
    with pytest.raises(ConfigError, match="nothing to validate on"):
        train(student, settings(validate_every=2), rows, tmp_path)
    with pytest.raises(TrainingFailed, match=r"step \d+: the loss is"):
        train(student, settings(learning_rate=1e30, clip_norm=0), rows, tmp_path)
