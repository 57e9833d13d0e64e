"""Reads lines of training examples in batches: teacher scores, or triples of ids.

* ``[qid, [pid, score], [pid, score], ...]`` JSON lines, as the published teacher scores are;
* ``[qid, pid+, pid-, ...]`` JSON lines and ``qid TAB pid+ TAB pid-``: no scores.

Ids are strings or whole numbers, kept as they are spelled. Tab-separated triples are cut and
hashed a block at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from polyray.errors import InputError, Problem
from polyray.training.examples_report import Findings
from polyray.training.offsets import blocks, hash_ids, hash_spans, line_spans, undecodable

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Batch", "Ids", "read_batches"]

BATCH = 8192
"""JSON lines that are handed on together."""
_NO_LINE = "not [qid, [pid, score], ...] or qid, pid+, pid-"


class Ids(Protocol):
    """Ids that can be hashed together and spelled one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> str: ...

    def hashes(self) -> np.ndarray:
        """uint64 ``[n]``, as :func:`polyray.training.offsets.hash_ids`."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of examples: pairs of line ``k`` are ``starts[k]`` to ``starts[k + 1]``.

    ``scores`` is float64 ``[pairs]``, NaN where the file has no number, or None where the file
    has no scores at all. ``last`` is the number of the last line that was looked at, ``read``
    how many bytes of the file are behind.
    """

    lines: np.ndarray
    queries: Ids
    starts: np.ndarray
    passages: Ids
    scores: np.ndarray | None
    last: int
    read: int


def read_batches(path: Path, shown: Path, findings: Findings) -> Iterator[Batch]:
    """Batches of a plain file, in its order; lines of another form are noted and left out.

    ``shown`` is the file's name in what is noted.
    """
    reader: _JsonReader | None = None
    tsv = False
    for offset, line, data in blocks(path):
        if reader is None and not tsv and (start := data.lstrip()[:1]):
            if start == b"{":
                what, remedy = "an object, not an example", f"write: {_NO_LINE[4:]}"
                raise InputError(Problem(str(shown), line, what, remedy))
            tsv = start != b"["
            reader = None if tsv else _JsonReader(shown, findings)
        if reader is not None:
            yield from reader.batches(line, data, offset + len(data))
        elif tsv:
            yield _triples(shown, line, data, offset + len(data), findings)


@dataclass(frozen=True, slots=True)
class _Spans:
    """Ids as places in a block of bytes."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> str:
        return bytes(self.data[self.starts[number] : self.ends[number]]).decode()

    def hashes(self) -> np.ndarray:
        return hash_spans(self.data, self.starts, self.ends)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Ids as strings."""

    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: int) -> str:
        return self.ids[number]

    def hashes(self) -> np.ndarray:
        return hash_ids(self.ids)


def _triples(path: Path, line: int, data: bytes, read: int, findings: Findings) -> Batch:
    import numpy as np

    array, starts, ends = line_spans(data)
    tabs = np.flatnonzero(array == 9)
    first = np.asarray(np.searchsorted(tabs, starts))
    count = np.searchsorted(tabs, ends) - first
    bad = undecodable(data, starts, ends)
    filled = ends > starts
    numbers: np.ndarray = line + np.arange(len(starts))
    findings.note("not UTF-8", path, numbers[bad])
    findings.note(_NO_LINE, path, numbers[filled & ~bad & (count != 2)])
    kept = np.flatnonzero(filled & ~bad & (count == 2))
    one, two = tabs[first[kept]], tabs[first[kept] + 1]
    passages = _Spans(
        array,
        np.stack([one + 1, two + 1], axis=1).ravel(),
        np.stack([two, ends[kept]], axis=1).ravel(),
    )
    queries = _Spans(array, starts[kept], one)
    pairs: np.ndarray = 2 * np.arange(len(kept) + 1)
    return Batch(numbers[kept], queries, pairs, passages, None, line + len(starts) - 1, read)


_Parsed = tuple[str, Sequence[str], Sequence[float]]


class _Malformed(ValueError):
    """A line that is no example; the text says why."""


class _JsonReader:
    """Reads JSON lines; the first good one decides whether the file has scores."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path, self._findings = path, findings
        self._scored: bool | None = None

    def batches(self, line: int, data: bytes, read: int) -> Iterator[Batch]:
        numbers: list[int] = []
        parsed: list[_Parsed] = []
        number = line
        for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), line):
            if not raw or raw.isspace():
                continue
            try:
                parsed.append(self._parse(raw))
            except _Malformed as error:
                self._findings.add(_NO_LINE, self._path, number, str(error))
                continue
            numbers.append(number)
            if len(numbers) == BATCH:
                yield self._batch(numbers, parsed, number, read)
                numbers, parsed = [], []
        if numbers:
            yield self._batch(numbers, parsed, number, read)

    def _batch(self, numbers: list[int], parsed: list[_Parsed], last: int, read: int) -> Batch:
        import numpy as np

        queries, passages, scores = zip(*parsed, strict=True)
        starts = np.concatenate(([0], np.cumsum(list(map(len, passages)))))
        flat = [passage for group in passages for passage in group]
        values = None
        if self._scored:
            values = np.array([score for group in scores for score in group], np.float64)
        lines = np.array(numbers, np.int64)
        return Batch(lines, _Listed(queries), starts, _Listed(flat), values, last, read)

    def _parse(self, raw: bytes) -> _Parsed:
        record = _loaded(raw)
        if not isinstance(record, list) or len(record) < 2:
            raise _Malformed("not a list with a query and passages")
        query = _spelled(record[:1])[0]
        rest = record[1:]
        scored = isinstance(rest[0], list)
        if scored:
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in rest):
                raise _Malformed("something that is not a pair [pid, score]")
            ids, values = zip(*rest, strict=True)
            passages, scores = _spelled(ids), _numbers(values)
        else:
            passages, scores = _spelled(rest), ()
        if self._scored is None:
            self._scored = scored
        if scored != self._scored:
            raise _Malformed(f"{'' if scored else 'no '}scores, unlike the lines before")
        return query, passages, scores


def _loaded(raw: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:  # Python's reader knows NaN, Infinity and whole numbers of any length
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"not JSON: {error}") from None


def _spelled(ids: Sequence[Any]) -> Sequence[str]:
    kinds = set(map(type, ids))
    if kinds == {str}:
        return ids
    if not kinds <= {str, int}:
        raise _Malformed("an id that is neither a string nor a whole number")
    return list(map(str, ids))


def _numbers(values: Sequence[Any]) -> Sequence[float]:
    if set(map(type, values)) <= {int, float}:
        return values
    return [value if type(value) in (int, float) else float("nan") for value in values]
