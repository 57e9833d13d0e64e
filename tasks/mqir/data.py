"""Queries in every variant, and the conditions of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from polyray.collections.query_sources import read_mix, read_source
from polyray.records import Query, Topic
from tasks.mqir.config import MqirConfig

__all__ = ["Condition", "QuerySets", "conditions", "read_queries"]

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
    english = read_source(config.queries.english, "en")
    sets: dict[tuple[str, str], list[Topic]] = {("en", "english"): english}
    switched: dict[str, Any] = {}
    for code in config.languages:
        sets[code, "native"] = read_source(config.queries.native, code)
        if config.queries.mixed is not None:
            sets[code, "mixed"], told = read_mix(config.queries.mixed, english, code)
            if told:
                switched[code] = told
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


def _missing(sets: dict[tuple[str, str], list[Topic]]) -> Iterator[tuple[str, list[str]]]:
    """Topics that some other variant has and this one lacks, by set."""
    union = {topic.topic_id for topics in sets.values() for topic in topics}
    for (code, variant), topics in sets.items():
        absent = sorted(union - {topic.topic_id for topic in topics})
        if absent:
            yield f"{code}.{variant}", absent
