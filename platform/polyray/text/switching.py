"""Code switching with a bilingual lexicon, as the mixed-language queries of MiLQ are made.

Each word that the lexicon has is replaced, with a given probability, by one of its translations
drawn at random; case is carried over. The draws depend on the seed and the text's own key alone,
so a text comes out the same in whatever order, shard or process it is switched. Variants of the
procedure are :class:`~polyray.text.switch_settings.SwitchOptions`.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, cast

from polyray.errors import ConfigError
from polyray.records import Topic
from polyray.text.keys import matching_key
from polyray.text.stop_words import StopWords, stop_words
from polyray.text.switch_settings import RATE, SEED, SwitchSettings
from polyray.text.switch_units import Units, flow_together

__all__ = [
    "RATE",
    "SEED",
    "Lexicon",
    "Replacement",
    "Switched",
    "SwitchedTopic",
    "Switcher",
    "WeightedLexicon",
    "rates",
    "switch",
    "switch_topics",
]

Lexicon = Mapping[str, Sequence[str]]
"""Matching key of a word -> its translations (:func:`polyray.text.keys.matching_key`)."""
WeightedLexicon = Mapping[str, Mapping[str, float]]
"""Matching key of a word -> its translations with their weights, none below 0."""


class Replacement(NamedTuple):
    """One word that was switched.

    In the source it is ``text[start:end] == word``; in the result the translation stands at
    ``[new_start, new_end)`` with its capitals carried over. Offsets count characters (code
    points). ``translation`` is as the lexicon has it.
    """

    start: int
    end: int
    word: str
    new_start: int
    new_end: int
    translation: str


class Switched(NamedTuple):
    """A switched text, and how many of its words were replaced, replaceable, and there at all.

    ``replacements`` are the words replaced, in text order. A phrase counts as one word.
    """

    text: str
    replaced: int
    replaceable: int
    tokens: int
    replacements: tuple[Replacement, ...] = ()


class SwitchedTopic(NamedTuple):
    """A topic in its new words, and what was switched in its title and its description."""

    topic: Topic
    title: Switched
    description: Switched


class Switcher:
    """Switches texts by one lexicon and one set of options; one object serves any number.

    A plain picklable callable: the same (seed, key, text) gives the same result in every process.
    Raises :class:`~polyray.errors.ConfigError` for a choice by weight from a lexicon without
    weights and for options that the language has nothing for,
    :class:`~polyray.errors.MissingPrerequisite` where an option needs what is not installed.

    >>> Switcher({"a lot": ["viel"]}, SwitchSettings(rate=1.0, multiword_headwords=True))(
    ...     "A lot of rain", key="q1"
    ... ).replacements
    (Replacement(start=0, end=5, word='A lot', new_start=0, new_end=4, translation='viel'),)
    """

    def __init__(
        self,
        lexicon: Lexicon | WeightedLexicon,
        settings: SwitchSettings | None = None,
    ) -> None:
        self.settings = settings = settings or SwitchSettings()
        stop = None
        if settings.content_words:
            stop = stop_words(settings.source_language, settings.stop_words)
            lexicon = _without(lexicon, stop)
        if not settings.multiword_translations:
            lexicon = _single_words(lexicon)
        if settings.choice == "weight" and not isinstance(
            next(iter(lexicon.values()), {}), Mapping
        ):
            what = "a choice by weight needs a lexicon with weights"
            raise ConfigError(f"{what}: read it with read_weighted_lexicon, or choose uniformly")
        self._lexicon = lexicon
        self._units = Units(lexicon, settings, stop)
        self.used = dict(self._units.used)
        """Lists and libraries that the options use, by what they are used for."""
        if stop is not None:
            self.used["stop words"] = stop.source

    def __call__(self, text: str, key: str) -> Switched:
        """Switch one text; ``key`` names it (its id) and, with the seed, fixes the draws.

        Draws, in text order: for each unit that the lexicon has one uniform number, and one more
        for the choice where the first is below the rate.
        """
        settings = self.settings
        digest = hashlib.sha256(f"{settings.seed}\0{key}".encode()).digest()
        draw = random.Random(int.from_bytes(digest)).random
        drawn: list[tuple[int, int, str]] = []
        replaceable = tokens = 0
        for start, end, headword in self._units(text):
            tokens += 1
            translations = self._lexicon[headword] if headword else None
            if not translations:
                continue
            replaceable += 1
            if draw() >= settings.rate:
                continue
            translation = _chosen(translations, draw(), settings.choice == "weight")
            if matching_key(translation) not in (headword, matching_key(text[start:end])):
                drawn.append((start, end, translation))
        made, replacements = self._put(text, drawn)
        return Switched(made, len(replacements), replaceable, tokens, replacements)

    def topics(self, topics: Iterable[Topic], language: str) -> Iterator[SwitchedTopic]:
        """Switch title and description of every topic; the topics then carry ``language``."""
        for topic in topics:
            title = self(topic.title, f"{topic.topic_id}\0title")
            description = self(topic.description, f"{topic.topic_id}\0description")
            new = replace(topic, title=title.text, description=description.text, language=language)
            yield SwitchedTopic(new, title, description)

    def _put(
        self, text: str, drawn: list[tuple[int, int, str]]
    ) -> tuple[str, tuple[Replacement, ...]]:
        """The text with the drawn translations in it, and where they stand.

        Where words are found in unspaced script, a space keeps a translation from flowing into
        the word beside it.
        """
        spaced = self.settings.segmenter != "characters"
        pieces: list[str] = []
        replacements: list[Replacement] = []
        length = reached = 0

        def put(piece: str) -> int:
            nonlocal length
            if spaced and pieces and flow_together(pieces[-1], piece):
                pieces.append(" ")
                length += 1
            at = length
            if piece:
                pieces.append(piece)
                length += len(piece)
            return at

        for start, end, translation in drawn:
            word = text[start:end]
            put(text[reached:start])
            cased = _cased(translation, word) if self.settings.carry_case else translation
            at = put(cased)
            replacements.append(Replacement(start, end, word, at, length, translation))
            reached = end
        put(text[reached:])
        return "".join(pieces), tuple(replacements)


def switch(
    text: str, lexicon: Lexicon, *, rate: float = RATE, seed: int = SEED, key: str
) -> Switched:
    """Replace words of ``text`` by translations; everything between the words stays as it is.

    Words are Unicode words, so that the parts of a hyphenated word are switched one by one and
    nothing inside a word is; headwords of several words are never matched (a
    :class:`Switcher` can). Draws, in text order: for each word that the lexicon has one uniform
    number, and one more for the choice where the first is below ``rate``. A capital first letter
    and all capitals are carried over to the translation; otherwise it stands as in the lexicon. A
    translation with the word's own key leaves the word as it is and does not count as replaced.
    ``key`` names the text (its query id) and, with ``seed``, fixes the draws.

    >>> switch("The old house.", {"house": ["haus"]}, rate=1.0, key="q1")[:4]
    ('The old haus.', 1, 1, 3)

    Raises :class:`~polyray.errors.ConfigError` unless ``0 <= rate <= 1``.
    """
    return Switcher(lexicon, _settings(rate, seed))(text, key)


def switch_topics(
    topics: Iterable[Topic],
    lexicon: Lexicon,
    *,
    rate: float = RATE,
    seed: int = SEED,
    language: str,
) -> tuple[list[Topic], dict[str, float]]:
    """Switch title and description of every topic; the topics then carry ``language``.

    The second value counts over all of them, as :func:`rates` does.
    """
    switcher = Switcher(lexicon, _settings(rate, seed))
    switched = list(switcher.topics(topics, language))
    parts = (part for one in switched for part in (one.title, one.description))
    return [one.topic for one in switched], rates(parts)


def rates(parts: Iterable[Switched]) -> dict[str, float]:
    """Counts over switched texts: ``replaced``, ``replaceable`` and ``tokens`` (words),
    ``rate_of_replaceable`` and ``rate_of_tokens`` (0 where there are none)."""
    replaced = replaceable = tokens = 0
    for part in parts:
        replaced += part.replaced
        replaceable += part.replaceable
        tokens += part.tokens
    return {
        "replaced": replaced,
        "replaceable": replaceable,
        "tokens": tokens,
        "rate_of_replaceable": replaced / replaceable if replaceable else 0.0,
        "rate_of_tokens": replaced / tokens if tokens else 0.0,
    }


@lru_cache(maxsize=64)
def _settings(rate: float, seed: int) -> SwitchSettings:
    if not 0.0 <= rate <= 1.0:
        raise ConfigError(f"a switching rate of {rate}: it must be between 0 and 1")
    return SwitchSettings(rate=rate, seed=seed)


def _chosen(
    translations: Sequence[str] | Mapping[str, float], number: float, by_weight: bool
) -> str:
    """The translation that a uniform number of [0, 1) falls on."""
    names = list(translations)
    if by_weight and isinstance(translations, Mapping):
        heights = list(accumulate(translations.values()))
        if heights[-1] > 0:
            return names[min(bisect_right(heights, number * heights[-1]), len(names) - 1)]
    return names[int(number * len(names))]


def _cased(translation: str, word: str) -> str:
    if word.isupper() and sum(map(str.isalpha, word)) > 1:
        return translation.upper()
    if word[0].isupper():
        return translation[:1].title() + translation[1:]
    return translation


def _without(lexicon: Lexicon | WeightedLexicon, stop: StopWords) -> Lexicon | WeightedLexicon:
    """The lexicon without function words, and without phrases of nothing but function words."""
    kept: Any = {
        word: translations
        for word, translations in lexicon.items()
        if word not in stop and not all(part in stop for part in word.split())
    }
    return cast("Lexicon | WeightedLexicon", kept)


def _single_words(lexicon: Lexicon | WeightedLexicon) -> Lexicon | WeightedLexicon:
    """The lexicon without translations that have white space in them."""
    kept: Any = {}
    for word, translations in lexicon.items():
        single: Any = [one for one in translations if len(one.split()) == 1]
        if isinstance(translations, Mapping):
            single = {one: translations[one] for one in single}
        if single:
            kept[word] = single
    return cast("Lexicon | WeightedLexicon", kept)
