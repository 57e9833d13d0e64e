"""What the mixed-query study leaves behind: results, tables, plots, per-topic values, MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Cell, Table, topic_values, write_per_topic
from polyray.experiment import Experiment
from polyray.files import write_json
from tasks.mqir.groups import group_table, paired_tests

if TYPE_CHECKING:
    from tasks.mqir.config import MqirConfig
    from tasks.mqir.run import MqirResult, Score

__all__ = ["scenario_table", "write_report"]

SCENARIOS = ("MonoIR", "CLIR", "MQIR")


def write_report(
    experiment: Experiment,
    config: MqirConfig,
    scores: list[Score],
    *,
    queries: dict[str, Any],
    collections: dict[str, Any],
    seconds: dict[str, float],
) -> MqirResult:
    """Write everything into the experiment's folder, then log it; MLflow comes last."""
    from tasks.mqir.run import MqirResult

    folder = experiment.folder
    write_json(folder / "results.json", _results(config, scores, queries, collections))
    write_json(folder / "seconds.json", seconds)
    rows = [
        row
        for score in scores
        for row in topic_values(
            score.evaluation,
            score.system,
            score.condition.query_language,
            score.condition.variant,
            score.condition.documents,
        )
    ]
    write_per_topic(folder / "per_topic.parquet", rows)
    tables = _tables(config, scores)
    for name, table in tables.items():
        table.write(folder / "tables", name)
    _plots(experiment, config, scores)
    _track(experiment, config, scores, queries, collections)
    shown = [table for name, table in tables.items() if name != "all"]
    return MqirResult(folder, scores, shown, queries, collections, seconds)


def _results(
    config: MqirConfig, scores: Sequence[Score], queries: Any, collections: Any
) -> dict[str, Any]:
    return {
        "name": config.name,
        "collections": collections,
        "queries": queries,
        "scores": [
            {
                "system": score.system,
                "documents": score.condition.documents,
                "language": score.condition.language,
                "query_language": score.condition.query_language,
                "variant": score.condition.variant,
                "scenario": score.condition.scenario,
                "measures": score.evaluation.measures,
                "measures_all_judged": score.evaluation.measures_all_judged,
                "topics": score.evaluation.topics,
                "index": score.facts,
                "settings": score.described,
            }
            for score in scores
        ],
    }


def scenario_table(scores: Sequence[Score], measure: str, caption: str, target: str) -> Table:
    """One row a system and language, one column a scenario, a mean row for each system.

    ``target`` is ``english`` (English documents) or ``native`` (documents of each row's language).
    """
    cells: dict[tuple[str, str], dict[str, float]] = {}
    baseline: dict[str, float] = {}
    for score in scores:
        if (score.condition.documents == "en") != (target == "english"):
            continue
        value = score.evaluation.measures[measure]
        if score.condition.language == "en":
            baseline[score.system] = value
        else:
            key = (score.system, score.condition.language)
            cells.setdefault(key, {})[score.condition.scenario] = value
    for (system, _), row in cells.items():
        if system in baseline:
            row.setdefault("MonoIR", baseline[system])
    shown = [name for name in SCENARIOS if any(name in row for row in cells.values())]
    rows: list[list[Cell]] = []
    for system in dict.fromkeys(system for system, _ in cells):
        own = {code: row for (name, code), row in cells.items() if name == system}
        rows += [[system, code, *(row.get(name) for name in shown)] for code, row in own.items()]
        rows.append([system, "mean", *(_mean(own.values(), name) for name in shown)])
    return Table(["system", "language", *shown], rows, caption)


def _mean(rows: Any, name: str) -> float | None:
    values = [row[name] for row in rows if name in row]
    return sum(values) / len(values) if values else None


def _values(table: Table) -> Iterator[tuple[str, str, str, float]]:
    """System, language, scenario and value of every filled cell of a scenario table."""
    for system, code, *values in table.rows:
        for scenario, value in zip(table.columns[2:], values, strict=True):
            if value is not None:
                yield str(system), str(code), scenario, float(value)


def _tables(config: MqirConfig, scores: Sequence[Score]) -> dict[str, Table]:
    tables = {}
    for target in config.targets:
        for measure in config.measures[:2]:
            short = measure.replace("@", "_at_")
            where = "English documents" if target == "english" else "native documents"
            caption = f"{config.name}: {measure}, {where}"
            tables[f"{target}_{short}"] = scenario_table(scores, measure, caption, target)
    for measure in config.measures[:2] if config.groups else ():
        short = measure.replace("@", "_at_")
        caption = f"{config.name}: {measure}, means of the seeds; ±: their standard deviation"
        tables[f"groups_{short}"] = group_table(scores, config.groups, measure, caption)
        caption = f"{config.name}: {measure}, paired t-tests over topics"
        tables[f"paired_{short}"] = paired_tests(scores, config.groups, measure, caption)
    tables["all"] = _everything(config, scores)
    return {name: table for name, table in tables.items() if table.rows}


def _everything(config: MqirConfig, scores: Sequence[Score]) -> Table:
    rows: list[list[Cell]] = [
        [
            score.system,
            score.condition.documents,
            score.condition.language,
            score.condition.variant,
            score.condition.scenario,
            *(score.evaluation.measures[name] for name in config.measures),
            *(score.evaluation.topics[name] for name in ("with_relevant", "missing")),
        ]
        for score in scores
    ]
    columns = ["system", "documents", "language", "variant", "scenario", *config.measures]
    caption = f"{config.name}: means over judged topics with a relevant document"
    return Table([*columns, "topics", "without results"], rows, caption)


def _plots(experiment: Experiment, config: MqirConfig, scores: Sequence[Score]) -> None:
    from polyray.evaluation.plots import ScenarioBar, scenario_bars

    for target in config.targets:
        for measure in config.measures[:2]:
            short = measure.replace("@", "_at_")
            where = "English" if target == "english" else "native"
            title = f"{config.name}: {measure}, {where} documents"
            table = scenario_table(scores, measure, title, target)
            bars = [
                ScenarioBar(system, code, scenario, value)
                for system, code, scenario, value in _values(table)
                if code != "mean"
            ]
            if bars:
                path = experiment.folder / "plots" / f"{target}_{short}.png"
                scenario_bars(path, bars, measure, title)


def _track(
    experiment: Experiment,
    config: MqirConfig,
    scores: Sequence[Score],
    queries: dict[str, Any],
    collections: dict[str, Any],
) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    name = f"{config.name}-{experiment.hash}"
    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "mqir"}
    with Tracker(config.name, name, tags, config.tracking) as tracker:
        tracker.log_params(
            {
                "config": experiment.text,
                "languages": ",".join(config.languages),
                "systems": ",".join(system.name for system in config.systems),
                "field": config.queries.field,
                **{f"inputs.{key}": value for key, value in experiment.inputs.items()},
                **{f"documents.{c}": facts["documents"] for c, facts in collections.items()},
                **{f"skipped_empty.{c}": f["skipped_empty"] for c, f in collections.items()},
                "empty_queries": queries["empty_queries"],
            }
        )
        for key, digest in experiment.inputs.items():
            if key.startswith("documents."):
                tracker.log_dataset(f"{config.name}.{key}", config.documents.path, digest)
        for score in scores:
            tracker.child(
                f"{score.system} {score.condition.name}",
                {**score.described, **score.facts, **_condition(score)},
                {**score.evaluation.measures, **_all_judged(score)},
                {"polyray.system": score.system, "polyray.scenario": score.condition.scenario},
            )
        tracker.log_metrics(_headline(config, scores))
        tracker.log_artifacts(experiment.folder)


def _condition(score: Score) -> dict[str, str]:
    condition = score.condition
    return {
        "system": score.system,
        "documents": condition.documents,
        "language": condition.language,
        "variant": condition.variant,
        "scenario": condition.scenario,
    }


def _all_judged(score: Score) -> dict[str, float]:
    counts = {f"topics/{name}": float(value) for name, value in score.evaluation.topics.items()}
    means = score.evaluation.measures_all_judged.items()
    return {**{f"all_judged/{name}": value for name, value in means}, **counts}


def _headline(config: MqirConfig, scores: Sequence[Score]) -> dict[str, float]:
    """Means over languages for the parent run: ``system/target/scenario/measure``."""
    found = {}
    for target in config.targets:
        for measure in config.measures[:2]:
            table = scenario_table(scores, measure, "", target)
            for system, code, scenario, value in _values(table):
                if code == "mean":
                    found[f"{system}/{target}/{scenario}/{measure}"] = value
    return found
