"""Bilingual lexicons: TSV, space-separated pairs (MUSE), JSON (MiLQ); with weights or without."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

from polyray.collections._lines import lines_of
from polyray.errors import Problems
from polyray.text.keys import matching_key

__all__ = ["read_lexicon", "read_weighted_lexicon", "reversed_lexicon"]

_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


class _Pair(NamedTuple):
    line: int | None
    word: str
    translation: str
    score: float | str | None


def read_lexicon(path: str | Path) -> dict[str, list[str]]:
    """Read ``word -> translations``; words are matching keys, translations as they stand.

    One pair a line, cut at the first tab, or at the first white space where the line has no tab
    (a third column with a score is passed over); or one JSON object, word -> translation or list
    of translations. Translations keep their order, without repeats. Raises
    :class:`~polyray.errors.InputError` naming every line that is no pair.
    """
    problems = Problems(str(path))
    found: dict[str, dict[str, None]] = {}
    for key, pair in _keyed(_pairs(path, problems), problems):
        found.setdefault(key, {})[pair.translation] = None
    problems.raise_if_any()
    return {key: list(translations) for key, translations in found.items()}


def read_weighted_lexicon(path: str | Path) -> dict[str, dict[str, float]]:
    """Read ``word -> {translation: weight}``; words and order as :func:`read_lexicon` has them.

    Every line is: word TAB translation TAB weight; or one JSON object, word -> {translation:
    weight}. Weights are counts, probabilities or scores, none below 0; only their ratios within
    a word matter. A pair that stands twice keeps its highest weight. Raises
    :class:`~polyray.errors.InputError` naming every line without a weight.
    """
    problems = Problems(str(path))
    found: dict[str, dict[str, float]] = {}
    for key, pair in _keyed(_pairs(path, problems, weighted=True), problems):
        weight = _weight(pair.score)
        if weight is None:
            given = "no weight" if pair.score is None else f"weight {pair.score!r}"
            remedy = "write: word TAB translation TAB weight, a number of at least 0"
            problems.add(pair.line, f"{given} for {pair.word!r}, {pair.translation!r}", remedy)
            continue
        translations = found.setdefault(key, {})
        translations[pair.translation] = max(weight, translations.get(pair.translation, 0.0))
    problems.raise_if_any()
    return found


@overload
def reversed_lexicon(lexicon: Mapping[str, Sequence[str]]) -> dict[str, list[str]]: ...
@overload
def reversed_lexicon(lexicon: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]: ...
def reversed_lexicon(lexicon: Mapping[str, Any]) -> dict[str, Any]:
    """The lexicon of the other direction: translations' matching keys -> headwords.

    A lexicon with weights keeps them: a pair has one weight in both directions, the highest where
    two translations have the same key. Headwords are matching keys, so that their capitals are
    lost; their order is the lexicon's.

    >>> reversed_lexicon({"river": ["Fluss", "Strom"], "current": ["Strom"]})
    {'fluss': ['river'], 'strom': ['river', 'current']}
    """
    found: dict[str, dict[str, float]] = {}
    weighted = isinstance(next(iter(lexicon.values()), ()), Mapping)
    for word, translations in lexicon.items():
        for translation in translations:
            weight = translations[translation] if weighted else 1.0
            if key := matching_key(translation):
                words = found.setdefault(key, {})
                words[word] = max(weight, words.get(word, 0.0))
    return found if weighted else {key: list(words) for key, words in found.items()}


def _weight(score: float | str | None) -> float | None:
    """A weight as a number, or None where it is no finite number of at least 0."""
    try:
        weight = float(score) if score is not None else math.nan
    except (ValueError, OverflowError):
        return None
    return weight if math.isfinite(weight) and weight >= 0 else None


def _keyed(pairs: Iterable[_Pair], problems: Problems) -> list[tuple[str, _Pair]]:
    """Pairs with their words' matching keys; pairs with an empty side are noted."""
    found: list[tuple[str, _Pair]] = []
    for pair in pairs:
        key = matching_key(pair.word)
        if key and pair.translation:
            found.append((key, pair))
            continue
        what = f"word or translation is empty: {pair.word!r}, {pair.translation!r}"
        problems.add(pair.line, what, "write: word TAB translation")
    if not found and not problems:
        problems.add(None, "no pairs in the file", "give a lexicon")
    return found


def _pairs(path: str | Path, problems: Problems, *, weighted: bool = False) -> list[_Pair]:
    lines = list(lines_of(path, problems))
    first = next((line for _, line in lines if line.strip()), "")
    if first.lstrip().startswith("{"):
        return _json("\n".join(line for _, line in lines), problems, weighted)
    return _lines(lines, problems)


def _lines(lines: list[tuple[int, str]], problems: Problems) -> list[_Pair]:
    pairs: list[_Pair] = []
    for number, line in lines:
        if not line.strip():
            continue
        columns = line.split("\t") if "\t" in line else line.split(maxsplit=1)
        scored = len(columns) == 3 and _NUMBER.fullmatch(columns[2].strip())
        if len(columns) == 2 or scored:
            score = columns[2].strip() if scored else None
            pairs.append(_Pair(number, columns[0].strip(), columns[1].strip(), score))
        else:
            what = f"{len(columns)} columns instead of two"
            problems.add(number, what, "write: word TAB translation")
    return pairs


def _json(text: str, problems: Problems, weighted: bool) -> list[_Pair]:
    try:
        loaded: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        problems.add(error.lineno, f"not JSON: {error.msg}", "write {word: [translations]}")
        return []
    except RecursionError:
        problems.add(None, "JSON nested too deeply", "write {word: [translations]}")
        return []
    pairs: list[_Pair] = []
    for word, value in loaded.items():
        scored = weighted and isinstance(value, dict)
        values = list(value) if isinstance(value, list) or scored else [value]
        if not all(isinstance(one, str) for one in values):
            problems.add(None, f"{word!r}: the translations are not strings", "write strings")
            continue
        for one in values:
            score = value[one] if scored else None
            known = score if isinstance(score, int | float | None) else repr(score)
            pairs.append(_Pair(None, word.strip(), one.strip(), known))
    return pairs
