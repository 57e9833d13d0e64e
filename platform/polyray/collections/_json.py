"""JSON lines (or one JSON array) as records, with numbers kept to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polyray.collections._lines import encodable, full_lines
from polyray.errors import Problems

MAX_ARRAY = 64 * 1024 * 1024
"""Longest JSON array, in characters; it cannot be streamed."""


class Number(str):
    """A JSON whole number, as it is spelled."""

    __slots__ = ()


def objects_of(path: str | Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line, object)``; lines that are no JSON object are noted in ``problems``."""
    lines = full_lines(path, problems)
    for number, line in lines:
        if line.lstrip().startswith("["):
            yield from _array(number, line, lines, problems)
            return
        record = _parse(number, line, problems)
        if isinstance(record, dict):
            yield number, record
        elif record is not None:
            problems.add(number, "not a JSON object", "write one object {...} a line")


def _parse(number: int, text: str, problems: Problems) -> Any:
    try:
        return json.loads(text, parse_int=Number)
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg} at column {error.colno}"
        problems.add(number + error.lineno - 1, what, "write one object {...} a line")
    except RecursionError:
        problems.add(number, "JSON nested too deeply", "write one flat object a line")
    return None


def _array(
    number: int, first: str, rest: Iterator[tuple[int, str]], problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    parts, length, last = [first], len(first), number
    for last_number, line in rest:
        parts += [""] * (last_number - last - 1)
        last = last_number
        parts.append(line)
        length += len(line) + 1
        if length > MAX_ARRAY:
            what = f"a JSON array of more than {MAX_ARRAY:,} characters"
            problems.add(number, what, "write one object a line (JSONL), which can be streamed")
            return
    records = _parse(number, "\n".join(parts), problems)
    for place, record in enumerate(records or (), 1):
        if isinstance(record, dict):
            yield number, record
        else:
            problems.add(number, f"element {place} of the array is not an object")


def text_value(
    record: dict[str, Any],
    keys: Sequence[str],
    line: int,
    problems: Problems,
    *,
    numbers: bool = False,
) -> str | None:
    """The first of the keys that the record has; ``None`` where there is none or it is null.

    What is no string (nor, with ``numbers``, a whole number) is noted in ``problems``.
    """
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        return None
    value = record[key]
    if not isinstance(value, str) or (isinstance(value, Number) and not numbers):
        problems.add(line, f"the value of {key!r} is not a string", "write it in quotes")
        return None
    if not encodable(value):
        problems.add(line, f"the value of {key!r} holds half of a surrogate pair", "mend it")
        return None
    return str(value)
