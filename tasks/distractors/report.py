"""The report of a distractor set: counts, similarities, rejects, rules; MLflow."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polyray.evaluation.bars import Bar, grouped_bars
from polyray.evaluation.tables import Cell, Table
from polyray.experiment import Experiment
from polyray.files import write_json
from polyray.languages import LANGUAGES
from polyray.llm.work import usage_facts, usage_metrics, usage_table
from polyray.text.distractors.similarity import BINS, bin_of, sibling_jaccard
from tasks.distractors.data import Pair
from tasks.distractors.generate import Part

if TYPE_CHECKING:
    from tasks.distractors.config import DistractorsConfig

__all__ = ["describe", "write_report"]

_BIN_NAMES = [f"{low}-{high}" for low, high in BINS] + ["0.0-0.3"]


def describe(part: Part, sentences: int, n: int) -> dict[str, Any]:
    """The figures of one language.

    ``sentences``, ``made``, ``missing`` (of n a sentence), ``short`` (sentences with fewer than
    n), ``rejected`` by reason, ``how`` (rule or prompt: count), ``edit_similarity`` by bin,
    ``similarity_mean``, ``jaccard_mean`` and ``jaccard_sd`` (a distractor's mean Jaccard with its
    siblings), ``jaccard_original`` (mean with the original). Means are None without distractors.
    """
    groups: dict[str, list[str]] = {}
    for one in part.made:
        groups.setdefault(one.row_id, []).append(one.text)
    siblings = [value for texts in groups.values() for value in sibling_jaccard(texts)]
    bins = Counter(bin_of(one.edit_similarity) for one in part.made)
    whole = sum(len(texts) == n for texts in groups.values())

    def mean(values: Sequence[float]) -> float | None:
        return statistics.fmean(values) if values else None

    return {
        "sentences": sentences,
        "made": len(part.made),
        "missing": n * sentences - len(part.made),
        "short": sentences - whole,
        "rejected": dict(part.rejected.most_common()),
        "how": dict(Counter(how for one in part.made for how in one.how.split("+")).most_common()),
        "edit_similarity": {name: bins.get(name, 0) for name in _BIN_NAMES},
        "similarity_mean": mean([one.edit_similarity for one in part.made]),
        "jaccard_original": mean([one.jaccard for one in part.made]),
        "jaccard_mean": mean(siblings),
        "jaccard_sd": statistics.pstdev(siblings) if siblings else None,
    }


def write_report(
    experiment: Experiment,
    config: DistractorsConfig,
    pairs: Sequence[Pair],
    parts: Mapping[str, Part],
) -> tuple[list[Table], list[str]]:
    """Write results, tables and plot into the folder, log them; tables and notes to show."""
    folder = experiment.folder
    figures = {code: describe(part, len(pairs), config.n) for code, part in parts.items()}
    results = {"name": config.name, "pairs": len(pairs), "n": config.n, "languages": figures}
    used = {name: own for part in parts.values() for name, own in part.used.items()}
    write_json(folder / "results.json", results | ({"llm": usage_facts(used)} if used else {}))
    tables = _tables(config, figures)
    if used:
        tables["llm"] = usage_table(config.name, used)
    for name, table in tables.items():
        table.write(folder / "tables", name)
    bars = [
        Bar("edit similarity with the original", name, LANGUAGES[code].name, 100 * count / made)
        for code, own in figures.items()
        if (made := own["made"])
        for name, count in own["edit_similarity"].items()
    ]
    if bars:
        path = folder / "plots" / "similarity.png"
        title = f"{config.name}: distractors by similarity"
        grouped_bars(path, bars, "percent", title, names=("measure", "similarity"))
    _track(experiment, config, figures, usage_metrics(used))
    notes = [
        f"{LANGUAGES[code].name}: {own['short']} sentences with fewer than {config.n} distractors"
        for code, own in figures.items()
        if own["short"]
    ]
    notes += [
        f"{LANGUAGES[code].name}: {reason}: {message}"
        for code, part in parts.items()
        for reason, message in part.said.items()
    ]
    notes += [
        f"{LANGUAGES[code].name}: {count} distractors without a verdict of the judge: they stay, "
        "verdict empty in distractors.parquet, and are asked about again at the next start"
        for code, part in parts.items()
        if (count := part.rejected["unjudged"])
    ]
    if config.n != 4:
        notes.append("jobs.clsd reads data sets of four distractors a sentence")
    return list(tables.values()), notes


def _tables(config: DistractorsConfig, figures: Mapping[str, dict[str, Any]]) -> dict[str, Table]:
    codes = list(figures)
    names = [LANGUAGES[code].name for code in codes]

    def counted(kind: str, first: str, caption: str) -> Table:
        keys = sorted(
            {key for own in figures.values() for key in own[kind]},
            key=lambda key: (-sum(own[kind].get(key, 0) for own in figures.values()), key),
        )
        rows: list[list[Cell]] = [
            [key, *(figures[code][kind].get(key, 0) for code in codes)] for key in keys
        ]
        return Table([first, *names], rows, f"{config.name}: {caption}")

    columns = ["language", "sentences", "made", "missing", "short", "similarity"]
    columns += ["Jaccard with original", "Jaccard of siblings", "its deviation"]
    keys = ["sentences", "made", "missing", "short", "similarity_mean", "jaccard_original"]
    keys += ["jaccard_mean", "jaccard_sd"]
    counts: list[list[Cell]] = [
        [name, *(figures[code][key] for key in keys)]
        for name, code in zip(names, codes, strict=True)
    ]
    made = Table(
        columns,
        counts,
        f"{config.name}: distractors by {config.generator.kind}; similarity: InDel ratio, mean",
        decimals=3,
    )
    bins: list[list[Cell]] = [
        [name, *(figures[code]["edit_similarity"][name] for code in codes)] for name in _BIN_NAMES
    ]
    caption = f"{config.name}: distractors by edit similarity with the original"
    return {
        "counts": made,
        "similarity": Table(["edit similarity", *names], bins, caption),
        "how": counted("how", "made by", "how often each rule or prompt had a part"),
        "rejected": counted("rejected", "reason", "rejected candidates by reason"),
    }


def _track(
    experiment: Experiment,
    config: DistractorsConfig,
    figures: Mapping[str, dict[str, Any]],
    llm: Mapping[str, float],
) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    name = f"{config.name}-{experiment.hash}"
    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "distractors"}
    with Tracker(config.name, name, tags, config.tracking) as tracker:
        tracker.log_params(
            {
                "config": experiment.text,
                "generator": config.generator.kind,
                **{f"inputs.{key}": value for key, value in experiment.inputs.items()},
            }
        )
        for code, own in figures.items():
            metrics = {k: float(v) for k, v in own.items() if isinstance(v, int | float)}
            metrics |= {f"rejected/{key}": float(v) for key, v in own["rejected"].items()}
            tracker.child(f"{config.generator.kind} {code}", {"language": code}, metrics)
        tracker.log_metrics(llm)
        tracker.log_artifacts(experiment.folder)
