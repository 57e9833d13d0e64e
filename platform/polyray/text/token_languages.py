"""Which language each word of a query is in: by script, by lingua, or from a file.

Tokens are those of NLTK's word tokenizer; Chinese is cut by jieba (MiLQ, appendix A.3). A token
without letters is language-independent. Where the two languages are written in two scripts, the
script decides; otherwise lingua does, restricted to the pair.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from polyray.errors import InputError, Problem
from polyray.languages import LANGUAGES, SCRIPT_LETTERS, language
from polyray.text.keys import compiled
from polyray.text.mixing import INDEPENDENT, read_tags

if TYPE_CHECKING:
    from lingua import LanguageDetector

__all__ = [
    "ENGLISH",
    "LinguaTagger",
    "TokenTagger",
    "lingua_detector",
    "read_matching_tags",
    "tag_by_script",
    "word_tokens",
]

ENGLISH = "en"
_LONG = {
    code: {name for name in (row.iso3, *row.aliases) if len(name) == 3}
    for code, row in LANGUAGES.items()
}
"""Three-letter codes of a language, which are no tags here."""


def word_tokens(text: str, code: str) -> list[str]:
    """The word tokens of a text in language ``code``, or in that and English.

    NLTK's ``NLTKWordTokenizer`` on the text as a whole, without a sentence splitter, so that a
    full stop inside the text stays with its word; jieba where the language puts no spaces.

    >>> word_tokens("Lärm von wind turbines, 2018", "de")
    ['Lärm', 'von', 'wind', 'turbines', ',', '2018']
    """
    if language(code).spaces:
        tokens: list[str] = _nltk().tokenize(text)
        return tokens
    return [token for token in _jieba().lcut(text) if not token.isspace()]


@cache
def _nltk() -> Any:
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@cache
def _jieba() -> Any:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    return jieba


def tag_by_script(token: str, native: str) -> str | None:
    """The tag that the letters of a token decide alone, or None where they do not.

    No letters: language-independent. Letters of neither language's script alone: likewise, since
    the word is of a third language. Two scripts in one token: the one with more letters, the
    native one where they are level.

    >>> tag_by_script("2018", "ru"), tag_by_script("Путин", "ru"), tag_by_script("Haus", "de")
    ('u', 'ru', None)
    """
    if not compiled(r"\p{L}").search(token):
        return INDEPENDENT
    here, there = language(native).script, language(ENGLISH).script
    own = len(compiled(SCRIPT_LETTERS[here]).findall(token))
    if here == there:
        return None if own else INDEPENDENT
    english = len(compiled(SCRIPT_LETTERS[there]).findall(token))
    if not own and not english:
        return INDEPENDENT
    return native if own >= english else ENGLISH


class TokenTagger(Protocol):
    """Gives every token of every query a tag: the native language, ``en``, ``u`` or ``ne``."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def tag(self, queries: Mapping[str, Sequence[str]], native: str) -> dict[str, list[str]]:
        """Tags by query id, one a token, from the tokens by query id."""
        ...


class LinguaTagger:
    """lingua on single words, restricted to the native language and English.

    ``stay`` is the assumed probability that a word is in the language of the word before it:
    the tags of a query are the most probable sequence (Viterbi) under lingua's confidence in each
    word and that. With 0.5 every word is judged alone. Language-independent tokens are passed
    over.
    """

    def __init__(self, stay: float = 0.5, name: str = "lingua") -> None:
        self.name = name
        self._stay = stay
        self._known: dict[tuple[str, str], float] = {}

    def tag(self, queries: Mapping[str, Sequence[str]], native: str) -> dict[str, list[str]]:
        """Tags by query id, one a token."""
        self._learn({token for tokens in queries.values() for token in tokens}, native)
        return {query_id: self._one(tokens, native) for query_id, tokens in queries.items()}

    def _one(self, tokens: Sequence[str], native: str) -> list[str]:
        tags = [tag_by_script(token, native) for token in tokens]
        open_places = [place for place, tag in enumerate(tags) if tag is None]
        english = [self._known[native, tokens[place]] for place in open_places]
        for place, is_english in zip(open_places, most_probable(english, self._stay), strict=True):
            tags[place] = ENGLISH if is_english else native
        return [tag or INDEPENDENT for tag in tags]

    def _learn(self, tokens: set[str], native: str) -> None:
        """Ask lingua for every token that it has not been asked for yet."""
        new = sorted(
            token
            for token in tokens
            if (native, token) not in self._known and tag_by_script(token, native) is None
        )
        if not new:
            return
        detector = lingua_detector((ENGLISH, native))
        english = _lingua_language(ENGLISH)
        values = detector.compute_language_confidence_in_parallel(new, english)
        self._known.update({(native, token): v for token, v in zip(new, values, strict=True)})


def most_probable(english: Sequence[float], stay: float) -> list[bool]:
    """The most probable sequence of two languages, from the probability of English of each word.

    ``stay`` is the probability that neighbours are in one language. Level ones are native.

    >>> most_probable([0.1, 0.6, 0.1], 0.5), most_probable([0.1, 0.6, 0.1], 0.8)
    ([False, True, False], [False, False, False])
    """
    if not english:
        return []
    same, other = math.log(stay), math.log(1.0 - stay)
    best = (_log(1.0 - english[0]), _log(english[0]))
    came: list[tuple[bool, bool]] = []
    for value in english[1:]:
        to_native = (best[0] + same, best[1] + other)
        to_english = (best[0] + other, best[1] + same)
        came.append((to_native[1] > to_native[0], to_english[1] > to_english[0]))
        best = (max(to_native) + _log(1.0 - value), max(to_english) + _log(value))
    path = [best[1] > best[0]]
    for step in reversed(came):
        path.append(step[path[-1]])
    return path[::-1]


def _log(value: float) -> float:
    return math.log(max(value, 1e-6))


@cache
def lingua_detector(codes: tuple[str, ...]) -> LanguageDetector:
    """lingua restricted to some languages, by ISO 639-1 code; its models are read once."""
    from lingua import LanguageDetectorBuilder

    return LanguageDetectorBuilder.from_languages(*map(_lingua_language, sorted(codes))).build()


def _lingua_language(code: str) -> Any:
    from lingua import Language

    return getattr(Language, LANGUAGES[code].name.upper())


def read_matching_tags(
    path: str | Path, queries: Mapping[str, Sequence[str]], native: str
) -> dict[str, list[str]]:
    """Tags of ``queries`` from a file (:func:`polyray.text.mixing.read_tags`), one a token.

    Raises :class:`~polyray.errors.InputError` naming every query that the file lacks or has with
    another number of tags than the query has tokens: nothing is padded or shifted. The same for a
    file where English or ``native`` stand under their three-letter codes.
    """
    found = read_tags(path)
    problems = []
    counts_of = Counter(tag for own in found.values() for tag in own)
    for code in (native, ENGLISH):
        for long in sorted(_LONG[code] & set(counts_of)):
            what = f"{counts_of[long]} tokens are tagged {long}"
            problems.append(Problem(str(path), None, what, f"write {code}, the two-letter code"))
    for query_id, tokens in queries.items():
        if query_id not in found:
            problems.append(Problem(str(path), None, f"no tags of query {query_id!r} ({native})"))
        elif len(found[query_id]) != len(tokens):
            counts = f"{len(found[query_id])} tags for {len(tokens)} tokens"
            shown = " ".join(tokens)
            problems.append(Problem(str(path), None, f"query {query_id!r}: {counts}", shown))
    if problems:
        raise InputError(problems)
    return {query_id: found[query_id] for query_id in queries}
