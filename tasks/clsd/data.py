"""The published CLSD files: sentence pairs, and four distractors for each sentence.

Columns, in any order: the English names of two languages (``French``, ``German``), for each
language code ``de_adv1`` to ``de_adv4``, optionally ``Index`` (the row's id) and one unnamed
column in front, which is not read. Blank records are skipped and counted. A pair of other
languages needs nothing but their rows in :mod:`polyray.languages`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyray.errors import InputError, Problem, Problems
from polyray.files import open_text, resolve
from polyray.languages import LANGUAGES
from tasks.clsd.config import ClsdConfig

__all__ = ["ClsdData", "ClsdFile", "ClsdRow", "match_pivot", "read_clsd", "read_datasets"]

DISTRACTORS = 4
"""Distractors of one sentence."""

_NAMES = {row.name: code for code, row in LANGUAGES.items()}


@dataclass(frozen=True, slots=True)
class ClsdRow:
    """One pair, keyed by language code; a distractor that is missing is None."""

    row_id: str
    line: int
    sentences: dict[str, str]
    distractors: dict[str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class ClsdFile:
    """All rows of one file; ``languages`` are its two codes, sorted."""

    path: str
    languages: tuple[str, str]
    rows: tuple[ClsdRow, ...]
    blank_records: int

    @property
    def missing(self) -> dict[str, int]:
        """How many distractors of each language are missing."""
        return {
            code: sum(row.distractors[code].count(None) for row in self.rows)
            for code in self.languages
        }

    @property
    def texts(self) -> list[str]:
        """Every sentence and distractor that is there, in the order of the file."""
        found: list[str] = []
        for row in self.rows:
            found += row.sentences.values()
            found += [text for group in row.distractors.values() for text in group if text]
        return found


@dataclass(frozen=True, slots=True)
class ClsdData:
    """A data set: its sentences as they are, and in English translation where it has one."""

    name: str
    direct: ClsdFile
    pivot: ClsdFile | None = None

    def file(self, mode: str) -> ClsdFile:
        """The sentences that a mode reads."""
        return self.pivot if mode == "pivot" and self.pivot is not None else self.direct


def read_clsd(path: str | Path) -> ClsdFile:
    """Read one file; texts are kept to the letter.

    Row ids are the values of ``Index``, or the number of the record from 0, blank ones not
    counted. Raises :class:`~polyray.errors.InputError` with every problem of the file: columns,
    ragged records, quoting, empty sentences, ids that are empty or stand twice.
    """
    problems = Problems(str(path))
    records = _records(path, problems)
    _, header = next(records, (1, []))
    languages = _check_header(header, problems)
    problems.raise_if_any()
    place = {name.strip(): at for at, name in enumerate(header)}
    rows: list[ClsdRow] = []
    lines: dict[str, int] = {}
    blank = 0
    for line, cells in records:
        if not any(cell.strip() for at, cell in enumerate(cells) if at != place.get("")):
            blank += 1
            continue
        if len(cells) != len(header):
            problems.add(line, f"{len(cells)} cells where the header has {len(header)}")
            continue
        number = len(rows)
        row_id = cells[place["Index"]] if "Index" in place else str(number)
        row = _row(row_id, line, cells, place, languages)
        rows.append(row)
        for code, text in row.sentences.items():
            if not text.strip():
                remedy = "a pair needs both sentences"
                problems.add(line, f"the {LANGUAGES[code].name} sentence is empty", remedy)
        if not row_id.strip():
            problems.add(line, "the Index is empty")
        elif row_id in lines:
            problems.add(line, f"the Index {row_id!r} stands on line {lines[row_id]}, too")
        lines.setdefault(row_id, line)
    if not rows and not problems:
        problems.add(None, "no sentence pairs")
    problems.raise_if_any()
    return ClsdFile(str(path), languages, tuple(rows), blank)


def match_pivot(original: ClsdFile, pivot: ClsdFile) -> ClsdFile:
    """The pivot's rows in the order of the original's, matched by id.

    Raises :class:`~polyray.errors.InputError` where languages or ids differ.
    """
    problems = Problems(pivot.path)
    if pivot.languages != original.languages:
        given, wanted = " and ".join(pivot.languages), " and ".join(original.languages)
        problems.add(1, f"languages {given}, but {original.path} has {wanted}")
    if len(pivot.rows) != len(original.rows):
        counts = f"{len(pivot.rows)} pairs, but {original.path} has {len(original.rows)}"
        problems.add(None, counts, "the pivot file has to translate the same rows")
    found = {row.row_id: row for row in pivot.rows}
    known = {row.row_id for row in original.rows}
    for row in original.rows:
        if row.row_id not in found:
            problems.add(None, f"row {row.row_id!r} of {original.path}:{row.line} is not here")
    for row in pivot.rows:
        if row.row_id not in known:
            problems.add(row.line, f"row {row.row_id!r} is not in {original.path}")
    problems.raise_if_any()
    return replace(pivot, rows=tuple(found[row.row_id] for row in original.rows))


def read_datasets(config: ClsdConfig) -> list[ClsdData]:
    """Read the files that the config's modes need; raises all problems of all files at once."""
    problems: list[Problem] = []
    data: list[ClsdData] = []
    for dataset in config.datasets:
        files: list[ClsdFile] = []
        wanted = [dataset.path] + ([dataset.pivot] if "pivot" in config.modes else [])
        for path in filter(None, wanted):
            try:
                files.append(read_clsd(resolve(path)))
                if len(files) > 1:
                    files[1] = match_pivot(files[0], files[1])
            except InputError as error:
                problems += error.problems
        if files:
            data.append(ClsdData(dataset.name, files[0], files[1] if len(files) > 1 else None))
    if problems:
        raise InputError(problems)
    return data


def _records(path: str | Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """``(first line, cells)`` of each record; a record may span lines."""
    reader = csv.reader((f"{text}\n" for _, text in open_text(path)), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add(line, f"not CSV: {error}", "quote cells by RFC 4180")
            return
        yield line, cells
        line = reader.line_num + 1


def _check_header(header: Sequence[str], problems: Problems) -> tuple[str, str]:
    names = [name.strip() for name in header]
    codes = sorted(_NAMES[name] for name in set(names) & set(_NAMES))
    if not any(names):
        problems.add(1, "no header", "the first line names the columns")
        return ("", "")
    if len(codes) != 2:
        given = ", ".join(LANGUAGES[code].name for code in codes) or "none"
        remedy = f"comma-separated, with two columns named {', '.join(_NAMES)}"
        problems.add(1, f"two language columns are needed, found: {given}", remedy)
    advs = [f"{code}_adv{n}" for code in codes for n in range(1, DISTRACTORS + 1)]
    for name in advs:
        if name not in names:
            problems.add(1, f"no column {name}")
    allowed = {"Index", *(LANGUAGES[code].name for code in codes), *advs}
    for at, name in enumerate(names):
        if name in names[:at]:
            problems.add(1, f"the column {name!r} stands twice")
        elif name not in allowed and (name or at):
            problems.add(1, f"unknown column {name!r}", "take it out")
    return (codes[0], codes[1]) if len(codes) == 2 else ("", "")


def _row(
    row_id: str, line: int, cells: Sequence[str], place: dict[str, int], languages: Sequence[str]
) -> ClsdRow:
    def distractor(name: str) -> str | None:
        text = cells[place[name]]
        return text if text.strip() else None

    return ClsdRow(
        row_id,
        line,
        {code: cells[place[LANGUAGES[code].name]] for code in languages},
        {
            code: tuple(distractor(f"{code}_adv{n}") for n in range(1, DISTRACTORS + 1))
            for code in languages
        },
    )
