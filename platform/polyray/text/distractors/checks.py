"""Whether a sentence may stand as a distractor of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import model_validator

from polyray.config import Settings
from polyray.languages import LANGUAGES
from polyray.text.distractors.similarity import edit_similarity, jaccard
from polyray.text.keys import is_blank, matching_key, words
from polyray.text.token_languages import lingua_detector

__all__ = ["REASONS", "DistractorChecks", "DistractorLimits", "Reason"]

Reason = Literal[
    "empty",
    "equals_original",
    "duplicate",
    "edit_similarity_low",
    "edit_similarity_high",
    "jaccard_low",
    "jaccard_high",
    "wrong_language",
]
REASONS: tuple[Reason, ...] = Reason.__args__  # type: ignore[attr-defined]
"""Why a sentence is rejected, in the order of the checks."""


class DistractorLimits(Settings):
    """What is asked of a distractor.

    ``edit_similarity`` and ``jaccard`` are the least and the most that it may have with the
    original; all published distractors of WMT19 lie within the first default. ``language``: it has
    to be in its language, as far as lingua knows the original to be.
    """

    edit_similarity: tuple[float, float] = (0.3, 1.0)
    jaccard: tuple[float, float] = (0.0, 1.0)
    language: bool = True

    @model_validator(mode="after")
    def _ordered(self) -> DistractorLimits:
        for name in ("edit_similarity", "jaccard"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high <= 1.0:
                raise ValueError(f"{name}: two numbers from 0 to 1, the lower one first")
        return self


class _Known(NamedTuple):
    """The original: its words' keys, and whether lingua tells its language rightly."""

    key: tuple[str, ...]
    recognised: bool


class DistractorChecks:
    """The checks under some limits, for sentences in one language."""

    def __init__(self, language: str, limits: DistractorLimits | None = None) -> None:
        self._language = language
        self._limits = limits or DistractorLimits()
        self._known: dict[str, _Known] = {}

    def reason(self, text: str, original: str, siblings: Sequence[str] = ()) -> Reason | None:
        """The first reason against ``text``, or None where it may stand.

        Sentences are the same where their words are, whatever their case and punctuation.
        """
        if is_blank(text):
            return "empty"
        known = self._original(original)
        key = _key(text)
        if key == known.key:
            return "equals_original"
        if key in {_key(sibling) for sibling in siblings}:
            return "duplicate"
        if (unlike := self._unlike(text, original)) is not None:
            return unlike
        if known.recognised and self._detected(text) != self._language:
            return "wrong_language"
        return None

    def _unlike(self, text: str, original: str) -> Reason | None:
        low, high = self._limits.edit_similarity
        similarity = edit_similarity(text, original)
        if similarity < low:
            return "edit_similarity_low"
        if similarity > high:
            return "edit_similarity_high"
        low, high = self._limits.jaccard
        shared = jaccard(text, original)
        if shared < low:
            return "jaccard_low"
        return "jaccard_high" if shared > high else None

    def _original(self, original: str) -> _Known:
        if original not in self._known:
            recognised = self._limits.language and self._detected(original) == self._language
            self._known = {original: _Known(_key(original), recognised)}
        return self._known[original]

    @staticmethod
    def _detected(text: str) -> str | None:
        found = lingua_detector(tuple(LANGUAGES)).detect_language_of(text)
        return found.iso_code_639_1.name.lower() if found is not None else None


def _key(text: str) -> tuple[str, ...]:
    """What makes two sentences the same; punctuation alone where there is no word."""
    return tuple(matching_key(word) for word in words(text)) or (text.strip(),)
