"""What the line-based readers share: lines with their problems collected, columns, ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from polyray.errors import InputError, Problems
from polyray.files import open_text

_COLUMN = re.compile(r"[^ \t\r\n\x0b\x0c]+")
_SPACE = re.compile(r"[ \t\r\n\x0b\x0c]")


def lines_of(path: str | Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """The file's lines; one that cannot be decoded is noted as a problem and ends the reading."""
    lines = open_text(path)
    while True:
        try:
            numbered = next(lines)
        except StopIteration:
            return
        except InputError as error:
            problems.found.extend(error.problems)
            return
        yield numbered


def columns_of(line: str) -> list[str]:
    """Columns between ASCII white space, as trec_eval cuts them (no other space ends an id)."""
    return _COLUMN.findall(line)


def full_lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Lines of a record-per-line file: blank lines at its end are dropped, others are noted."""
    blank: list[int] = []
    for number, line in lines_of(path, problems):
        if not line.strip():
            blank.append(number)
            continue
        for empty in blank:
            problems.add(empty, "a blank line between records", "delete it or restore its record")
        blank.clear()
        yield number, line


def id_problem(identifier: str) -> str:
    """Why a string cannot be an id in a run file, or ``""``."""
    if not identifier:
        return "the id is empty"
    if _SPACE.search(identifier):
        return f"the id {identifier!r} holds white space, which run and qrels files cannot keep"
    if "\0" in identifier or identifier.startswith("\ufeff"):
        return f"the id {identifier!r} holds a control character"
    return "" if encodable(identifier) else f"the id {identifier!r} is not valid Unicode"


def encodable(text: str) -> bool:
    """False where a text holds half of a surrogate pair and so cannot be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
