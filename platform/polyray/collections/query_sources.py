"""Where query sets come from: files of topics in several languages, and mixes by lexicon."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from polyray.collections.lexicon import read_lexicon, read_weighted_lexicon
from polyray.collections.topics import read_topics
from polyray.config import Settings
from polyray.errors import InputError, Problem
from polyray.files import resolve
from polyray.languages import language
from polyray.records import Topic
from polyray.text.lexicon_hygiene import HygieneSettings, clean_lexicon
from polyray.text.switch_settings import SwitchOptions, SwitchSettings
from polyray.text.switching import Switcher, rates

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
    """English queries, each word that the lexicon has switched with probability ``rate``.

    ``options`` are variants of the procedure, ``clean`` rules for what the lexicon drops first;
    where they are not given they stand in no dump, so that they change no experiment's hash.
    """

    kind: Literal["lexicon"]
    lexicon: str
    rate: float = Field(default=0.5, ge=0, le=1)
    seed: int = 42
    options: SwitchOptions | None = None
    clean: HygieneSettings | None = None

    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        unset = [name for name in ("options", "clean") if getattr(self, name) is None]
        return {name: value for name, value in values.items() if name not in unset}


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
    """Mixed topics of one language; where a lexicon makes them, what was switched and dropped."""
    if isinstance(mix, FileMix):
        return read_source(mix, code), {}
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
