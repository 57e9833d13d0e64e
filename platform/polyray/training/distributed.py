"""The loop on a cluster: one trial is a Ray Train run, and Ray Tune runs many.

A trial is described by a small record that makes its own examples where it runs. What is whole on
disk decides what is done: a trial with ``done.json`` is not run again, one with checkpoints goes on
from the last. No state of Ray's own is read back.
"""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from polyray.config import Settings
from polyray.errors import ConfigError, PolyrayError, TrainingFailed
from polyray.files import read_json, write_json
from polyray.training.loop import DONE, Trained

__all__ = ["Trainers", "Trial", "TrialResult", "run_trial", "run_trials", "unfinished"]

FAILED = "failed.json"
STOPPED = "stopped.json"
START_S = 600
"""Seconds for a trial's workers to start; on a busy machine Ray's own 60 are too few."""
_LOOK_S = 0.2
"""Seconds between two looks at what a trial's workers report, and at whether they are done."""
WAITING = 1 << 20
"""Bytes that a trial asks for itself: it waits for its workers, which take the processors."""


class Trainers(Settings):
    """What a trial gets, and how many run at once.

    ``workers`` processes share each batch; on a GPU each has one, on a CPU ``cpus`` threads each
    (default: all cores of a node, shared out). ``concurrent`` trials run at once (default: as many
    as there is room for). A trial whose worker dies is begun again, from its last checkpoint, up to
    ``retries`` times.
    """

    workers: int = Field(default=1, gt=0)
    gpu: bool | None = None
    cpus: int | None = Field(default=None, gt=0)
    concurrent: int | None = Field(default=None, gt=0)
    retries: int = Field(default=2, ge=0)
    address: str | None = None


class Trial(Protocol):
    """One student to train; it travels to the worker that trains it."""

    @property
    def name(self) -> str:
        """What a person calls it; names its folder."""
        ...

    @property
    def folder(self) -> Path:
        """Where everything of it lies."""
        ...

    def train(self, report: Callable[[dict[str, float]], None] | None) -> Trained:
        """Make the examples and train, in this process."""
        ...


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial's end: what it left, or why it stopped."""

    trial: Trial
    trained: Trained | None
    error: str = ""


def run_trial(
    trial: Trial, trainers: Trainers, *, report: Callable[[dict[str, float]], None] | None = None
) -> Trained:
    """Train one student as a Ray Train run; needs a running Ray.

    Raises the worker's own :class:`~polyray.errors.PolyrayError`, and
    :class:`~polyray.errors.TrainingFailed` when workers die more often than ``retries``.
    """
    if (trial.folder / DONE).is_file():
        return Trained(trial.folder, read_json(trial.folder / DONE))
    (trial.folder / FAILED).unlink(missing_ok=True)
    for attempt in range(trainers.retries + 1):
        try:
            _fit(trial, trainers)
            return Trained(trial.folder, read_json(trial.folder / DONE))
        except PolyrayError:
            raise
        except Exception as error:
            own = _own_error(error)
            why = _last_line(error)
        gc.collect()  # Ray frees a failed run's processors when nothing refers to it any more
        if own is not None:
            raise own
        if attempt == trainers.retries:
            raise TrainingFailed(f"a worker died {attempt + 1} times: {why}")
    raise TrainingFailed("nothing was run")


def _fit(trial: Trial, trainers: Trainers) -> None:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.tune.trainable.trainable_fn_utils import _in_tune_session

    on_gpu, cpus = _resources(trainers)
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", str(START_S))
    # It would tell workers of a node's coming end, and takes a process a trial; whole checkpoints
    # are what a trial goes on from.
    os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
    (trial.folder / "ray").mkdir(parents=True, exist_ok=True)

    def fit(callbacks: list[Any]) -> None:
        TorchTrainer(
            _Worker(trial, None if on_gpu else cpus),
            scaling_config=ScalingConfig(
                num_workers=trainers.workers,
                use_gpu=on_gpu,
                resources_per_worker={"CPU": cpus} | ({"GPU": 1} if on_gpu else {}),
            ),
            torch_config=TorchConfig(backend="nccl" if on_gpu else "gloo"),
            run_config=RunConfig(
                name=f"try-{os.getpid()}-{len(list((trial.folder / 'ray').iterdir()))}",
                storage_path=str(trial.folder / "ray"),
                failure_config=FailureConfig(max_failures=0),
                callbacks=callbacks,
            ),
        ).fit()

    with _quiet_train():
        if _in_tune_session():
            _passed_to_tune(fit)
        else:
            fit([])


class _Worker:
    """What a training worker runs."""

    def __init__(self, trial: Trial, threads: int | None) -> None:
        self._trial, self._threads = trial, threads
        self.__name__ = "train_student"

    def __call__(self) -> None:
        import ray.train
        import torch

        if self._threads is not None:
            torch.set_num_threads(self._threads)
        self._trial.train(lambda line: ray.train.report(line))


def _resources(trainers: Trainers) -> tuple[bool, int]:
    import ray

    from polyray.cluster import largest_node

    total = ray.cluster_resources()
    on_gpu = trainers.gpu if trainers.gpu is not None else total.get("GPU", 0) >= trainers.workers
    cpus = trainers.cpus or (1 if on_gpu else max(1, largest_node() // trainers.workers))
    for name, wanted in (("CPU", cpus * trainers.workers), ("GPU", on_gpu * trainers.workers)):
        if trainers.address is None and wanted > total.get(name, 0):
            raise ConfigError(
                f"workers: {trainers.workers} of them need {wanted} {name}, and Ray here has "
                f"{total.get(name, 0):g}"
            )
    return on_gpu, cpus


def _passed_to_tune(fit: Callable[[list[Any]], None]) -> None:
    """Run ``fit`` in a thread of its own; this one reports to Tune what the workers report.

    With Ray's TuneReportCallback two threads report, the trial's and one of Tune's own: where the
    trial's end comes before the last report has been read, that one is lost, or each waits for the
    other for ever.
    """
    from ray import tune
    from ray.train import UserCallback
    from ray.util.queue import Empty, Queue

    # Of one place: training does not run ahead of what Tune has read and may stop.
    lines = Queue(1, actor_options={"num_cpus": 0})
    failed: list[BaseException] = []

    class Passed(UserCallback):
        def after_report(self, run_context: Any, metrics: Any, checkpoint: Any) -> None:
            lines.put(metrics[0])

    def work() -> None:
        try:
            fit([Passed()])
        except BaseException as error:
            failed.append(error)

    worker = threading.Thread(target=work, name="polyray-fit", daemon=True)
    worker.start()
    while True:
        over = not worker.is_alive()
        try:
            line = lines.get(timeout=_LOOK_S)
        except Empty:
            if over:
                break
        else:
            tune.report(line)
    lines.shutdown()
    if failed:
        raise failed[0]


@contextmanager
def _quiet_train() -> Iterator[None]:
    import logging

    for name in ("ray.train", "ray.tune", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    yield


def _own_error(error: Exception) -> PolyrayError | None:
    """The user's own error among what the workers failed with."""
    from polyray.indexes.actors import user_error

    failures = getattr(error, "worker_failures", None) or {0: error}
    for failure in failures.values():
        found = user_error(failure)
        if isinstance(found, PolyrayError):
            return found.with_traceback(None)
    return None


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__


def run_trials(
    trials: Sequence[Trial],
    trainers: Trainers,
    *,
    scheduler: Any = None,
    metric: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[TrialResult]:
    """Train all students under Ray Tune; one that fails stops no other.

    Trials that are whole on disk are not run, nor those that were stopped early. ``scheduler`` may
    stop trials by ``metric``, as reported at validations; their checkpoints are removed. Needs a
    running Ray; results come in the order of ``trials``.
    """
    pending = unfinished(trials)
    tell = progress or (lambda step, done, total: None)
    tell("students", len(trials) - len(pending), len(trials))
    if pending:
        _tune(pending, trainers, scheduler, metric, tell, len(trials))
    return [_result(trial) for trial in trials]


def unfinished(trials: Sequence[Trial]) -> list[Trial]:
    """Those that neither came to their end nor were stopped early."""
    ends = (DONE, STOPPED)
    return [trial for trial in trials if not any((trial.folder / e).is_file() for e in ends)]


def _result(trial: Trial) -> TrialResult:
    if (trial.folder / DONE).is_file():
        return TrialResult(trial, Trained(trial.folder, read_json(trial.folder / DONE)))
    for name in (FAILED, STOPPED):
        if (trial.folder / name).is_file():
            return TrialResult(trial, None, read_json(trial.folder / name)["error"])
    return TrialResult(trial, None, "it came to no end")


def _tune(
    pending: Sequence[Trial],
    trainers: Trainers,
    scheduler: Any,
    metric: str | None,
    tell: Callable[[str, int, int], None],
    total: int,
) -> None:
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the other output prints at every verbosity
    from ray import tune
    from ray.tune import Callback, RunConfig, TuneConfig

    by_name = {trial.name: trial for trial in pending}
    if len(by_name) < len(pending):
        raise PolyrayError("two trials have the same name")
    done = [total - len(pending)]
    early: list[Path] = []
    # Only lines of a validation hold the metric; those of the loss are reported, too.
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")

    class Told(Callback):
        """Passes the end of each trial on, and notes those that the scheduler has stopped."""

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            place = by_name[trial.config["student"]].folder
            if scheduler is not None and not any((place / e).is_file() for e in (DONE, FAILED)):
                last = trial.last_result or {}
                where = f"step {last.get('step', 0):g}, {metric} {last.get(metric, 0):.4f}"
                write_json(place / STOPPED, {"error": f"stopped early: {where}"})
                early.append(place)
            self.on_trial_error()

        def on_trial_error(self, *_: Any, **__: Any) -> None:
            done[0] += 1
            tell("students", done[0], total)

    def one(config: dict[str, Any]) -> None:
        trial = by_name[config["student"]]
        try:
            run_trial(trial, trainers)
        except PolyrayError as error:
            write_json(trial.folder / FAILED, {"error": str(error)})

    storage = pending[0].folder.parent.parent / "ray"
    storage.mkdir(parents=True, exist_ok=True)
    with _quiet_train():
        tuner = tune.Tuner(
            tune.with_resources(one, {"memory": WAITING}),
            param_space={"student": tune.grid_search(sorted(by_name))},
            tune_config=TuneConfig(
                scheduler=scheduler,
                metric=metric,
                mode="max" if metric else None,
                max_concurrent_trials=trainers.concurrent or _room(trainers),
                trial_name_creator=lambda made: str(made.config["student"]),
                trial_dirname_creator=lambda made: str(made.config["student"]),
            ),
            run_config=RunConfig(
                name=f"tune-{os.getpid()}",
                storage_path=str(storage),
                callbacks=[Told()],
                verbose=0,
            ),
        )
        tuner.fit()
    for place in early:
        shutil.rmtree(place / "checkpoints", ignore_errors=True)


def _room(trainers: Trainers) -> int:
    """Trials that fit on the cluster at once."""
    import ray

    on_gpu, cpus = _resources(trainers)
    total = ray.cluster_resources()
    if on_gpu:
        return max(1, int(total.get("GPU", 1)) // trainers.workers)
    return max(1, int(total.get("CPU", 1)) // (cpus * trainers.workers))
