"""``polyray switch``: mixed-language queries by lexicon."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from polyray.records import Topic
    from polyray.text.switching import SwitchedTopic

__all__ = ["switch"]


def switch(
    queries: Annotated[str, typer.Option(help="Queries, TSV: id, title[, description].")],
    lexicon: Annotated[str, typer.Option(help="Lexicon: word, translation, one pair a line.")],
    out: Annotated[str, typer.Option(help="Switched queries to write, TSV.")],
    rate: Annotated[float, typer.Option(help="Probability of replacing a known word.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the random draws.")] = 42,
    language: Annotated[str, typer.Option(help="Language that is mixed in.")] = "",
    source: Annotated[str, typer.Option(help="Language of the queries.")] = "en",
    content_words: Annotated[
        bool, typer.Option("--content-words", help="Leave function words as they are.")
    ] = False,
    stop_words: Annotated[
        str, typer.Option(help="Function words, one a line (default: packaged, for English).")
    ] = "",
    tagger: Annotated[
        str, typer.Option(help="With --content-words: any, spacy, stanza or hanta, if installed.")
    ] = "none",
    phrases: Annotated[
        bool, typer.Option("--phrases", help="Headwords of several words too, longest first.")
    ] = False,
    single_words: Annotated[
        bool, typer.Option("--single-words", help="No translations of several words.")
    ] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="Choose by the lexicon's third column.")
    ] = False,
    segmenter: Annotated[
        str, typer.Option(help="Words of unspaced scripts: characters, lexicon or jieba.")
    ] = "characters",
    lemmas: Annotated[
        bool, typer.Option("--lemmas", help="Look inflected words up by dictionary form.")
    ] = False,
    keep_case: Annotated[
        bool, typer.Option("--keep-case", help="Translations just as the lexicon writes them.")
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Drop entries that are no translations; say which.")
    ] = False,
    senses: Annotated[
        int | None, typer.Option(min=1, help="With --clean: translations a word.")
    ] = None,
    switched: Annotated[
        str, typer.Option(help="What was switched where, to write as JSON lines.")
    ] = "",
) -> None:
    """Replace words of queries by their translations, at random but always the same way.

    A query's draws depend on the seed and its id alone, not on the order of the file.
    """
    from rich.console import Console

    from polyray.collections.lexicon import read_lexicon, read_weighted_lexicon
    from polyray.collections.topics import read_topics
    from polyray.config import validated
    from polyray.errors import ConfigError
    from polyray.files import resolve
    from polyray.languages import language as language_of
    from polyray.text.lexicon_hygiene import HygieneSettings, clean_lexicon
    from polyray.text.switch_settings import SwitchSettings
    from polyray.text.switching import Switcher, rates

    if not 0.0 <= rate <= 1.0:
        raise ConfigError(f"a switching rate of {rate}: it must be between 0 and 1")
    if senses is not None and not clean:
        raise ConfigError("--senses is a limit of --clean: give both")
    if stop_words and not (content_words or clean):
        raise ConfigError("--stop-words is the list of --content-words and --clean: give one")
    settings = validated(
        SwitchSettings,
        {
            "rate": rate,
            "seed": seed,
            "source_language": source,
            "content_words": content_words,
            "stop_words": stop_words or None,
            "tagger": tagger,
            "multiword_headwords": phrases,
            "multiword_translations": not single_words,
            "choice": "weight" if weights else "uniform",
            "segmenter": segmenter,
            "lemmas": lemmas,
            "carry_case": not keep_case,
        },
        "polyray switch",
    )
    code = language_of(language).code if language else ""
    topics = read_topics(str(resolve(queries)), format="tsv")
    path = str(resolve(lexicon))
    entries: Any = read_weighted_lexicon(path) if weights else read_lexicon(path)
    console = Console()
    if clean:
        rules = HygieneSettings(stop_list=stop_words or None, max_senses=senses)
        entries, report = clean_lexicon(
            entries, rules, source=settings.source_language, target=code
        )
        console.print(report.table(Path(path).name).rich())
    switcher = Switcher(entries, settings)
    made = list(switcher.topics(topics, code))
    described = any(topic.description for topic in topics)
    columns = ((one.topic.topic_id, one.topic.title, one.topic.description) for one in made)
    _write(out, ("\t".join(row if described else row[:2]) for row in columns))
    if switched:
        _write(switched, (json.dumps(row, ensure_ascii=False) for row in _rows(topics, made)))

    into = f", {code}" if code else ""
    for what, name in switcher.used.items():
        console.print(f"{what}: {name}", markup=False, highlight=False)
    counts = rates(part for one in made for part in (one.title, one.description))
    console.print(_table(f"rate {rate:g}, seed {seed}{into}", len(made), counts))


def _write(path: str, lines: Iterator[str]) -> None:
    from polyray.files import atomic_path, resolve

    with (
        atomic_path(resolve(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as handle,
    ):
        handle.writelines(f"{line}\n" for line in lines)


def _rows(topics: Sequence[Topic], made: Sequence[SwitchedTopic]) -> Iterator[dict[str, Any]]:
    """A row a text: what it was, what it became, and every replacement with its places."""
    for before, one in zip(topics, made, strict=True):
        fields = [("title", before.title, one.title)]
        if before.description:
            fields.append(("description", before.description, one.description))
        for field, text, part in fields:
            yield {
                "id": before.topic_id,
                "field": field,
                "text": text,
                "switched": part.text,
                "tokens": part.tokens,
                "replaceable": part.replaceable,
                "replaced": [replacement._asdict() for replacement in part.replacements],
            }


def _table(title: str, queries: int, counts: dict[str, float]) -> Any:
    from rich.table import Table

    table = Table(title=title)
    for heading in ("queries", "words", "in the lexicon", "replaced", "of those", "of all words"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{queries:,}",
        f"{counts['tokens']:,}",
        f"{counts['replaceable']:,}",
        f"{counts['replaced']:,}",
        f"{counts['rate_of_replaceable']:.3f}",
        f"{counts['rate_of_tokens']:.3f}",
    )
    return table
