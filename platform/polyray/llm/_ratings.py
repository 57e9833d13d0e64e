"""Accuracy and fluency out of an answer: JSON, labelled text, or a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from polyray.llm._answers import ParseError, is_rule, json_values, members, without_thinking

__all__ = ["parse_ratings"]

_FIELDS = ("accuracy", "fluency")
_MARK = r"[\"'’”“*_`\s]*+"
_OPENING = r"[\"'’”“*_`\s\[(<]*+"
_MENTION = re.compile(
    r"(?<![^\W_])(?<![^\W_][-_])(?<!</)(?P<name>accuracy|fluency)(?![^\W_])"
    rf"{_MARK}(?:score|rating|mark)?{_MARK}>?{_MARK}"
    r"(?P<note>\((?!\s*\d+\s*\))[^()\n]{0,30}\))?"
    rf"{_MARK}(?:(?:is|was|of|as|at|gets|rated|would be)\b|=>|->|[=:：|–—→-])?{_OPENING}"
    rf"(?:(?:an?|(?:a )?(?:score|rating|mark) of)\b{_OPENING})?"
    r"(?:(?P<number>(?=[-+−]?\d))|(?P<word>(?:one|two|three|zero|four|five|n/?a|none)\b))",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<number>[-+−]?\d{1,6}(?:[.,]\d{1,2})?)(?!\d)"
    r"(?:[ \t]*points?\b(?=[ \t]+(?:out[ \t]+)?of\b))?"
    r"(?:[ \t]*(?:/|\(?(?:out[ \t]+of|of|von|sur|из)\b)[ \t]*(?P<scale>\d{1,4})(?![\d.,]\d|\d)\)?)?"
    r"(?:[ \t]*(?:points?|stars?)\b)?"
)
_OTHER = r"[*_\"'`(]*(?:accuracy|fluency)"
_REASONS = r"because|since|as|for|due|given|which"
_HEDGE = r"or|maybe|perhaps|possibly|almost|nearly|to|up|minus|plus|if|rather|actually|and a half"
_TAIL = re.compile(
    r"(?P<close>[\"'’”*_`\]}>]*)(?:"
    r"\s*\Z"
    r"|</[\w-]{1,20}>"
    r"|\.(?!\d|[ \t]+\d+[.)]?[ \t]*(?:\n|\Z))|!"
    r"|[ \t]*\n"
    rf"|[ \t]*[,;，；、。](?!\s*[\d½¼¾~])(?!\s*(?:{_HEDGE})\b)"
    r"|[ \t]*\)(?P<parenthesis>)"
    r"|[ \t]*[\]}]"
    r"|[ \t]*\|(?![ \t]*[-+]?\d)"
    rf"|[ \t]*[(（](?!\s*(?:[\d½~±+]|(?:{_HEDGE})\b|-))"
    r"|[ \t]+(?:-{1,2}|[–=→])[ \t]+(?![\d~])(?!(?:or|to|minus|plus|rather)\b)"
    r"|[ \t]*—[ \t]*(?![\d~])(?!(?:or|to|minus|plus|rather)\b)"
    r"|[ \t]*[:：][ \t\n]+(?!\d)"
    r"|[ \t]+(?://|\#)[ \t]"
    rf"|\s+(?:{_REASONS})\b"
    rf"|\s+(?:(?:and|but|yet|while|whereas|with|&)\s+)?(?:(?:an?|the|my|i|rate|give|its)\s+){{0,3}}{_OTHER}"
    r")",
    re.IGNORECASE,
)
_OPTIONS = re.compile(
    rf"(?<![^\s(])\d[ \t]*[-–—:=).](?=\s)(?!\s*{_OTHER})"
    r"|\b(?:or|rather|actually|pick|choose|say|maybe|perhaps)\b[^.\n\d]{0,12}\b\d\b"
    r"(?![ \t]*[^\W\d])",
    re.IGNORECASE,
)
_NEXT_LINE = re.compile(rf"\s*[-*•]?[ \t]*[*_]*\d(?!\d?[.)]?[*_\s]*{_OTHER})", re.IGNORECASE)
_FIELD = re.compile(r"accuracy|fluency", re.IGNORECASE)


def parse_ratings(content: str | None) -> dict[str, int]:
    """Accuracy and fluency, whole numbers from 1 to 3, from JSON or from labelled text.

    A number counts only where the text after it leaves it the one number that is meant.

    >>> parse_ratings("**Fluency**: 1/3, **Accuracy**: 3/3")
    {'accuracy': 3, 'fluency': 1}

    Raises :class:`ParseError`: ``out_of_range``, ``not_integer``, ``missing_field``,
    ``refusal_or_no_score``, or ``ambiguous`` where one field is given two values.
    """
    text = without_thinking(content or "").strip()
    if not text:
        raise ParseError("refusal_or_no_score", "the answer is empty")
    values = json_values(text)
    given = [fields for value in values for fields in _json_fields(value)]
    if given:
        return _ratings(given)
    if any(isinstance(value, dict) for value in values):
        raise ParseError("missing_field", ", ".join(_FIELDS))
    fields = _table(text) or _spoken(text)
    if not fields:
        bare = re.fullmatch(r"[\W_]*[-+]?\d+(?:[.,/]\d+)?[\W_]*", text)
        raise ParseError("missing_field" if bare else "refusal_or_no_score", text[:80])
    return _ratings([fields])


def _json_fields(value: Any, depth: int = 4) -> Iterator[dict[str, list[Any]]]:
    """The outermost objects that name a field, however they are wrapped."""
    if isinstance(value, list) and depth:
        for one in value:
            yield from _json_fields(one, depth - 1)
    if not isinstance(value, dict):
        return
    found: dict[str, list[Any]] = {}
    for name, one in members(value):
        field = re.sub(r"[ _-](?:score|rating)$", "", name.strip().lower())
        if field in _FIELDS:
            found.setdefault(field, []).extend(_inner(one))
    if found:
        yield found
    elif depth:
        for _, one in members(value):
            yield from _json_fields(one, depth - 1)


def _inner(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value if len(value) == 1 else [value]
    if not isinstance(value, dict):
        return [value]
    named = {name.strip().lower(): one for name, one in members(value)}
    for name in ("max", "scale", "out_of", "maximum"):
        if name in named and str(named[name]) not in ("3", "1-3"):
            raise ParseError("out_of_range", f"on a scale to {named[name]!r:.20}")
    inner = [named[name] for name in ("score", "rating", "value", "mark") if name in named]
    return inner or [value]


def _table(text: str) -> dict[str, list[Any]]:
    """Values of a table with a column for each field and one row below its header."""
    rows = [
        [cell.strip(" \t*_`\"'") for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if "|" in line and not is_rule(line)
    ]
    names = [[_field_of(cell) for cell in row] for row in rows]
    header = next((at for at, row in enumerate(names) if set(_FIELDS) <= set(row)), None)
    if header is None:
        return {}
    found: dict[str, list[Any]] = {}
    for row in rows[header + 1 :]:
        if len(row) != len(names[header]):
            raise ParseError("missing_field", "a table row of another length")
        for name, cell in zip(names[header], row, strict=True):
            if name is not None:
                found.setdefault(name, []).append(cell)
    return found or {name: [] for name in _FIELDS}


def _field_of(cell: str) -> str | None:
    match = re.match(r"(accuracy|fluency)\b", cell, re.IGNORECASE)
    if match is None or re.search(r"\d", cell.replace("1-3", "").replace("/3", "")):
        return None
    return match[1].lower()


def _spoken(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for match in _MENTION.finditer(text):
        name = match["name"].lower()
        digits = [int(one) for one in re.findall(r"\d{1,4}", match["note"] or "")]
        if digits and max(digits) != 3:
            raise ParseError("out_of_range", f"{name} {match['note']}")
        value = match.group(0) if match["word"] else _number(name, text, match.end())
        found.setdefault(name, []).append(value)
    return found


def _number(name: str, text: str, at: int) -> int:
    """The number at a place of the text, if nothing after it makes it another one."""
    number = _NUMBER.match(text, at)
    shown = f"{name} is {text[at : at + 40]!r}"
    if number is None:
        raise ParseError("not_integer", shown)
    value = number["number"].replace(",", ".").replace("−", "-")
    tail = _TAIL.match(text, number.end())
    if tail is None:
        raise ParseError("not_integer", shown)
    if number["scale"] and int(number["scale"]) != 3:
        raise ParseError("out_of_range", f"{name} on a scale to {number['scale']}")
    if tail["parenthesis"] is not None:
        before = text[max(0, at - 80) : at].rpartition("\n")[2]
        if before.count("(") <= before.count(")"):
            raise ParseError("not_integer", shown)
    rest, _, below = text[tail.end() : tail.end() + 160].partition("\n")
    if tail.group(0).endswith("\n"):
        rest, below = "", text[tail.end() : tail.end() + 160]
    own = "" if _FIELD.search(tail.group(0)) else _FIELD.split(rest, maxsplit=1)[0]
    if _OPTIONS.search(own) or (below and _NEXT_LINE.match(below)):
        raise ParseError("not_integer", shown)
    return _whole(name, value)


def _ratings(given: Sequence[dict[str, list[Any]]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for name in _FIELDS:
        values = [one for fields in given for one in fields.get(name, ())]
        if not values or values == [None]:
            raise ParseError("missing_field", name)
        numbers = {_value(name, value) for value in values}
        if len(numbers) > 1:
            raise ParseError("ambiguous", f"{name} is given as {sorted(numbers)}")
        made[name] = numbers.pop()
    return made


def _value(name: str, value: Any) -> int:
    if isinstance(value, str):
        text = value.strip()
        if not re.match(r"[-+−]?\d", text):
            raise ParseError("not_integer", f"{name} is {text!r:.40}")
        return _number(name, text, 0)
    return _whole(name, value)


def _whole(name: str, value: Any) -> int:
    try:
        number = float("x" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        raise ParseError("not_integer", f"{name} is {value!r:.40}") from None
    if not number.is_integer():
        raise ParseError("not_integer", f"{name} is {value!r:.40}")
    if not 1 <= number <= 3:
        raise ParseError("out_of_range", f"{name} is {value!r:.40}, not 1, 2 or 3")
    return int(number)
