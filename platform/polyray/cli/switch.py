"""``polyray switch``: mixed-language queries by lexicon."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["switch"]


def switch(
    queries: Annotated[str, typer.Option(help="Queries, TSV: id, title[, description].")],
    lexicon: Annotated[str, typer.Option(help="Lexicon: word, translation, one pair a line.")],
    out: Annotated[str, typer.Option(help="Switched queries to write, TSV.")],
    rate: Annotated[float, typer.Option(help="Probability of replacing a known word.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the random draws.")] = 42,
    language: Annotated[str, typer.Option(help="Language that is mixed in, for the report.")] = "",
) -> None:
    """Replace words of queries by their translations, at random but always the same way.

    A query's draws depend on the seed and its id alone, not on the order of the file.
    """
    from rich.console import Console
    from rich.table import Table

    from polyray.collections.lexicon import read_lexicon
    from polyray.collections.topics import read_topics
    from polyray.files import atomic_path, resolve
    from polyray.languages import language as language_of
    from polyray.text.switching import switch_topics

    code = language_of(language).code if language else ""
    topics = read_topics(str(resolve(queries)), format="tsv")
    switched, counts = switch_topics(
        topics, read_lexicon(str(resolve(lexicon))), rate=rate, seed=seed, language=code
    )
    described = any(topic.description for topic in topics)
    with (
        atomic_path(resolve(out)) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as handle,
    ):
        for topic in switched:
            columns = (topic.topic_id, topic.title, topic.description)
            handle.write("\t".join(columns if described else columns[:2]) + "\n")

    into = f", {code}" if code else ""
    table = Table(title=f"rate {rate:g}, seed {seed}{into}")
    for heading in ("queries", "words", "in the lexicon", "replaced", "of those", "of all words"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{len(switched):,}",
        f"{counts['tokens']:,}",
        f"{counts['replaceable']:,}",
        f"{counts['replaced']:,}",
        f"{counts['rate_of_replaceable']:.3f}",
        f"{counts['rate_of_tokens']:.3f}",
    )
    Console().print(table)
