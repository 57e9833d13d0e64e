"""Students by recipe, seed and setting: ``python -m jobs.train configs/train/small.yaml``.

``--dry-run`` prints what would be trained, and what it would take, and trains nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs._common import run, show
from polyray.cli.arguments import add_config_arguments
from polyray.config import load_config
from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import write_json
from polyray.progress import Progress
from polyray.training.distributed import TrialResult, run_trials, unfinished
from polyray.training.examples import Examples
from polyray.training.study import Student, TrainConfig, students


@dataclass(frozen=True, slots=True)
class Learned:
    """The table that the job prints, and the experiment's folder."""

    tables: list[Table]
    folder: Path
    notes: list[str]
    results: list[TrialResult]


def run_train(config: TrainConfig) -> Learned:
    """Train every student that is not there yet; print losses, validation and speed."""
    from polyray.cluster import started

    experiment, trials, notes = prepared(config)
    with Progress(config.name) as progress:
        if unfinished(trials):
            with started(address=config.workers.address):
                results = run_trials(
                    trials,
                    config.workers,
                    scheduler=_scheduler(config),
                    metric="eval_ndcg_at_10" if config.asha else None,
                    progress=progress.update,
                )
        else:
            results = run_trials(trials, config.workers)
    table = Table(COLUMNS, [_row(result) for result in results], f"{config.name}: students")
    table.write(experiment.folder / "tables", "students")
    notes += [f"{r.trial.name}: {r.error}" for r in results if r.trained is None]
    facts = {r.trial.name: r.trained.facts if r.trained else {"error": r.error} for r in results}
    write_json(experiment.folder / "results.json", facts)
    _link(experiment, results)
    _plot(experiment.folder, results)
    _track(config, experiment, results)
    return Learned([table], experiment.folder, notes, results)


def prepared(config: TrainConfig) -> tuple[Experiment, list[Student], list[str]]:
    """The experiment, its trials with their examples checked, and what was found in the files."""
    recipes = list(config.recipes.values())
    inputs = {f"source.{k}": v for k, v in config.source.fingerprints(recipes).items()}
    held = config.validation
    if held is not None:
        found = held.source.fingerprints([held.recipe])
        inputs |= {f"validation.{k}": v for k, v in found.items()}
    output = Path(config.output).absolute()
    experiment = Experiment(config.name, config, inputs, output)
    experiment.open()
    folders: dict[str, Path] = {}
    notes: list[str] = []
    seed = config.seeds[0]
    with Progress(config.name) as progress:
        for name, recipe in config.recipes.items():
            others = [other for other in recipes if other is not recipe]
            examples = Examples.prepare(
                config.source,
                recipe,
                output / "examples",
                seed=seed,
                alongside=others,
                progress=progress.update,
            )
            folders[name] = examples.folder
            if not notes:
                notes += examples.report.notes()
        if held is not None:
            pool = Examples.prepare(held.source, held.recipe, output / "examples", seed=held.seed)
            folders["validation"] = pool.folder
    card = {"config": experiment.hash, "study": config.name}
    return experiment, students(config, experiment.folder, folders, card), notes


COLUMNS = [
    "student",
    "steps",
    "first loss",
    "last loss",
    "best nDCG@10",
    "best step",
    "examples/s",
    "minutes",
]


def _row(result: TrialResult) -> list[Any]:
    if result.trained is None:
        return [result.trial.name, None, None, None, None, None, None, None]
    facts = result.trained.facts
    losses = [line["loss"] for line in facts["history"] if "loss" in line]
    few = max(1, len(losses) // 10)
    return [
        result.trial.name,
        facts["steps"],
        round(statistics.mean(losses[:few]), 4) if losses else None,
        round(statistics.mean(losses[-few:]), 4) if losses else None,
        facts["best"],
        facts["best_step"],
        facts["examples_per_second"],
        round(facts["seconds"] / 60, 2),
    ]


def _link(experiment: Experiment, results: Sequence[TrialResult]) -> None:
    """``<output>/<name>/students/<student>``: always the student of that name trained last."""
    folder = experiment.folder.parent / "students"
    folder.mkdir(exist_ok=True)
    for result in results:
        if result.trained is not None:
            name = result.trial.name
            temporary = folder / f".{name}.{os.getpid()}.tmp"
            temporary.symlink_to(Path("..") / experiment.hash / "students" / name)
            temporary.replace(folder / name)


def _scheduler(config: TrainConfig) -> Any:
    if config.asha is None:
        return None
    every = config.training.validate_every or 1
    return halving(config.training.steps, config.asha.grace * every, config.asha.reduction)


def halving(steps: int, grace: int, reduction: int) -> Any:
    """Ray Tune's scheduler for :class:`~polyray.training.study.Asha`; all in steps."""
    from ray.tune.schedulers import ASHAScheduler, TrialScheduler

    class Halving(ASHAScheduler):
        """Lets a student that has taken its last step write what it has learned."""

        def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
            action: str = super().on_trial_result(tune_controller, trial, result)
            return TrialScheduler.CONTINUE if result.get("step", 0) >= steps else action

    return Halving(time_attr="step", max_t=steps, grace_period=grace, reduction_factor=reduction)


def _plot(folder: Path, results: Sequence[TrialResult]) -> None:
    from polyray.training.curves import plot_losses

    curves = {r.trial.name: r.trained.history for r in results if r.trained is not None}
    if curves:
        plot_losses(folder / "plots" / "losses.png", curves)


def _track(config: TrainConfig, experiment: Experiment, results: Sequence[TrialResult]) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "train"}
    with Tracker(config.name, f"{config.name}-{experiment.hash}", tags, config.tracking) as tracker:
        tracker.log_params({"config": experiment.text})
        for result in results:
            trial, trained = result.trial, result.trained
            own = {"polyray.student": trial.name, "polyray.folder": str(trial.folder)}
            if trained is None:
                tracker.child(trial.name, {}, {}, {**own, "polyray.error": result.error})
                continue
            facts = trained.facts
            names = ("steps", "best_step", "examples_per_second", "seconds", "trainable_weights")
            metrics = {name: float(facts[name]) for name in names}
            if facts["best"] is not None:
                metrics["best_ndcg_at_10"] = float(facts["best"])
            params = {"recipe": facts["recipe"]["kind"], "seed": facts["seed"]}
            tracker.child(trial.name, params, metrics, own, curves=trained.history)
        tracker.log_artifacts(experiment.folder / "tables")
        tracker.log_artifacts(experiment.folder / "plots")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run the job, or print its plan."""
    parser = argparse.ArgumentParser(description=run_train.__doc__)
    add_config_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the plan and train nothing")
    given = parser.parse_args(arguments)

    def job() -> None:
        config = load_config(given.config, given.overrides, TrainConfig)
        if given.dry_run:
            from polyray.training.plan import planned

            show(planned(config))
        else:
            show(run_train(config))

    run(job)


if __name__ == "__main__":
    main()
