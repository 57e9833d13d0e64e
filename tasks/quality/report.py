"""What the query-quality study leaves behind: results, tables, plots, values, MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.evaluation.bars import Bar, grouped_bars
from polyray.evaluation.tables import Table, TopicValue, write_per_topic
from polyray.experiment import Experiment
from polyray.files import write_json
from polyray.llm.work import usage_facts, usage_metrics, usage_table
from polyray.text.parts_of_speech import INSTALL
from tasks.quality.human import mean_ratings, preference_summary, rating_summary
from tasks.quality.people_tables import human_table, preferences_table, tau_rows, tau_table
from tasks.quality.tables import (
    VARIANTS,
    agreement_rows,
    controls_table,
    mixing_table,
    parts_table,
    quality_table,
    sources_table,
    those_of,
)

if TYPE_CHECKING:
    from tasks.quality.run import Quality

__all__ = ["write_report"]


def write_report(
    experiment: Experiment, quality: Quality, seconds: dict[str, float]
) -> tuple[list[Table], list[str]]:
    """Write everything into the experiment's folder, then log it; tables and notes to show."""
    folder = experiment.folder
    write_json(folder / "results.json", _results(quality))
    write_json(folder / "seconds.json", seconds)
    write_per_topic(folder / "per_topic.parquet", _per_topic(quality))
    tables = _tables(quality)
    for name, table in tables.items():
        table.write(folder / "tables", name)
    _plots(folder / "plots", quality, tables)
    if quality.used:
        tables["llm"] = usage_table(quality.config.name, quality.used)
        tables["llm"].write(folder / "tables", "llm")
    _track(experiment, quality)
    shown = [table for name, table in tables.items() if name != "quality"]
    return shown, _notes(quality)


def _tables(quality: Quality) -> dict[str, Table]:
    made: dict[str, Table | None] = {"quality": quality_table(quality)}
    for queries in quality.config.queries:
        made[f"quality_{queries.name}"] = quality_table(quality, queries.name)
        made[f"mixing_{queries.name}"] = mixing_table(quality, queries.name)
    made["preferences"] = preferences_table(quality)
    made["annotators"] = human_table(quality)
    made["llm_and_people"] = tau_table(quality)
    made["sources"] = sources_table(quality)
    made["controls"] = controls_table(quality)
    if quality.config.tagger != "none":
        made["parts_of_speech"] = parts_table(quality)
    return {name: table for name, table in made.items() if table is not None}


def _notes(quality: Quality) -> list[str]:
    """What a reader of the tables has to know: what was empty or missing."""
    notes = []
    for name, ids in quality.facts["empty"].items():
        notes.append(f"{name} queries: {len(ids)} without any token: {', '.join(ids[:10])}")
    for source, sets in quality.facts.get("missing_tags", {}).items():
        for name, reasons in sets.items():
            notes.append(f"{source}, {name}: left out: {_counted(reasons)}")
    for name, reasons in quality.facts.get("missing_ratings", {}).items():
        notes.append(f"LLM ratings of {name}: left out: {_counted(reasons)}")
    for path, left in quality.facts.get("judgments_left_out", {}).items():
        notes.append(f"{path}: judgments of other languages left out: {_counted(left)}")
    if not quality.tagger and quality.config.tagger != "none":
        notes.append(f"parts of speech: no tagger is installed; {INSTALL}")
    return notes


def _counted(reasons: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())


def _results(quality: Quality) -> dict[str, Any]:
    config = quality.config
    rated = [
        {**key._asdict(), **values}
        for key, values in sorted(quality.llm_ratings.items(), key=lambda item: item[0])
    ]
    people = []
    for queries in config.queries:
        for code in config.languages:
            row: dict[str, Any] = {"queries": queries.name, "language": code}
            if own := those_of(quality.ratings, queries.name, code):
                row["ratings"] = rating_summary(own)
            if own := those_of(quality.preferences, queries.name, code):
                row["preferences"] = preference_summary(own)
            if len(row) > 2:
                people.append(row)
    return {
        "name": config.name,
        "queries": quality.facts,
        "mixing": [
            {"source": source, **key._asdict(), **{n: v for n, v in report.items() if n != _EACH}}
            for source, reports in quality.mixing.items()
            for key, report in reports.items()
        ],
        "agreement": agreement_rows(quality) if len(quality.tags) > 1 else [],
        "parts_of_speech": {
            "tagger": quality.tagger or None,
            "words": [{**key._asdict(), **own} for key, own in quality.words.items()],
        },
        "people": people,
        "llm_ratings": rated,
        **({"llm": usage_facts(quality.used)} if quality.used else {}),
        "llm_and_people": tau_rows(quality) if rated and quality.ratings else [],
    }


_EACH = "per_query"


def _per_topic(quality: Quality) -> Iterator[TopicValue]:
    for source, reports in quality.mixing.items():
        for key, report in reports.items():
            variant = f"{key.queries} {key.variant}"
            for query_id, values in report[_EACH].items():
                for name, value in values.items():
                    yield TopicValue(source, key.language, variant, query_id, name, value)
    for query, ratings in quality.llm_ratings.items():
        for name, rating in ratings.items():
            variant = f"{query.queries} mixed"
            yield TopicValue("llm", query.language, variant, query.query_id, name, float(rating))
    for query, means in mean_ratings(quality.ratings).items():
        for name, mean in means.items():
            variant = f"{query.queries} mixed"
            yield TopicValue("people", query.language, variant, query.query_id, name, mean)


def _plots(folder: Path, quality: Quality, tables: dict[str, Table]) -> None:
    bars = []
    for queries in quality.config.queries:
        for name in ("cmi_native", "cmi_max"):
            for key, report in quality.mixing[quality.main_source].items():
                if key.queries == queries.name and key.variant in VARIANTS:
                    panel = f"{queries.name}, {name}"
                    bars.append(Bar(panel, key.language, key.variant, report["mean_all"][name]))
    bars = [bar for bar in bars if bar.value is not None]
    title = f"{quality.config.name}: Code-Mixing Index (0 to 100), mean over queries"
    names = ("queries", "native language")
    if bars:
        grouped_bars(folder / "code_mixing.png", bars, "CMI", title, names=names)
    parts = [
        Bar("English words", str(row[0]), variant, float(value))
        for row in (tables["parts_of_speech"].rows if quality.tagger else [])
        for variant, value in zip(VARIANTS, row[1:], strict=True)
        if isinstance(value, float)
    ]
    if parts:
        title = f"{quality.config.name}: parts of speech of English words, {quality.tagger}"
        names = ("words", "part of speech")
        grouped_bars(folder / "parts_of_speech.png", parts, "percent", title, names=names)
    _plot_ratings(folder, quality)


def _plot_ratings(folder: Path, quality: Quality) -> None:
    bars = []
    table = quality_table(quality)
    for row in table.rows:
        for column, value in zip(table.columns, row, strict=True):
            queries, _, what = column.partition(" ")
            if what.endswith(".") and isinstance(value, int | float) and row[0] != "average":
                bars.append(Bar(queries, str(row[0]), what, float(value)))
    if bars:
        title = f"{quality.config.name}: mean ratings, 1 to 3"
        names = ("queries", "native language")
        path = folder / "ratings.png"
        grouped_bars(path, bars, "rating", title, names=names, top=3.3, decimals=2)


def _track(experiment: Experiment, quality: Quality) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    config = quality.config
    name = f"{config.name}-{experiment.hash}"
    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "quality"}
    with Tracker(config.name, name, tags, config.tracking) as tracker:
        tracker.log_params(
            {
                "config": experiment.text,
                "languages": ",".join(config.languages),
                "queries": ",".join(queries.name for queries in config.queries),
                "sources": ",".join(quality.tags),
                "tagger": quality.tagger or "none installed",
                **{f"inputs.{key}": value for key, value in experiment.inputs.items()},
            }
        )
        for source, reports in quality.mixing.items():
            for key, report in reports.items():
                if key.variant not in VARIANTS:
                    continue
                metrics = {
                    **{f"mean_all/{n}": v for n, v in report["mean_all"].items()},
                    **{f"mean_mixed/{n}": v for n, v in report["mean_mixed"].items()},
                    "share_mixed": report["share_mixed"],
                }
                known = {n: float(v) for n, v in metrics.items() if v is not None}
                params = {"source": source, **key._asdict(), **report["counts"]}
                tracker.child(f"{source} {key}", params, known, {"polyray.system": source})
        tracker.log_metrics(_headline(quality) | usage_metrics(quality.used))
        tracker.log_artifacts(experiment.folder)


def _headline(quality: Quality) -> dict[str, float]:
    """The average row of table 1, for the parent run."""
    table = quality_table(quality)
    last = table.rows[-1]
    return {
        column.replace(" ", "/", 1): float(value)
        for column, value in zip(table.columns, last, strict=True)
        if isinstance(value, int | float)
    }
