"""Parallel sentences in, a CLSD data set out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyray.errors import InputError, Problem, Problems
from polyray.files import atomic_path, digests_of, open_text, resolve
from polyray.languages import LANGUAGES
from polyray.llm.prompts import prompt_file
from tasks.distractors.config import ColumnPairs, DistractorsConfig, LinePairs, TablePairs

__all__ = ["Made", "Pair", "input_digests", "read_pairs", "write_clsd"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences that say the same, by language code."""

    row_id: str
    sentences: dict[str, str]


@dataclass(frozen=True, slots=True)
class Made:
    """One distractor with where it comes from.

    ``how``: the rules that made it, or the prompt; ``edits`` as ``[[start, end, new, rule], ...]``
    in JSON, for rules; ``verdict``: what a judge said of the meaning, None without one.
    """

    row_id: str
    language: str
    number: int
    original: str
    text: str
    generator: str
    how: str
    edits: str
    edit_similarity: float
    jaccard: float
    verdict: bool | None = None


def read_pairs(config: DistractorsConfig) -> list[Pair]:
    """The pairs of a config, texts to the letter.

    Raises :class:`~polyray.errors.InputError` with every problem: ragged records, sentences that
    are empty, ids that stand twice, files of unequal length.
    """
    pairs = config.pairs
    if isinstance(pairs, LinePairs):
        found = _lines(pairs, config.languages)
    elif isinstance(pairs, ColumnPairs):
        found = _columns(pairs, config.languages)
    else:
        found = _table(pairs, config.languages)
    return found if config.limit is None else found[: config.limit]


def input_digests(config: DistractorsConfig) -> dict[str, str]:
    """SHA-256 of every file that is read, prompts among them.

    Raises :class:`~polyray.errors.InputError` naming every file that is not there.
    """
    pairs = config.pairs
    files: dict[str, Path] = {}
    if isinstance(pairs, LinePairs):
        for code in config.languages:
            files[f"pairs.{code}"] = resolve(pairs.path.replace("{language}", code))
    else:
        files["pairs"] = resolve(pairs.path)
    generator = config.generator
    if generator.kind == "llm":
        files["prompt"] = prompt_file(generator.prompt)
    elif generator.lexicon is not None:
        for code in config.wanted:
            files[f"lexicon.{code}"] = lexicon_path(config, code)
    if config.judge is not None and config.judge.engine is not None:
        files["judge.prompt"] = prompt_file(config.judge.prompt)
    return digests_of(files)


def lexicon_path(config: DistractorsConfig, code: str) -> Any:
    """The lexicon for one target; English words come from the other language's, turned round."""
    generator = config.generator
    named = generator.lexicon or "" if generator.kind == "rules" else ""
    return resolve(named.replace("{language}", config.other(code) if code == "en" else code))


def _table(pairs: TablePairs, codes: Sequence[str]) -> list[Pair]:
    path = str(resolve(pairs.path))
    problems = Problems(path)
    lines = (f"{text}\n" for _, text in open_text(path))
    tabs = path.removesuffix(".gz").endswith(".tsv")
    if tabs:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        place = _places(header, codes, problems)
        problems.raise_if_any()
        records = []
        line = reader.line_num + 1
        for cells in reader:
            blank = not any(cell.strip() for at, cell in enumerate(cells) if header[at : at + 1])
            if not blank and len(cells) != len(header):
                problems.add(line, f"{len(cells)} cells where the header has {len(header)}")
            elif not blank:
                records.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        problems.add(reader.line_num, f"not CSV: {error}", "quote cells by RFC 4180")
        problems.raise_if_any()
    found = []
    number = place.get("id")
    for count, (line, cells) in enumerate(records):
        row_id = str(count) if number is None else cells[number].strip()
        found.append((line, Pair(row_id, {code: cells[place[code]] for code in codes})))
    return _checked(found, problems)


def _places(header: Sequence[str], codes: Sequence[str], problems: Problems) -> dict[str, int]:
    place = {}
    for code in codes:
        names = (LANGUAGES[code].name, code)
        at = next((header.index(name) for name in names if name in header), None)
        if at is None:
            problems.add(1, f"no column {names[0]} or {code}", "the first line names the columns")
        else:
            place[code] = at
    for name in ("Index", "id"):
        if name in header:
            place["id"] = header.index(name)
            break
    return place


def _columns(pairs: ColumnPairs, codes: Sequence[str]) -> list[Pair]:
    path = str(resolve(pairs.path))
    problems = Problems(path)
    found = []
    for number, line in open_text(path):
        cells = line.split("\t")
        if len(cells) < max(pairs.columns[code] for code in codes):
            problems.add(number, f"only {len(cells)} columns")
            continue
        sentences = {code: cells[pairs.columns[code] - 1] for code in codes}
        found.append((number, Pair(str(number - 1), sentences)))
    return _checked(found, problems)


def _lines(pairs: LinePairs, codes: Sequence[str]) -> list[Pair]:
    paths = [str(resolve(pairs.path.replace("{language}", code))) for code in codes]
    texts = [[text for _, text in open_text(path)] for path in paths]
    if len(texts[0]) != len(texts[1]):
        counts = f"{len(texts[1])} lines, but {paths[0]} has {len(texts[0])}"
        raise InputError(Problem(paths[1], None, counts, "line by line translations are needed"))
    rows = zip(*texts, strict=True)
    found = [
        (at + 1, Pair(str(at), dict(zip(codes, row, strict=True)))) for at, row in enumerate(rows)
    ]
    return _checked(found, Problems(paths[0]))


def _checked(found: Sequence[tuple[int, Pair]], problems: Problems) -> list[Pair]:
    lines: dict[str, int] = {}
    for line, pair in found:
        for code, text in pair.sentences.items():
            if not text.strip():
                problems.add(line, f"the {LANGUAGES[code].name} sentence is empty")
        if not pair.row_id:
            problems.add(line, "the id is empty")
        elif pair.row_id in lines:
            problems.add(line, f"the id {pair.row_id!r} stands on line {lines[pair.row_id]}, too")
        lines.setdefault(pair.row_id, line)
    if not found and not problems:
        problems.add(None, "no sentence pairs")
    problems.raise_if_any()
    return [pair for _, pair in found]


def write_clsd(path: Any, config: DistractorsConfig, pairs: Sequence[Pair], made: Any) -> None:
    """Write the published columns; what is missing is an empty cell."""
    codes = sorted(config.languages)
    names = sorted((LANGUAGES[code].name, code) for code in codes)
    header = ["Index", *(name for name, _ in names)]
    header += [f"{code}_adv{k}" for code in codes for k in range(1, config.n + 1)]
    texts = {(one.row_id, one.language, one.number): one.text for one in made}
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as handle,
    ):
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        for pair in pairs:
            cells = [pair.row_id, *(pair.sentences[code] for _, code in names)]
            for code in codes:
                for k in range(1, config.n + 1):
                    cells.append(texts.get((pair.row_id, code, k), ""))
            writer.writerow(cells)
