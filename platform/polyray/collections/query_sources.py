"""Where query sets come from: files of topics in several languages, and mixes by lexicon."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from polyray.collections.lexicon import read_lexicon
from polyray.collections.topics import read_topics
from polyray.config import Settings
from polyray.errors import InputError, Problem
from polyray.files import resolve
from polyray.languages import language
from polyray.records import Topic
from polyray.text.switching import switch_topics

__all__ = ["FileMix", "LexiconMix", "Mix", "TopicsSource", "place", "read_mix", "read_source"]


class TopicsSource(Settings):
    """Topics of one variant; ``source`` chooses among several translations in one file.

    In every path ``{language}`` stands for the ISO 639-1 code, ``{LANGUAGE}`` for the same in
    capitals, ``{iso3}`` for the ISO 639-3 code.
    """

    path: str
    format: str | None = None
    source: str | None = None


class FileMix(TopicsSource):
    """Mixed queries that people wrote."""

    kind: Literal["file"]


class LexiconMix(Settings):
    """English queries, each word that the lexicon has switched with probability ``rate``."""

    kind: Literal["lexicon"]
    lexicon: str
    rate: float = Field(default=0.5, ge=0, le=1)
    seed: int = 42


Mix = Annotated[FileMix | LexiconMix, Field(discriminator="kind")]


def place(path: str, code: str) -> str:
    """A path with the language filled in and prefixes resolved; ``irds:`` ids stay.

    >>> place("irds:neuclir/1/{language}", "fa"), place("/data/{iso3}.jsonl", "zh")
    ('irds:neuclir/1/fa', '/data/zho.jsonl')
    """
    filled = path.replace("{language}", code).replace("{LANGUAGE}", code.upper())
    filled = filled.replace("{iso3}", language(code).iso3)
    return filled if filled.startswith("irds:") else str(resolve(filled))


def files_of(path: str, code: str) -> list[str]:
    """The files that a path with a language stands for, in sorted order where it is a glob."""
    filled = place(path, code)
    files = sorted(glob.glob(filled)) if glob.has_magic(filled) else [filled]
    if not files:
        raise InputError(Problem(filled, None, "no files there", "check the path"))
    return files


def read_source(source: TopicsSource, code: str) -> list[Topic]:
    """The topics of one language.

    Raises :class:`~polyray.errors.InputError` where a topic stands in more than one file.
    """
    topics = [
        topic
        for file in files_of(source.path, code)
        for topic in read_topics(file, format=source.format, language=code, source=source.source)
    ]
    counts = Counter(topic.topic_id for topic in topics)
    if twice := [topic_id for topic_id, count in counts.items() if count > 1]:
        what = f"topics in more than one file: {', '.join(twice)}"
        raise InputError(Problem(place(source.path, code), None, what))
    return topics


def read_mix(mix: Mix, english: Iterable[Topic], code: str) -> tuple[list[Topic], dict[str, Any]]:
    """Mixed topics of one language, and how much was switched where a lexicon makes them."""
    if isinstance(mix, FileMix):
        return read_source(mix, code), {}
    lexicon = read_lexicon(place(mix.lexicon, code))
    return switch_topics(english, lexicon, rate=mix.rate, seed=mix.seed, language=code)
