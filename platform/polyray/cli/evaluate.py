"""``polyray evaluate``: what a run is worth."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["Duplicates", "evaluate"]

HEADLINE = "mean, topics with a relevant document"
ALL_JUDGED = "mean, all judged topics"


class Duplicates(StrEnum):
    """What to do about a document that a run lists twice for a topic."""

    refuse = "refuse"
    best = "best"


def evaluate(
    qrels: Annotated[str, typer.Option(help="Relevance judgments, TREC form.")],
    run: Annotated[str, typer.Option(help="Run to measure, TREC form.")],
    measure: Annotated[
        list[str] | None,
        typer.Option(help="A measure as ir_measures writes it; may be given several times."),
    ] = None,
    per_topic: Annotated[bool, typer.Option("--per-topic", help="Show every topic too.")] = False,
    json_out: Annotated[
        str | None,
        typer.Option("--json", metavar="OUT", help="Write the result as JSON; - is the output."),
    ] = None,
    duplicates: Annotated[
        Duplicates, typer.Option(help="A document twice in a topic: refuse, or keep the best.")
    ] = Duplicates.refuse,
) -> None:
    """Measure a run against relevance judgments, as trec_eval computes it."""
    from rich.console import Console

    from polyray.collections.qrels import read_qrels
    from polyray.evaluation.measures import DEFAULT_MEASURES, parse_measures
    from polyray.evaluation.measures import evaluate as measure_run
    from polyray.evaluation.tables import Cell, Table, plain
    from polyray.files import resolve, write_json
    from polyray.runs import Run

    measures = parse_measures(measure or DEFAULT_MEASURES)
    judgments = read_qrels(str(resolve(qrels)))
    result = measure_run(
        Run.read(str(resolve(run)), duplicates=duplicates.value), judgments, measures
    )
    to_output = json_out == "-"
    console = Console(stderr=to_output)
    names = list(result.measures)
    if per_topic:
        rows: list[list[Cell]] = [
            [topic, *values.values()] for topic, values in result.per_topic.items()
        ]
        console.print(Table(["topic", *names], rows, "Every judged topic").rich())
    counts = result.topics
    means: list[list[Cell]] = [["topics", counts["with_relevant"], counts["judged"]]]
    means += [[n, result.measures[n], result.measures_all_judged[n]] for n in names]
    caption = f"The headline is the {HEADLINE}"
    console.print(Table(["measure", HEADLINE, ALL_JUDGED], means, caption).rich())
    for note in result.notes():
        console.print(plain(note), markup=False, highlight=False, soft_wrap=True)
    if json_out is None:
        return
    if to_output:
        text = json.dumps(result.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
        typer.echo(text)
    else:
        write_json(json_out, result.to_json())
