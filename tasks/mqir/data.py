"""Queries in every variant, and the conditions of the study."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from polyray.collections.lexicon import read_lexicon, read_weighted_lexicon
from polyray.collections.topics import read_topics
from polyray.errors import InputError, Problem
from polyray.files import resolve
from polyray.languages import language
from polyray.records import Query, Topic
from polyray.text.lexicon_hygiene import clean_lexicon
from polyray.text.switch_settings import SwitchOptions, SwitchSettings
from polyray.text.switching import Switcher, rates
from tasks.mqir.config import FileMix, LexiconMix, MqirConfig, TopicsSource

__all__ = ["Condition", "QuerySets", "conditions", "place", "read_queries"]

Variant = Literal["native", "english", "mixed"]
Scenario = Literal["MonoIR", "CLIR", "MQIR"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One query set against the documents of one language.

    ``language`` is the bilingual searcher's native language, ``en`` for the English baseline over
    English documents, which is the same for all.
    """

    documents: str
    language: str
    variant: Variant

    @property
    def query_language(self) -> str:
        """The language of the query's words; a mixed query counts as native."""
        return "en" if self.variant == "english" else self.language

    @property
    def scenario(self) -> Scenario:
        """MQIR for mixed queries; else MonoIR or CLIR as query and documents agree or differ."""
        if self.variant == "mixed":
            return "MQIR"
        return "MonoIR" if self.query_language == self.documents else "CLIR"

    @property
    def name(self) -> str:
        """``documents.language.variant``, for files and runs."""
        return f"{self.documents}.{self.language}.{self.variant}"


def conditions(config: MqirConfig) -> list[Condition]:
    """All conditions of a config, in the order of its tables."""
    variants: list[Variant] = ["native"]
    if config.queries.mixed is not None:
        variants.append("mixed")
    found: list[Condition] = []
    if "english" in config.targets:
        found.append(Condition("en", "en", "english"))
        found += [Condition("en", code, v) for code in config.languages for v in variants]
    if "native" in config.targets:
        for code in native_documents(config):
            found += [Condition(code, code, v) for v in (*variants, "english")]
    return found


def native_documents(config: MqirConfig) -> list[str]:
    """Languages whose documents are searched for the native target."""
    wanted = config.native_documents
    return [code for code in config.languages if wanted is None or code in wanted]


def place(path: str, code: str) -> str:
    """A path with the language filled in and prefixes resolved; ``irds:`` ids stay.

    ``{language}`` is the ISO 639-1 code, ``{LANGUAGE}`` the same in capitals, ``{iso3}`` the ISO
    639-3 code.

    >>> place("irds:neuclir/1/{language}", "fa"), place("/data/{iso3}.jsonl", "zh")
    ('irds:neuclir/1/fa', '/data/zho.jsonl')
    """
    filled = path.replace("{language}", code).replace("{LANGUAGE}", code.upper())
    filled = filled.replace("{iso3}", language(code).iso3)
    return filled if filled.startswith("irds:") else str(resolve(filled))


@dataclass(frozen=True, slots=True)
class QuerySets:
    """Query text by (language, variant), and what had to be reported about them."""

    queries: dict[tuple[str, str], list[Query]]
    facts: dict[str, Any]

    def of(self, condition: Condition) -> list[Query]:
        """The queries of a condition."""
        return self.queries[condition.query_language, condition.variant]


def read_queries(config: MqirConfig) -> QuerySets:
    """Read and make every query set that the config's conditions need.

    Raises :class:`~polyray.errors.InputError` where a set lacks topics that the English one has.
    """
    english = _topics(config.queries.english, "en")
    sets: dict[tuple[str, str], list[Topic]] = {("en", "english"): english}
    switched: dict[str, Any] = {}
    for code in config.languages:
        sets[code, "native"] = _topics(config.queries.native, code)
        mix = config.queries.mixed
        if isinstance(mix, FileMix):
            source = TopicsSource(path=mix.path, format=mix.format, source=mix.source)
            sets[code, "mixed"] = _topics(source, code)
        elif isinstance(mix, LexiconMix):
            sets[code, "mixed"], switched[code] = _switched(english, mix, code)
    field = config.queries.field
    queries = {
        key: [topic.query(field, variant=key[1]) for topic in topics]
        for key, topics in sets.items()
    }
    facts: dict[str, Any] = {
        "queries": {f"{code}.{variant}": len(found) for (code, variant), found in queries.items()},
        "empty_queries": {
            f"{code}.{variant}": empty
            for (code, variant), found in queries.items()
            if (empty := [query.query_id for query in found if not query.text.strip()])
        },
        "missing_topics": dict(_missing(sets)),
    }
    if switched:
        facts["switched"] = switched
    return QuerySets(queries, facts)


def _switched(
    english: list[Topic], mix: LexiconMix, code: str
) -> tuple[list[Topic], dict[str, Any]]:
    """The mixed topics of one language and what is reported: rates, and what options did."""
    options = mix.options or SwitchOptions()
    path = place(mix.lexicon, code)
    weighted = options.choice == "weight"
    lexicon: Any = read_weighted_lexicon(path) if weighted else read_lexicon(path)
    facts: dict[str, Any] = {}
    if mix.clean is not None:
        lexicon, report = clean_lexicon(lexicon, mix.clean, source="en", target=code)
        facts["clean"] = report.facts()
    settings = SwitchSettings(rate=mix.rate, seed=mix.seed, **options.model_dump())
    switcher = Switcher(lexicon, settings)
    made = list(switcher.topics(english, code))
    counts = rates(part for one in made for part in (one.title, one.description))
    if switcher.used:
        facts["used"] = switcher.used
    return [one.topic for one in made], counts | facts


def _missing(sets: dict[tuple[str, str], list[Topic]]) -> Iterator[tuple[str, list[str]]]:
    """Topics that some other variant has and this one lacks, by set."""
    union = {topic.topic_id for topics in sets.values() for topic in topics}
    for (code, variant), topics in sets.items():
        absent = sorted(union - {topic.topic_id for topic in topics})
        if absent:
            yield f"{code}.{variant}", absent


def _topics(source: TopicsSource, code: str) -> list[Topic]:
    """The topics of one language; a glob stands for several files, in sorted order."""
    path = place(source.path, code)
    files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
    if not files:
        raise InputError(Problem(path, None, "no files there", "check the path"))
    topics = [
        topic
        for file in files
        for topic in read_topics(file, format=source.format, language=code, source=source.source)
    ]
    counts = Counter(topic.topic_id for topic in topics)
    twice = [topic_id for topic_id, count in counts.items() if count > 1]
    if twice:
        raise InputError(Problem(path, None, f"topics in more than one file: {', '.join(twice)}"))
    return topics
