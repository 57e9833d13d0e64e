"""What the CLSD study leaves behind: results, tables, plots, outcomes of each pair, MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Table, TopicValue, write_per_topic
from polyray.experiment import Experiment
from polyray.files import atomic_path, write_json
from tasks.clsd.data import ClsdData, ClsdFile
from tasks.clsd.measure import PairOutcome, directions, summary

if TYPE_CHECKING:
    from tasks.clsd.config import ClsdConfig
    from tasks.clsd.run import ClsdScore

__all__ = ["clsd_table", "write_report"]

CAPTION = "P@1 in percent: the true translation scores above every distractor (a tie is a miss)"


def write_report(
    experiment: Experiment,
    config: ClsdConfig,
    data: Sequence[ClsdData],
    scores: Sequence[ClsdScore],
    seconds: dict[str, float],
) -> list[Table]:
    """Write everything into the experiment's folder, then log it; returns the main table.

    ``seconds`` of encoding are left as an earlier start wrote them where nothing was encoded.
    """
    folder = experiment.folder
    write_json(folder / "results.json", _results(config, data, scores))
    if seconds or not (folder / "seconds.json").is_file():
        write_json(folder / "seconds.json", seconds)
    write_per_topic(folder / "per_topic.parquet", _per_topic(scores))
    _write_outcomes(folder / "outcomes.parquet", scores)
    main = clsd_table(scores, f"{config.name}: {CAPTION}")
    main.write(folder / "tables", "clsd")
    _counts(config, data, scores).write(folder / "tables", "counts")
    _plot(folder / "plots" / "clsd.png", config, scores)
    _track(experiment, config, data, scores)
    return [main]


def clsd_table(scores: Sequence[ClsdScore], caption: str) -> Table:
    """One row an encoder and mode, one column a data set and direction, and their mean."""
    cells: dict[tuple[str, str], dict[str, float | None]] = {}
    for score in scores:
        value = summary(score.outcomes)["P@1"]
        row = cells.setdefault((score.mode, score.encoder), {})
        row[f"{score.dataset} {score.direction}"] = None if value is None else 100 * value
    shown = list(dict.fromkeys(name for row in cells.values() for name in row))
    rows = []
    for (mode, encoder), row in cells.items():
        values = [row.get(name) for name in shown]
        known = [value for value in values if value is not None]
        whole = len(known) == len(values)
        rows.append([encoder, mode, *values, sum(known) / len(known) if whole else None])
    columns = ["encoder", "mode", *shown, "mean"]
    return Table(columns, rows, caption, decimals=dict.fromkeys([*shown, "mean"], 1))


def _file_facts(file: ClsdFile) -> dict[str, Any]:
    without = {
        str(direction): sum(not any(row.distractors[direction.candidates]) for row in file.rows)
        for direction in directions(file)
    }
    return {
        "pairs": len(file.rows),
        "blank_records": file.blank_records,
        "missing_distractors": file.missing,
        "pairs_without_distractors": without,
    }


def _results(
    config: ClsdConfig, data: Sequence[ClsdData], scores: Sequence[ClsdScore]
) -> dict[str, Any]:
    return {
        "name": config.name,
        "datasets": {
            each.name: {mode: _file_facts(each.file(mode)) for mode in config.modes}
            for each in data
        },
        "scores": [
            {
                "encoder": score.encoder,
                "dataset": score.dataset,
                "mode": score.mode,
                "direction": score.direction,
                **summary(score.outcomes),
                "texts": score.encoder_facts["texts"],
                "truncated": score.encoder_facts["truncated"],
                "settings": score.encoder_facts["encoder"],
            }
            for score in scores
        ],
    }


def _per_topic(scores: Sequence[ClsdScore]) -> Iterator[TopicValue]:
    for score in scores:
        query, _, candidates = score.direction.partition("->")
        for outcome in score.outcomes:
            yield TopicValue(
                system=score.encoder,
                query_language=query,
                variant=f"{score.dataset} {score.mode} {score.direction}",
                topic_id=outcome.row_id,
                measure="P@1",
                value=float(outcome.hit),
                document_language=candidates,
            )


def _write_outcomes(path: Path, scores: Sequence[ClsdScore]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"str": pa.string(), "bool": pa.bool_(), "float": pa.float64(), "int": pa.int64()}
    own = [(name, pa.string()) for name in ("encoder", "dataset", "mode")]
    schema = pa.schema(own + [(f.name, kinds[str(f.type)]) for f in fields(PairOutcome)])
    rows = [
        {"encoder": s.encoder, "dataset": s.dataset, "mode": s.mode, **asdict(outcome)}
        for s in scores
        for outcome in s.outcomes
    ]
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)


def _counts(config: ClsdConfig, data: Sequence[ClsdData], scores: Sequence[ClsdScore]) -> Table:
    """What was read and left out, and how many texts each encoder cut off and how often it tied."""
    facts = {
        (each.name, mode): _file_facts(each.file(mode)) for each in data for mode in config.modes
    }
    rows = []
    for score in scores:
        read, found = facts[score.dataset, score.mode], summary(score.outcomes)
        missing = read["missing_distractors"][score.direction.partition("->")[2]]
        rows.append(
            [
                score.encoder,
                score.dataset,
                score.mode,
                score.direction,
                *(found[name] for name in ("pairs", "hits", "ties")),
                missing,
                read["pairs_without_distractors"][score.direction],
                read["blank_records"],
                score.encoder_facts["truncated"],
            ]
        )
    columns = ["encoder", "data set", "mode", "direction", "pairs", "hits", "ties"]
    columns += ["missing distractors", "pairs without", "blank records", "texts truncated"]
    return Table(columns, rows, f"{config.name}: what was counted and what was left out")


def _plot(path: Path, config: ClsdConfig, scores: Sequence[ClsdScore]) -> None:
    from polyray.evaluation.plots import CLSDBar, clsd_bars

    bars = []
    for score in scores:
        value = summary(score.outcomes)["P@1"]
        if value is not None:
            panel = f"{score.dataset}, {score.mode}"
            bars.append(CLSDBar(score.encoder, panel, score.direction, 100 * value))
    if bars:
        clsd_bars(path, bars, f"{config.name}: P@1 in percent")


def _track(
    experiment: Experiment,
    config: ClsdConfig,
    data: Sequence[ClsdData],
    scores: Sequence[ClsdScore],
) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    name = f"{config.name}-{experiment.hash}"
    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "clsd"}
    with Tracker(config.name, name, tags, config.tracking) as tracker:
        tracker.log_params(
            {
                "config": experiment.text,
                "encoders": ",".join(encoder.name for encoder in config.encoders),
                "datasets": ",".join(dataset.name for dataset in config.datasets),
                "modes": ",".join(config.modes),
                **{f"inputs.{key}": value for key, value in experiment.inputs.items()},
            }
        )
        for each, dataset in zip(data, config.datasets, strict=True):
            tracker.log_dataset(each.name, dataset.path, experiment.inputs[each.name])
        headline = {}
        for score in scores:
            found = summary(score.outcomes)
            metrics = {key: float(value) for key, value in found.items() if value is not None}
            tracker.child(score.name, _params(score), metrics, {"polyray.system": score.encoder})
            if "P@1" in metrics:
                direction = score.direction.replace("->", "-")
                place = f"{score.encoder}/{score.dataset}/{score.mode}/{direction}"
                headline[f"{place}/P@1"] = metrics["P@1"]
        tracker.log_metrics(headline)
        tracker.log_artifacts(experiment.folder)


def _params(score: ClsdScore) -> dict[str, Any]:
    return {
        "encoder": score.encoder,
        "dataset": score.dataset,
        "mode": score.mode,
        "direction": score.direction,
        "texts": score.encoder_facts["texts"],
        "truncated": score.encoder_facts["truncated"],
        **score.encoder_facts["encoder"],
    }
