"""One tag a token out of an answer: JSON, lines, table rows, or a row of tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from polyray.languages import LANGUAGES
from polyray.llm._answers import (
    INVISIBLE,
    ParseError,
    is_refusal,
    is_rule,
    json_values,
    members,
    without_fences,
    without_thinking,
)
from polyray.text.keys import matching_key
from polyray.text.mixing import INDEPENDENT, NAMED_ENTITY

__all__ = ["parse_tags"]

_TAGS = frozenset({*LANGUAGES, INDEPENDENT, NAMED_ENTITY})
_SEPARATED = re.compile(r"(?P<token>.*\S)\s*(?:\t|=>|->|→|[-–—:=|/：])\s*(?P<tag>[^\s:|/=]+)")
_BRACKETED = re.compile(r"(?P<token>\S.*\S|\S)\s*[(\[（](?P<tag>[^\s()\[\]（）]+)[)\]）]")
_SPACED = re.compile(r"(?P<token>\S+)\s+(?P<tag>\S+)")
_BULLET = re.compile(r"[-*•][ \t]+")
_COUNTER = re.compile(
    r"(?:(?:token|word|wort|mot|слово|词)[ \t]*)?[(\[|]?[ \t]*(?P<number>\d{1,4})"
    r"(?:[ \t]*[.)\]:、．）|](?:[ \t]+|(?=[^\W\d]))|[ \t]+[-–—][ \t]+|\t|[ \t]+(?=\S+$))",
    re.IGNORECASE,
)
_ROW_LABEL = re.compile(r"[^:：]{0,60}[:：]")
_ANSWER_LABEL = re.compile(
    r"tag|label|language|lang|answer|output|result|sprache|langue|étiquette|язык|метк|ответ|"
    r"标签|語言|语言|结果|برچسب|زبان",
    re.IGNORECASE,
)
_NO_ANSWER_LABEL = re.compile(
    r"\b(?:of|each|every|allowed|available|possible|options?|valid|use|exactly|choose|with|from|"
    r"examples?|e\.g|set|mögliche\w*|erlaubte\w*|beispiel\w*|possibles?|exemple)\b|例|可用|可选|مثال",
    re.IGNORECASE,
)
_LISTS = ("tags", "languages", "labels", "tokens", "answer", "result")
_NUMBERS = ("index", "id", "position", "number", "no", "i", "n", "idx", "token_index")
_AROUND = "\"'`*.,;()[]“”‘’|"


class _Entry(NamedTuple):
    """A tag, the token that is repeated beside it, and the number that it bears."""

    tag: str
    token: str | None = None
    number: int | None = None


def parse_tags(
    content: str | None, tokens: Sequence[str], *, allowed: Collection[str] = _TAGS
) -> list[str]:
    """One tag a token: a language code, ``u`` (no language) or ``ne`` (named entity).

    Reads tags in a row, JSON lists and objects, and lines such as ``1. word - de``; a token that
    is repeated beside its tag has to be the one in its place, and numbers put tags in order.

    >>> parse_tags("1. das - de\\n2. Meeting - en", ["das", "Meeting"])
    ['de', 'en']

    Raises :class:`ParseError`: ``count_mismatch``, ``unknown_tag``, ``token_mismatch``,
    ``numbering`` (numbers that do not count the tokens), ``ambiguous`` (two answers that
    differ), ``refusal_or_no_tags``.
    """
    text = without_thinking(content or "").strip()
    known = frozenset(tag.lower() for tag in allowed)
    readings = _of_json(text, tokens)
    if not readings:
        readings = _of_lines(text, tokens, known)
    elif len(tokens) > 1:
        beside = [line for line in _full_lines(text) if not re.search(r"[\[\]{}\"]", line)]
        rows = _rows(beside, len(tokens), known)
        readings += [row for row in rows if len(row) == len(tokens)]
    if not readings and tokens:
        raise ParseError("refusal_or_no_tags", text[:80])
    found: list[list[str]] = []
    errors: list[ParseError] = []
    for reading in readings:
        try:
            tags = _checked(reading, tokens, known, text)
        except ParseError as error:
            errors.append(error)
        else:
            found += [tags] if tags not in found else []
    if len(found) > 1:
        raise ParseError("ambiguous", " or ".join(" ".join(tags) for tags in found)[:80])
    if not found and errors:
        raise errors[0]
    return found[0] if found else []


def _checked(
    reading: Sequence[_Entry], tokens: Sequence[str], known: frozenset[str], text: str
) -> list[str]:
    tags = [_bare(entry.tag) for entry in reading]
    unknown = sorted(set(tags) - known)
    if unknown and (is_refusal(text) or len(unknown) > max(3, len(tags) // 2)):
        raise ParseError("refusal_or_no_tags", text[:80])
    if len(tags) != len(tokens):
        raise ParseError("count_mismatch", f"{len(tags)} tags for {len(tokens)} tokens")
    if unknown:
        raise ParseError("unknown_tag", ", ".join(unknown)[:80])
    ordered = _in_order(reading)
    for entry, own in zip(ordered, tokens, strict=True):
        token = entry.token
        if token is not None and matching_key(_unquoted(token)) != matching_key(_unquoted(own)):
            raise ParseError("token_mismatch", f"{token!r:.40} in the place of {own!r:.40}")
    return [_bare(entry.tag) for entry in ordered]


def _bare(tag: str) -> str:
    return tag.strip().strip(_AROUND).lower()


def _unquoted(token: str) -> str:
    inner = token.strip().strip("\"'`*“”")
    return inner or token.strip()


def _in_order(reading: Sequence[_Entry]) -> list[_Entry]:
    """The entries in the order of their numbers, which have to count them from 0 or 1."""
    numbers = [entry.number for entry in reading if entry.number is not None]
    if not numbers:
        return list(reading)
    ordered = sorted(reading, key=lambda entry: -1 if entry.number is None else entry.number)
    if sorted(numbers) not in ([*range(len(reading))], [*range(1, len(reading) + 1)]):
        raise ParseError("numbering", f"numbers {numbers!r:.60} for {len(reading)} tags")
    return ordered


def _of_json(text: str, tokens: Sequence[str]) -> list[list[_Entry]]:
    """The readings of every JSON value; one that only repeats the tokens is none."""
    values = json_values(text)
    found = [reading for value in values for reading in _json_entries(value)]
    real = [one for one in found if any(any(map(str.isalnum, entry.tag)) for entry in one)]
    own = [matching_key(token) for token in tokens]
    answers = [one for one in real if [matching_key(entry.tag) for entry in one] != own]
    lines = [value for value in values if isinstance(value, dict)]
    if len(values) == len(lines) > 1 and all(len(one) == 1 for one in real):
        joined = [_json_entry(value) for value in lines]
        if all(entry is not None for entry in joined):
            return [[entry for entry in joined if entry is not None]]
    return answers or real


def _json_entries(value: Any) -> Iterator[list[_Entry]]:
    if isinstance(value, dict):
        for name in _LISTS:
            if isinstance(value.get(name), list | dict):
                yield from _json_entries(value[name])
                return
        entry = _json_entry(value)
        if entry is not None and len(value) > 1 and _tag_name(value):
            yield [entry]
            return
        pairs = members(value)
        if not pairs or not all(isinstance(tag, str) for _, tag in pairs):
            return
        yield [_Entry(tag, token) for token, tag in pairs]
        numbers = [_int(name) for name, _ in pairs]
        if None not in numbers:
            yield [
                _Entry(tag, None, number) for (_, tag), number in zip(pairs, numbers, strict=True)
            ]
    if isinstance(value, list) and value:
        entries = [_json_entry(one) for one in value]
        if all(entry is not None for entry in entries):
            yield [entry for entry in entries if entry is not None]


def _tag_name(value: dict[str, Any]) -> str | None:
    names = ("tag", "language", "lang", "label")
    return next((value[name] for name in names if isinstance(value.get(name), str)), None)


def _json_entry(one: Any) -> _Entry | None:
    if isinstance(one, str):
        return _Entry(one)
    if isinstance(one, list) and len(one) == 2 and all(isinstance(part, str) for part in one):
        return _Entry(one[1], one[0])
    if isinstance(one, dict):
        tag = _tag_name(one)
        names = ("token", "word", "text")
        token = next((one[name] for name in names if isinstance(one.get(name), str)), None)
        if tag is not None:
            number = next((_int(one[name]) for name in _NUMBERS if name in one), None)
            return _Entry(tag, token, number)
        if len(one) == 1:
            ((word, tag),) = one.items()
            return _Entry(tag, word) if isinstance(tag, str) else None
    return None


def _int(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,4}\s*", value):
        return int(value)
    return None


def _of_lines(text: str, tokens: Sequence[str], known: frozenset[str]) -> list[list[_Entry]]:
    """The ways in which lines can be read: rows of tags, or an entry a line."""
    lines = _full_lines(text)
    if len(lines) > 10 * len(tokens) + 500:
        return []
    readings = list(_rows(lines, len(tokens), known))
    for numbered in (True, False):
        entries = _entries(lines, numbered, len(tokens), known)
        readings += [entries] if entries else []
    if readings or not lines:
        return readings
    row = lines[-1]
    label = _ROW_LABEL.match(row)
    if label is not None:
        if not _is_answer(label.group(0)):
            return []
        row = row[label.end() :]
    tags = _parts(row)
    if not tags or (len(tags) == len(tokens) and known.issuperset(map(_bare, tags))):
        return []
    return [[_Entry(tag) for tag in tags]]


def _full_lines(text: str) -> list[str]:
    lines = re.sub(rf"[{INVISIBLE}]", "", without_fences(text)).splitlines()
    return [line.strip() for line in lines if not is_rule(line)]


def _parts(row: str) -> list[str]:
    return [part for part in re.split(r"[\s,;|،、，]+", row) if part.strip("[](){}\"'.")]


def _is_answer(label: str) -> bool:
    return bool(_ANSWER_LABEL.search(label)) and not _NO_ANSWER_LABEL.search(label)


def _rows(lines: Sequence[str], count: int, known: frozenset[str]) -> Iterator[list[_Entry]]:
    """Lines that consist of tags and nothing else, behind a label that names an answer."""
    for at, line in enumerate(lines):
        label = _ROW_LABEL.match(line)
        said = label.group(0) if label is not None else lines[at - 1] if at else ""
        row = line[label.end() :] if label is not None else line
        tags = [_bare(part) for part in _parts(row)]
        if not tags or (len(tags) == 1 and count != 1) or not known.issuperset(tags):
            continue
        if (label is not None or said.endswith((":", "："))) and not _is_answer(said):
            continue
        yield [_Entry(tag) for tag in tags]


def _entries(
    lines: Sequence[str], numbered: bool, count: int, known: frozenset[str]
) -> list[_Entry]:
    """An entry a line, each of them numbered or none; lines of prose are passed over."""
    found: list[_Entry] = []
    said = ""
    for line in lines:
        body = line.strip("|").strip() if line.startswith("|") else line
        plain = _BULLET.sub("", body, count=1)
        number: int | None = None
        if not numbered:
            body = plain
        elif (match := _COUNTER.match(plain)) is not None:
            number = int(match["number"])
            body = plain[match.end() :].strip("| \t")
        entry = _entry(body, known)
        if entry is None or (not found and _bare(entry.tag) in ("tag", "language", "label")):
            said = line if not found else said
        elif numbered and number is None:
            return []
        else:
            found.append(entry._replace(number=number))
    if len({entry.token is None for entry in found}) > 1 or (len(found) < 2 and count != 1):
        return []
    unsaid = said.endswith((":", "：")) and not _is_answer(said)
    return [] if unsaid and found and found[0].token is None else found


def _entry(body: str, known: frozenset[str]) -> _Entry | None:
    if len(body) > 300:
        return None
    if len(body.split()) == 1 and (
        _bare(body) in known or re.fullmatch(r"[\"'`*(\[]*[^\W\d_]+[\"'`*)\].,;]*", body)
    ):
        return _Entry(body)
    spaced = _SPACED.fullmatch(body)
    if spaced is not None and _bare(spaced["tag"]) in known:
        token = re.sub(r"(?:=>|->|[→:=|/：–—-])$", "", spaced["token"])
        if token:
            return _Entry(spaced["tag"], token)
    for pattern in (_SEPARATED, _BRACKETED):
        match = pattern.fullmatch(body)
        if match is not None:
            return _Entry(match["tag"], match["token"].strip().strip("|").strip())
    return None
