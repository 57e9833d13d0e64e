"""Bilingual lexicons: TSV, space-separated pairs (MUSE), JSON (MiLQ)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from polyray.collections._lines import lines_of
from polyray.errors import Problems
from polyray.text.keys import matching_key

__all__ = ["read_lexicon"]

_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def read_lexicon(path: str | Path) -> dict[str, list[str]]:
    """Read ``word -> translations``; words are matching keys, translations as they stand.

    One pair a line, cut at the first tab, or at the first white space where the line has no tab
    (a third column with a score is passed over); or one JSON object, word -> translation or list
    of translations. Translations keep their order, without repeats. Raises
    :class:`~polyray.errors.InputError` naming every line that is no pair.
    """
    problems = Problems(str(path))
    lines = list(lines_of(path, problems))
    first = next((line for _, line in lines if line.strip()), "")
    if first.lstrip().startswith("{"):
        pairs = _json("\n".join(line for _, line in lines), problems)
    else:
        pairs = _lines(lines, problems)
    found: dict[str, dict[str, None]] = {}
    for number, word, translation in pairs:
        key = matching_key(word)
        if not key or not translation:
            what = f"word or translation is empty: {word!r}, {translation!r}"
            problems.add(number, what, "write: word TAB translation")
            continue
        found.setdefault(key, {})[translation] = None
    if not found and not problems:
        problems.add(None, "no pairs in the file", "give a lexicon")
    problems.raise_if_any()
    return {key: list(translations) for key, translations in found.items()}


def _lines(lines: list[tuple[int, str]], problems: Problems) -> list[tuple[int | None, str, str]]:
    pairs: list[tuple[int | None, str, str]] = []
    for number, line in lines:
        if not line.strip():
            continue
        columns = line.split("\t") if "\t" in line else line.split(maxsplit=1)
        scored = len(columns) == 3 and _NUMBER.fullmatch(columns[2].strip())
        if len(columns) == 2 or scored:
            pairs.append((number, columns[0].strip(), columns[1].strip()))
        else:
            what = f"{len(columns)} columns instead of two"
            problems.add(number, what, "write: word TAB translation")
    return pairs


def _json(text: str, problems: Problems) -> list[tuple[int | None, str, str]]:
    try:
        loaded: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        problems.add(error.lineno, f"not JSON: {error.msg}", "write {word: [translations]}")
        return []
    except RecursionError:
        problems.add(None, "JSON nested too deeply", "write {word: [translations]}")
        return []
    pairs: list[tuple[int | None, str, str]] = []
    for word, value in loaded.items():
        values = value if isinstance(value, list) else [value]
        if all(isinstance(one, str) for one in values):
            pairs += [(None, word.strip(), one.strip()) for one in values]
        else:
            problems.add(None, f"{word!r}: the translations are not strings", "write strings")
    return pairs
