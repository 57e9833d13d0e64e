"""Small changes of a sentence, rule by rule; each is the place and what stands there instead."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polyray.text.distractors.wordlists import WORDLISTS, word_swaps
from polyray.text.keys import matching_key, word_spans

__all__ = ["RULES", "Edit", "EditContext", "Names", "alternatives", "carried_case", "edits_of"]

RULES = ("number", "entity", "opposite", "series", "lexicon", "negation")
"""The rules, by the names that reports give them."""

_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?!\w)|(?<!\w)\d+(?!\w)")
_LEAST_LETTERS = 5
"""Shorter words are left alone by the lexicon rule."""
_CHOICES = 6
"""At most this many replacements of one place are tried, drawn at random."""


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str
    rule: str


class Names:
    """The capitalised spans of a set of sentences, found again by the word before them.

    A span that stands after the same word as another one ("in Berlin", "in Paris") is likely of
    the same kind. In languages that capitalise all nouns, a span counts only where it stands in
    the sentence's translation, too.
    """

    def __init__(self, language: str) -> None:
        self._nouns = language == "de"
        self._after: dict[str, dict[str, None]] = defaultdict(dict)
        self._of_length: dict[int, dict[str, None]] = defaultdict(dict)

    def learn(self, text: str, translation: str = "") -> None:
        """Note the names of a sentence."""
        for start, end, before in self.spans(text, translation):
            name = text[start:end]
            self._after[before][name] = None
            self._of_length[len(name.split())][name] = None

    def spans(self, text: str, translation: str = "") -> list[tuple[int, int, str]]:
        """Start, end and the key of the word before, of every name of a sentence."""
        words = word_spans(text)
        there = set(re.findall(r"\w+", translation))
        found: list[tuple[int, int, str]] = []
        place = 0
        while place < len(words):
            last = place
            while last < len(words) and self._is_part(text, words, last, place, there):
                last += 1
            if last > place:
                start, end = words[place][0], words[last - 1][1]
                opening = _opens(text, start)
                if not opening or text[start:end] in translation:
                    before = "" if opening else matching_key(text[slice(*words[place - 1])])
                    found.append((start, end, before))
            place = max(last, place + 1)
        return found

    def _is_part(
        self, text: str, words: Sequence[tuple[int, int]], at: int, first: int, there: set[str]
    ) -> bool:
        start, end = words[at]
        word = text[start:end]
        if not word[0].isupper() or len(word) < 2 or (self._nouns and word not in there):
            return False
        if at != first and text[words[at - 1][1] : start] not in (" ", "-", "\u00a0"):
            return False
        return word in there if _opens(text, start) else True

    def others(self, name: str, before: str) -> list[str]:
        """Names to stand for ``name``: after the same word where there are some, else as long."""
        own = matching_key(name)
        near = [one for one in self._after.get(before, ()) if matching_key(one) != own]
        if before and len(near) > 1:
            return near
        like = self._of_length.get(len(name.split()), {})
        return [one for one in like if matching_key(one) != own]


def _opens(text: str, start: int) -> bool:
    """Whether a sentence or a quotation begins there, so that a capital says nothing."""
    return text[:start].rstrip()[-1:] in ("", *'.:!?"«“„‘‚(–-')


def alternatives(lexicon: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Words of one language that share a translation but little else, by matching key.

    ``lexicon``: pivot word -> words of the language (as :func:`polyray.collections.lexicon
    .read_lexicon` reads ``en-de``). Two words qualify where they share one pivot word and at most
    a third of all their pivot words: another sense of a word of several senses, not a synonym.
    """
    pivots: dict[str, set[str]] = defaultdict(set)
    for pivot, translations in lexicon.items():
        for word in translations:
            if len(word) > 2 and word.isalpha():
                pivots[word].add(pivot)
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for translations in lexicon.values():
        single = [word for word in translations if word in pivots]
        for word in single:
            for other in single:
                shared = len(pivots[word] & pivots[other])
                different = matching_key(word) != matching_key(other)
                if different and 3 * shared <= len(pivots[word] | pivots[other]):
                    found[matching_key(word)][other] = None
    return {key: list(others) for key, others in found.items()}


@dataclass(frozen=True, slots=True)
class EditContext:
    """What the rules of one language draw from."""

    language: str
    names: Names
    lexicon: Mapping[str, Sequence[str]]
    rules: tuple[str, ...] = RULES
    common: frozenset[str] = frozenset()
    """Keys of words too common to be swapped by the lexicon: mostly function words."""


def edits_of(
    text: str,
    context: EditContext,
    draw: random.Random,
    translation: str = "",
    *,
    relaxed: bool = False,
) -> dict[str, list[Edit]]:
    """Every change of ``text``, by rule, in text order; a rule that finds nothing is absent.

    ``relaxed`` lets the lexicon rule have short and common words, too.
    """
    names = context.names.spans(text, translation)
    inside = [(start, end) for start, end, _ in names]
    made: dict[str, Iterable[Edit]] = {
        "number": _numbers(text, draw),
        "entity": _entities(text, names, context.names, draw),
        "opposite": _swaps(text, inside, context.language, "opposites", "opposite", draw),
        "series": _swaps(text, (), context.language, "series", "series", draw),
        "lexicon": _lexicon(text, inside, context, draw, relaxed),
        "negation": _negations(text, context.language),
    }
    found = {rule: list(made[rule]) for rule in RULES if rule in context.rules}
    return {rule: edits for rule, edits in found.items() if edits}


def _some(options: Sequence[str], draw: random.Random) -> list[str]:
    return draw.sample(list(options), min(_CHOICES, len(options)))


def _numbers(text: str, draw: random.Random) -> Iterator[Edit]:
    """Another number of as many digits; a year moves by at most twenty."""
    for match in _NUMBER.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        value = int(digits)
        year = len(digits) == 4 and digits == match[0] and 1000 <= value <= 2100
        low = max(1, value - 20) if year else max(1, 10 ** (len(digits) - 1))
        high = value + 20 if year else 10 ** len(digits) - 1
        for _ in range(_CHOICES):
            other = draw.randint(low, high)
            if other != value:
                yield Edit(
                    *match.span(), _as_written(match[0], f"{other:0{len(digits)}d}"), "number"
                )


def _as_written(old: str, digits: str) -> str:
    """New digits between the separators of the old number."""
    rest = iter(digits)
    return "".join(next(rest) if char.isdigit() else char for char in old)


def _entities(
    text: str, spans: Sequence[tuple[int, int, str]], names: Names, draw: random.Random
) -> Iterator[Edit]:
    for start, end, before in spans:
        for name in _some(names.others(text[start:end], before), draw):
            yield Edit(start, end, name, "entity")


def _swaps(
    text: str,
    skipped: Sequence[tuple[int, int]],
    language: str,
    kind: str,
    rule: str,
    draw: random.Random,
) -> Iterator[Edit]:
    swaps = word_swaps(language, kind)
    for start, end in _words_outside(text, skipped):
        word = text[start:end]
        for other in _some(swaps.get(word.lower(), ()), draw):
            yield Edit(start, end, carried_case(other, word), rule)


def _lexicon(
    text: str,
    skipped: Sequence[tuple[int, int]],
    context: EditContext,
    draw: random.Random,
    relaxed: bool,
) -> Iterator[Edit]:
    """Words of another sense, those with the same last two letters first: they inflect alike."""
    for start, end in _words_outside(text, skipped):
        word = text[start:end]
        key = matching_key(word)
        if not relaxed and (len(word) < _LEAST_LETTERS or key in context.common):
            continue
        fitting = [
            other
            for other in context.lexicon.get(key, ())
            if _opens(text, start) or other[0].isupper() == word[0].isupper()
        ]
        alike = [other for other in fitting if other[-2:] == word[-2:]]
        for other in _some(alike or fitting, draw):
            yield Edit(start, end, carried_case(other, word), "lexicon")


def _words_outside(text: str, skipped: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in word_spans(text):
        if not any(low <= start < high for low, high in skipped):
            yield start, end


def carried_case(new: str, old: str) -> str:
    """``new`` with the capitals of ``old``: all of them, or the first one."""
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _negations(text: str, language: str) -> Iterator[Edit]:
    lists = WORDLISTS.get(language)
    if lists is None:
        return
    if language == "fr":
        yield from _french(text, lists.auxiliaries)
        return
    spans = word_spans(text)
    auxiliaries = set(lists.auxiliaries.split())
    negated = dict(pair.split("/") for pair in lists.negated.split())
    back = {negative: positive for positive, negative in negated.items() if positive != "some"}
    denied = any(matching_key(text[slice(*span)]) == lists.negation for span in spans)
    for place, (start, end) in enumerate(spans):
        word = text[start:end]
        low = word.lower()
        if low == lists.negation:
            following = spans[place + 1][0] if place + 1 < len(spans) else end
            yield Edit(start, following if text[end:following] == " " else end, "", "negation")
        elif other := negated.get(low) or back.get(low):
            yield Edit(start, end, carried_case(other, word), "negation")
        elif low in auxiliaries and not denied and place and text[end : end + 1] == " ":
            yield Edit(start, end, f"{word} {lists.negation}", "negation")


_FRENCH_NOT = re.compile(r"\b(?:ne (\w+)|n['’](\w+)) (?:pas|plus|jamais)\b")


def _french(text: str, auxiliaries: str) -> Iterator[Edit]:
    """``ne ... pas`` taken away, or set around an auxiliary."""
    denials = list(_FRENCH_NOT.finditer(text))
    for match in denials:
        yield Edit(*match.span(), match[1] or match[2], "negation")
    if denials:
        return
    known = set(auxiliaries.split())
    for start, end in word_spans(text):
        word = text[start:end]
        alone = start == 0 or text[start - 1] not in "'’-"
        if word in known and alone and text[end : end + 1] == " ":
            opening = "n'" if word[0] in "aeéèêiou" else "ne "
            yield Edit(start, end, f"{opening}{word} pas", "negation")
