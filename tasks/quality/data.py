"""The query sets of a quality study, cut into word tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from polyray.collections.query_sources import LexiconMix, files_of, read_mix, read_source
from polyray.errors import InputError, Problem
from polyray.files import atomic_path, digests_of, resolve
from polyray.llm.prompts import prompt_file
from polyray.records import Topic
from polyray.text.token_languages import word_tokens
from tasks.quality.config import FileTags, LlmTags, QualityConfig, QualityQueries, Variant

__all__ = ["QuerySet", "SetKey", "input_digests", "read_query_sets", "set_keys", "tags_path"]


class SetKey(NamedTuple):
    """One set of queries: which text, whose native language, in which variant."""

    queries: str
    language: str
    variant: Variant

    def __str__(self) -> str:
        return ".".join(self)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The texts of one set, and their word tokens, by query id."""

    key: SetKey
    texts: dict[str, str]
    tokens: dict[str, list[str]]

    def write(self, folder: Path) -> None:
        """Write ``<set>.tsv``: id, TAB, tokens, so that others can tag them."""
        lines = ["id\ttokens", *(f"{i}\t{' '.join(own)}" for i, own in self.tokens.items())]
        with atomic_path(folder / f"{self.key}.tsv") as temporary:
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def read_query_sets(config: QualityConfig) -> tuple[list[QuerySet], dict[str, Any]]:
    """All sets of a config in the order of its tables, and what has to be said about them.

    The second value: ``queries`` and ``empty`` ids by set, and what was ``switched`` where a
    lexicon makes the mixed queries. Raises :class:`~polyray.errors.InputError` where a variant
    lacks queries that another one has.
    """
    sets: list[QuerySet] = []
    switched: dict[str, Any] = {}
    problems: list[Problem] = []
    for queries in config.queries:
        english = read_source(queries.english, "en")
        for code in config.languages:
            native = read_source(queries.native, code)
            mixed, counts = read_mix(queries.mixed, english, code)
            if counts:
                switched[f"{queries.name}.{code}"] = counts
            variants: dict[Variant, list[Topic]] = {"native": native, "mixed": mixed}
            variants["english"] = english
            problems += _unequal(queries, code, variants)
            for variant, topics in variants.items():
                sets.append(_tokenised(SetKey(queries.name, code, variant), topics, queries))
    if problems:
        raise InputError(problems)
    facts: dict[str, Any] = {
        "queries": {str(each.key): len(each.texts) for each in sets},
        "empty": {
            str(each.key): empty
            for each in sets
            if (empty := [query_id for query_id, own in each.tokens.items() if not own])
        },
    }
    if switched:
        facts["switched"] = switched
    return sets, facts


def _tokenised(key: SetKey, topics: list[Topic], queries: QualityQueries) -> QuerySet:
    texts = {topic.topic_id: topic.text(queries.field) for topic in topics}
    return QuerySet(key, texts, {i: word_tokens(text, key.language) for i, text in texts.items()})


def _unequal(
    queries: QualityQueries, code: str, variants: dict[Variant, list[Topic]]
) -> Iterator[Problem]:
    every = {topic.topic_id for topics in variants.values() for topic in topics}
    for variant, topics in variants.items():
        if absent := sorted(every - {topic.topic_id for topic in topics}):
            some = ", ".join(absent[:10])
            what = f"{len(absent)} queries of the other variants are missing: {some}"
            yield Problem(f"{queries.name} queries, {code} {variant}", None, what)


def set_keys(config: QualityConfig) -> list[SetKey]:
    """Every set of a config, in the order of its tables."""
    variants: tuple[Variant, ...] = ("native", "mixed", "english")
    return [
        SetKey(queries.name, code, variant)
        for queries in config.queries
        for code in config.languages
        for variant in variants
    ]


def tags_path(source: FileTags, key: SetKey) -> Path:
    """The file that has the tags of one set."""
    return resolve(source.path.format(**key._asdict()))


def input_digests(config: QualityConfig) -> dict[str, str]:
    """SHA-256 of every file that is read, by what it is, prompts among them.

    Raises :class:`~polyray.errors.InputError` naming every file that is not there.
    """
    found: dict[str, str | Path] = {}

    def note(name: str, path: str, code: str) -> None:
        for number, file in enumerate(files_of(path, code)):
            if not file.startswith("irds:"):
                found[f"{name}.{number}" if number else name] = file

    for queries in config.queries:
        note(f"{queries.name}.english", queries.english.path, "en")
        for code in config.languages:
            note(f"{queries.name}.{code}.native", queries.native.path, code)
            mix = queries.mixed
            path = mix.lexicon if isinstance(mix, LexiconMix) else mix.path
            note(f"{queries.name}.{code}.mixed", path, code)
    for source in config.token_languages:
        if isinstance(source, FileTags):
            for key in set_keys(config):
                found[f"{source.name}.{key}"] = tags_path(source, key)
        elif isinstance(source, LlmTags):
            found[f"{source.name}.prompt"] = prompt_file(source.prompt)
    if config.llm_ratings is not None:
        found["ratings.prompt"] = prompt_file(config.llm_ratings.prompt)
    for name in ("ratings", "preferences"):
        path = getattr(config, name)
        if path is not None:
            found[name] = resolve(path)
    return digests_of(found)
