"""Lists in structured text: JSON of any shape, Python lists, tables, and elements of mark-up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from polyray.llm._answers import is_rule, json_values, members
from polyray.llm._items import comparable, likeness

__all__ = ["blocks", "json_lists", "quoted_list", "table"]

_LIST_NAMES = (
    *("distractors", "distractor", "sentences", "sentence", "items", "results", "result"),
    *("answers", "answer", "output", "distraktoren", "sätze", "satz", "saetze", "ergebnisse"),
    *("antworten", "ausgabe", "distracteurs", "phrases", "phrase", "résultats", "resultats"),
    *("réponses", "reponses"),
)
_ITEM_NAMES = ("distractor", "sentence", "text", "content", "answer")
_SOURCES = ("original", "source", "input", "quelle", "vorlage", "reference", "ursprung", "origine")
_NUMBERED = re.compile(
    r"\s*(?:[^\W\d_]{0,20}(?:[ _-]?adv)?[ _-]?)?(?:\d{1,3}|(?<=[ _-])[a-h])\s*", re.IGNORECASE
)
_PAIRS = {"'": "'", "“": "”", "„": "“”", "‘": "’", "«": "»", '"': '"', "「": "」"}
_OPENED = re.compile(r"\[\s*(?=['“„‘«「\"])")
_BLOCK = re.compile(
    r"<(?P<tag>(?:li|sentence|satz|phrase|item|distractor|option|variant|text|s|p|answer(?=[_-]?\d))"
    r"(?:[_-]?\d{1,3})?)(?:\s[^<>]{0,200})?>(?P<inner>[^<]*(?:<(?!/?(?P=tag)\b)[^<]*)*)</(?P=tag)\s*>",
    re.IGNORECASE,
)


class Candidate(NamedTuple):
    """Strings of one list, and whether its name says that it is the list of sentences."""

    strings: list[str]
    known: bool


def json_lists(text: str, original: str) -> list[list[str]]:
    """The lists of strings that JSON in the text holds: those of known names, else all."""
    values = json_values(text)
    found = [one for value in values for one in _lists(value, original, "")]
    singles = [
        string
        for value in values
        if isinstance(value, dict) and not list(_lists(value, original, ""))
        if (string := _string(value, original)) is not None
    ]
    if singles:
        found.append(Candidate(singles, False))
    known = [one.strings for one in found if one.known]
    return known or [one.strings for one in found]


def _lists(value: Any, original: str, name: str, depth: int = 5) -> Iterator[Candidate]:
    known = name.strip().casefold() in _LIST_NAMES
    if isinstance(value, list):
        strings = [string for one in value if (string := _string(one, original)) is not None]
        if any(string.strip() for string in strings):
            yield Candidate(strings, known)
    elif isinstance(value, dict) and depth:
        pairs = members(value)
        numbered = [
            string
            for key, one in pairs
            if _NUMBERED.fullmatch(key) and (string := _string(one, original)) is not None
        ]
        if numbered:
            yield Candidate(numbered, known)
            return
        inner = [
            one
            for key, each in pairs
            if isinstance(each, list | dict)
            for one in _lists(each, original, key, depth - 1)
        ]
        yield from inner
        texts = [one for _, one in pairs if isinstance(one, str)]
        if not inner and len(texts) > 1 and not _named(value):
            near = [one for one in texts if likeness([one], original) >= 0.6]
            if near and len(near) < len(texts):
                yield Candidate([one for one in texts if likeness([one], original) >= 0.45], known)
            elif len(texts) == len(pairs):
                yield Candidate(texts, known)


def _named(value: dict[str, Any]) -> str | None:
    names = {key.strip().casefold(): one for key, one in members(value) if isinstance(one, str)}
    return next((names[name] for name in _ITEM_NAMES if name in names), None)


def _string(value: Any, original: str) -> str | None:
    """The sentence of an element: the string itself, or the member that is most like one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    texts = [
        one
        for key, one in members(value)
        if isinstance(one, str) and key.strip().casefold() not in _SOURCES
    ]
    named = _named(value)
    if named is not None and (len(texts) == 1 or comparable(named) != comparable(original)):
        return named
    return max(texts, key=lambda one: likeness([one], original), default=None)


def quoted_list(text: str) -> list[str] | None:
    """The whole strings of a list in brackets, in quotation marks of any kind; it may be cut."""
    opened = _OPENED.search(text)
    if opened is None:
        return None
    at, whole = opened.end(), []
    while at < len(text) and (closing := _PAIRS.get(text[at])):
        if text[at] == '"':
            try:
                string, at = json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                break
        else:
            end = re.compile(rf"[{closing}](?=\s*(?:,\s*['“„‘«「\"]|,?\s*\]))").search(text, at + 1)
            if end is None:
                break
            string, at = text[at + 1 : end.start()].replace("\\'", "'"), end.end()
        whole.append(string)
        step = re.compile(r"\s*,\s*").match(text, at)
        if step is None:
            break
        at = step.end()
    return whole or None


def blocks(text: str) -> list[str]:
    """What stands in elements such as ``<li>`` or ``<sentence>``."""
    return [match["inner"].strip() for match in _BLOCK.finditer(text)]


def table(lines: list[str], original: str) -> tuple[list[str], int]:
    """The cells of the column that is most like the original, and the last row's line."""
    rows: list[list[str]] = []
    end, header = -1, False
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            continue
        if is_rule(line):
            header = header or len(rows) == 1
            continue
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
        end = at
    width = max(map(len, rows), default=0)
    numbers = [bool(re.match(r"\W*\d", row[0])) for row in rows]
    if len(rows) > 1 and (header or (not numbers[0] and all(numbers[1:]))):
        rows = rows[1:]
    columns = [[row[at] for row in rows if len(row) > at] for at in range(min(width, 8))]
    columns = [column for column in columns if any(map(_words, column))]
    best = max(columns, key=lambda column: likeness(column, original), default=[])
    return best, end


def _words(cell: str) -> bool:
    return sum(map(str.isalpha, cell)) > 1
