"""Code switching with a bilingual lexicon, as the mixed-language queries of MiLQ are made.

Each word that the lexicon has is replaced, with a given probability, by one of its translations
drawn at random; case is carried over. The draws depend on the seed and the text's own key alone,
so a text comes out the same in whatever order, shard or process it is switched.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from polyray.errors import ConfigError
from polyray.records import Topic
from polyray.text.keys import matching_key, word_spans

__all__ = ["RATE", "SEED", "Lexicon", "Switched", "switch", "switch_topics"]

Lexicon = Mapping[str, Sequence[str]]
"""Matching key of a word -> its translations (:func:`polyray.text.keys.matching_key`)."""

RATE = 0.5
"""Default probability of replacing a word that the lexicon has."""
SEED = 42
"""Default seed."""


class Switched(NamedTuple):
    """A switched text, and how many of its words were replaced, replaceable, and there at all."""

    text: str
    replaced: int
    replaceable: int
    tokens: int


def switch(
    text: str, lexicon: Lexicon, *, rate: float = RATE, seed: int = SEED, key: str
) -> Switched:
    """Replace words of ``text`` by translations; everything between the words stays as it is.

    Words are Unicode words, so that the parts of a hyphenated word are switched one by one and
    nothing inside a word is; headwords of several words are never matched. Draws, in text order:
    for each word that the lexicon has one uniform number, and one more for the choice where the
    first is below ``rate``. A capital first letter and all capitals are carried over to the
    translation; otherwise it stands as in the lexicon. A translation with the word's own key
    leaves the word as it is and does not count as replaced. ``key`` names the text (its query
    id) and, with ``seed``, fixes the draws.

    >>> switch("The old house.", {"house": ["haus"]}, rate=1.0, key="q1")
    Switched(text='The old haus.', replaced=1, replaceable=1, tokens=3)

    Raises :class:`~polyray.errors.ConfigError` unless ``0 <= rate <= 1``.
    """
    if not 0.0 <= rate <= 1.0:
        raise ConfigError(f"a switching rate of {rate}: it must be between 0 and 1")
    digest = hashlib.sha256(f"{seed}\0{key}".encode()).digest()
    draw = random.Random(int.from_bytes(digest)).random
    spans = word_spans(text)
    pieces: list[str] = []
    replaced = replaceable = reached = 0
    for start, end in spans:
        word = text[start:end]
        word_key = matching_key(word)
        translations = lexicon.get(word_key)
        if not translations:
            continue
        replaceable += 1
        if draw() >= rate:
            continue
        translation = translations[int(draw() * len(translations))]
        if matching_key(translation) == word_key:
            continue
        replaced += 1
        pieces += (text[reached:start], _cased(translation, word))
        reached = end
    pieces.append(text[reached:])
    return Switched("".join(pieces), replaced, replaceable, len(spans))


def _cased(translation: str, word: str) -> str:
    if word.isupper() and sum(map(str.isalpha, word)) > 1:
        return translation.upper()
    if word[0].isupper():
        return translation[:1].title() + translation[1:]
    return translation


def switch_topics(
    topics: Iterable[Topic],
    lexicon: Lexicon,
    *,
    rate: float = RATE,
    seed: int = SEED,
    language: str,
) -> tuple[list[Topic], dict[str, float]]:
    """Switch title and description of every topic; the topics then carry ``language``.

    The second value counts over all of them: ``replaced``, ``replaceable`` and ``tokens``
    (words), ``rate_of_replaceable`` and ``rate_of_tokens`` (0 where there are none).
    """
    switched: list[Topic] = []
    parts: list[Switched] = []
    for topic in topics:
        title, description = (
            switch(text, lexicon, rate=rate, seed=seed, key=f"{topic.topic_id}\0{field}")
            for field, text in (("title", topic.title), ("description", topic.description))
        )
        parts += (title, description)
        switched.append(
            replace(topic, title=title.text, description=description.text, language=language)
        )
    replaced = sum(part.replaced for part in parts)
    replaceable = sum(part.replaceable for part in parts)
    tokens = sum(part.tokens for part in parts)
    return switched, {
        "replaced": replaced,
        "replaceable": replaceable,
        "tokens": tokens,
        "rate_of_replaceable": replaced / replaceable if replaceable else 0.0,
        "rate_of_tokens": replaced / tokens if tokens else 0.0,
    }
