"""The units of a text that a lexicon may switch: words, phrases, segments of unspaced scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.text.keys import compiled, matching_key, word_spans
from polyray.text.parts_of_speech import PosTagger, TaggerName, find_tagger
from polyray.text.stop_words import StopWords
from polyray.text.switch_settings import SwitchOptions

__all__ = ["Unit", "Units", "flow_together"]

_Span = tuple[int, int]
_CONTENT = ("NOUN", "PROPN", "VERB", "ADJ", "ADV")
"""Universal parts of speech of content words."""


class Unit(NamedTuple):
    """``text[start:end]`` and the headword that it is, or ``""`` where the lexicon has none."""

    start: int
    end: int
    headword: str


class Units:
    """Cuts texts into units by the headwords of a lexicon (matching keys) and the options.

    Raises :class:`~polyray.errors.MissingPrerequisite` where jieba or simplemma is asked for and
    not installed, :class:`~polyray.errors.ConfigError` for a language that simplemma lacks.
    """

    def __init__(
        self, headwords: Mapping[str, Any], options: SwitchOptions, stop: StopWords | None = None
    ) -> None:
        self.used: dict[str, str] = {}
        """Which outside help finds the units, by what it does, with its version."""
        self._headwords = headwords
        self._stop = stop
        self._lemmas = options.source_language if options.lemmas else ""
        self._jieba = options.segmenter == "jieba"
        self._tagger: TaggerName = "none"
        self._phrases: dict[str, str] = {}
        self._longest: dict[str, int] = {}
        if self._lemmas:
            self.used["lemmas"] = f"simplemma {_simplemma(self._lemmas).__version__}"
        if self._jieba:
            self.used["segmenter"] = f"jieba {_jieba().__version__}"
        if (tagger := _tagger(options.tagger)) is not None:
            self._tagger = options.tagger
            self.used["parts of speech"] = tagger.name
        if options.multiword_headwords or options.segmenter == "lexicon":
            self._index(options.multiword_headwords, options.segmenter == "lexicon")

    def __call__(self, text: str) -> Iterable[Unit]:
        """All units of ``text``, in order; none overlap, and together they hold every word."""
        tagger = _tagger(self._tagger)
        if tagger is None:
            return self._found(text)
        units = list(self._found(text))
        tags = tagger.tag([text[unit.start : unit.end] for unit in units]) if units else []
        return [
            unit if tag.startswith(_CONTENT) or " " in unit.headword else unit._replace(headword="")
            for unit, tag in zip(units, tags, strict=True)
        ]

    def _found(self, text: str) -> Iterator[Unit]:
        spans = word_spans(text)
        if self._jieba:
            spans = list(_cut(text, spans))
        at = 0
        while at < len(spans):
            start, end = spans[at]
            key = matching_key(text[start:end])
            words, headword = 1, key if key in self._headwords else ""
            if key in self._longest:
                words, headword = self._phrase(text, spans, at, self._longest[key]) or (1, headword)
            if not headword and self._lemmas:
                headword = self._lemma(text[start:end], key)
            yield Unit(start, spans[at + words - 1][1], headword)
            at += words

    def _index(self, phrases: bool, segments: bool) -> None:
        """Note headwords of several words under what a text shows of them, by their first word."""
        for headword in self._headwords:
            spans = word_spans(headword)
            if len(spans) < 2:
                continue
            if not (phrases or (segments and any(map(_unspaced, headword)))):
                continue
            shown = " ".join(headword[spans[0][0] : spans[-1][1]].split())
            if self._phrases.setdefault(shown, headword) != headword and shown == headword:
                self._phrases[shown] = headword
            first = headword[slice(*spans[0])]
            self._longest[first] = max(self._longest.get(first, 2), len(spans))

    def _phrase(
        self, text: str, spans: list[_Span], at: int, longest: int
    ) -> tuple[int, str] | None:
        """The longest headword of several words from ``at`` on, and how many words it has."""
        for words in range(min(longest, len(spans) - at), 1, -1):
            shown = " ".join(text[spans[at][0] : spans[at + words - 1][1]].split())
            if headword := self._phrases.get(matching_key(shown)):
                return words, headword
        return None

    def _lemma(self, word: str, key: str) -> str:
        """The headword that the dictionary form of an inflected word is, or ``""``."""
        if self._stop is not None and key in self._stop:
            return ""
        lemmatize = _simplemma(self._lemmas).lemmatize
        for form in dict.fromkeys((word, word.lower())):
            lemma = matching_key(lemmatize(form, lang=self._lemmas))
            if lemma in self._headwords:
                return lemma
        return ""


@cache
def _tagger(name: TaggerName) -> PosTagger | None:
    return find_tagger(name)


@cache
def _unspaced(char: str) -> bool:
    """Whether a character is a word by itself, as in scripts that put no spaces between words."""
    return len(word_spans(char * 2)) == 2


def flow_together(left: str, right: str) -> bool:
    """Whether two texts put side by side would have one word across the seam.

    >>> flow_together("our", "house"), flow_together("\u6211", "house"), flow_together("a ", "b")
    (True, False, False)
    """
    return bool(left and right) and word_spans(left[-1] + right[0]) == [(0, 2)]


def _cut(text: str, spans: list[_Span]) -> Iterator[_Span]:
    """Runs of Chinese characters, which are words of one character each, as jieba's words."""
    han = compiled(r"\p{Han}")
    at = 0
    while at < len(spans):
        last = at
        if han.match(text, spans[at][0]):
            while (
                last + 1 < len(spans)
                and spans[last + 1][0] == spans[last][1]
                and han.match(text, spans[last + 1][0])
            ):
                last += 1
        if last == at:
            yield spans[at]
        else:
            start, run = spans[at][0], text[spans[at][0] : spans[last][1]]
            for word in _jieba().cut(run):
                if word_spans(word):
                    yield start, start + len(word)
                start += len(word)
        at = last + 1


@cache
def _jieba() -> Any:
    from importlib import import_module

    try:
        jieba = import_module("jieba")
    except ModuleNotFoundError:
        what = "jieba is not installed, which finds the words of Chinese"
        raise MissingPrerequisite(f"{what}: pip install jieba") from None
    jieba.setLogLevel("ERROR")
    return jieba


@cache
def _simplemma(language: str) -> Any:
    from importlib import import_module

    try:
        simplemma = import_module("simplemma")
    except ModuleNotFoundError:
        what = "simplemma is not installed, which finds dictionary forms"
        raise MissingPrerequisite(f"{what}: pip install simplemma") from None
    try:
        simplemma.lemmatize("a", lang=language)
    except ValueError:
        what = f"simplemma has no dictionary forms of language {language!r}"
        raise ConfigError(f"{what}: leave lemmas off") from None
    return simplemma
