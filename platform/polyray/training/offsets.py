"""Texts read by byte offset: a file ``id TAB text`` (or JSON lines) is scanned once.

What is kept of a file is a byte offset a line (70 MB for 8.8 million passages) and, while examples
are checked against it, a 64-bit hash of every id. Blocks are scanned with numpy, not line by line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyray.collections.documents import ID_KEYS, TEXT_KEYS, TITLE_KEYS
from polyray.errors import IndexDamaged, InputError, PolyrayError, Problem
from polyray.files import MAX_LINE, open_binary
from polyray.training.examples_report import Findings

if TYPE_CHECKING:
    import numpy as np

__all__ = ["IdTable", "Lines", "Scanned", "blocks", "hash_ids", "hash_spans", "scan"]

BLOCK = 1 << 24
"""Bytes that are scanned at once."""
_FIRST, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_BOM = b"\xef\xbb\xbf"
_IDS, _TEXTS = (*ID_KEYS, "query_id", "qid", "pid"), (*TEXT_KEYS, "query", "passage")
_SHOWN = ((0x21, 0x7E), (0xC3, 0xCC), (0xCE, 0xD7), (0xE4, 0xED))
"""First bytes of UTF-8 characters that always show something."""


def hash_spans(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """64-bit FNV-1a (Fowler, Noll, Vo) of each ``data[start:end]``; ``data`` is uint8."""
    import numpy as np

    hashes: np.ndarray = np.full(len(starts), _FIRST, np.uint64)
    lengths = ends - starts
    prime = np.uint64(_PRIME)
    for column in range(int(lengths.max(initial=0))):
        live = np.flatnonzero(lengths > column)
        if len(live) == len(starts):
            hashes = (hashes ^ data[starts + column]) * prime
        else:
            hashes[live] = (hashes[live] ^ data[starts[live] + column]) * prime
    return hashes


def hash_ids(ids: Sequence[str]) -> np.ndarray:
    """:func:`hash_spans` of the UTF-8 bytes of ids: uint64 ``[n]``."""
    import numpy as np

    raw = [identifier.encode() for identifier in ids]
    ends = np.cumsum(np.fromiter(map(len, raw), np.int64, len(raw)))
    starts = np.concatenate(([0], ends[:-1])).astype(np.int64) if len(raw) else ends
    return hash_spans(np.frombuffer(b"".join(raw), np.uint8), starts, ends)


def blocks(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield ``(offset, number of the first line, whole lines)`` of a plain file.

    A byte order mark is passed over; the last line ends in a line feed even where the file's does
    not. Raises :class:`~polyray.errors.InputError` for UTF-16 and for a line that is too long.
    """
    offset, line, rest = 0, 1, b""
    with open_binary(path) as handle:
        while block := handle.read(BLOCK):
            if not offset and not rest:
                if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    raise InputError(Problem(str(path), 1, "UTF-16", "convert it to UTF-8"))
                if block.startswith(_BOM):
                    block, offset = block[len(_BOM) :], len(_BOM)
            cut = block.rfind(b"\n") + 1
            if cut:
                whole = rest + block[:cut]
                yield offset, line, whole
                offset, line, rest = offset + len(whole), line + whole.count(b"\n"), block[cut:]
            else:
                rest += block
            if len(rest) > MAX_LINE:
                raise InputError(Problem(str(path), line, f"a line of more than {MAX_LINE:,}"))
    if rest:
        yield offset, line, rest + b"\n"


class Scanned(NamedTuple):
    """The lines of a file that hold an id: hash uint64, offset int64, line number, blank bool."""

    hashes: np.ndarray
    offsets: np.ndarray
    lines: np.ndarray
    blank: np.ndarray


def scan(path: Path, shown: Path, findings: Findings) -> Scanned:
    """Scan a file of texts, TSV or JSON lines; what is no text is noted and left out.

    ``path`` is unpacked, ``shown`` the file's name in what is noted.
    TSV lines have an id and one or two texts. A text is blank where it shows nothing
    (:func:`polyray.text.keys.is_blank`).
    """
    import numpy as np

    parts: list[Scanned] = []
    reader: Callable[..., Scanned] | None = None
    for offset, line, data in blocks(path):
        if reader is None and data.strip():
            reader = _json_block if data.lstrip()[:1] == b"{" else _tsv_block
        if reader is not None:
            parts.append(reader(shown, offset, line, data, findings))
    if not parts:
        raise InputError(Problem(str(shown), None, "the file is empty", "fetch or write it again"))
    return Scanned(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def line_spans(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes uint8 of a block of whole lines, and where each begins and ends, CR and LF left out."""
    import numpy as np

    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == 10)
    starts = np.concatenate(([0], ends[:-1] + 1))
    return array, starts, ends - ((ends > starts) & (array[ends - 1] == 13))


def undecodable(data: bytes, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which lines are not UTF-8: bool ``[lines]``."""
    import numpy as np

    bad: np.ndarray = np.zeros(len(starts), bool)
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            try:
                data[start:end].decode()
            except UnicodeDecodeError:
                bad[number] = True
    return bad


def _tsv_block(path: Path, offset: int, line: int, data: bytes, findings: Findings) -> Scanned:
    import numpy as np

    array, starts, ends = line_spans(data)
    tabs = np.flatnonzero(array == 9)
    first = np.asarray(np.searchsorted(tabs, starts))
    count = np.searchsorted(tabs, ends) - first
    bad = undecodable(data, starts, ends)
    filled = ends > starts
    fits = (count == 1) | (count == 2)
    numbers: np.ndarray = line + np.arange(len(starts))
    findings.note("not UTF-8", path, numbers[bad])
    findings.note("not id TAB text", path, numbers[filled & ~bad & ~fits])
    kept = np.flatnonzero(filled & ~bad & fits)
    tab = tabs[first[kept]]
    hashes = hash_spans(array, starts[kept], tab)
    blank = _blank(data, array, tab + 1, ends[kept])
    return Scanned(hashes, starts[kept] + offset, numbers[kept], blank)


def _blank(data: bytes, array: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    import numpy as np

    from polyray.text.keys import is_blank

    shown: np.ndarray = np.zeros(256, bool)
    for low, high in _SHOWN:
        shown[low : high + 1] = True
    blank = starts >= ends
    doubtful = np.flatnonzero(~blank)
    doubtful = doubtful[~shown[array[starts[doubtful]]]]
    for number in doubtful.tolist():
        blank[number] = is_blank(data[starts[number] : ends[number]].decode())
    return blank


def _json_block(path: Path, offset: int, line: int, data: bytes, findings: Findings) -> Scanned:
    import numpy as np

    from polyray.text.keys import is_blank

    _, starts, ends = line_spans(data)
    ids: list[str] = []
    rows: list[tuple[int, int, bool]] = []
    for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True), line):
        if start == end:
            continue
        try:
            identifier, text = _record(data[start:end], "\n")
        except ValueError as error:
            findings.add("not a JSON object with id and text", path, number, str(error))
            continue
        ids.append(identifier)
        rows.append((start + offset, number, is_blank(text)))
    offsets, numbers, blank = zip(*rows, strict=True) if rows else ((), (), ())
    return Scanned(
        hash_ids(ids),
        np.array(offsets, np.int64),
        np.array(numbers, np.int64),
        np.array(blank, bool),
    )


def _record(line: bytes, between: str) -> tuple[str, str]:
    import orjson

    record: Any = orjson.loads(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    values = {
        name: next((record[key] for key in keys if record.get(key) is not None), None)
        for name, keys in (("id", _IDS), ("title", TITLE_KEYS), ("text", _TEXTS))
    }
    identifier, text = values["id"], values["text"]
    if not isinstance(identifier, str | int) or isinstance(identifier, bool):
        raise ValueError("no id that is a string or a whole number")
    if not isinstance(text, str) or not isinstance(values["title"], str | None):
        raise ValueError("no text that is a string")
    return str(identifier), between.join(filter(None, (values["title"], text)))


class IdTable:
    """Finds the row of an id by its hash; rows count the first lines of each id, in file order."""

    def __init__(self, path: Path, shown: Path, scanned: Scanned, findings: Findings) -> None:
        """Note ids that stand twice; raise PolyrayError where two different ids share a hash."""
        import numpy as np

        order = np.argsort(scanned.hashes, kind="stable")
        ordered = scanned.hashes[order]
        again: np.ndarray = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        lines = Lines(path)
        for place in again.tolist():
            pair = [lines.at(int(scanned.offsets[order[at]])) for at in (place - 1, place)]
            one, other = (_split(line, " ")[0] for line in pair)
            if one != other:
                raise PolyrayError(f"{shown}: the ids {one!r} and {other!r} share a 64-bit hash")
        twice = np.sort(scanned.lines[order[again]])
        findings.note("id used a second time", shown, twice)
        kept: np.ndarray = np.ones(len(ordered), bool)
        kept[order[again]] = False
        self.first = np.flatnonzero(kept)
        self._rows = np.argsort(scanned.hashes[self.first], kind="stable")
        self._hashes = scanned.hashes[self.first][self._rows]

    def __len__(self) -> int:
        return len(self._hashes)

    def rows(self, hashes: np.ndarray) -> np.ndarray:
        """int64 rows of hashed ids, -1 where there is no such id."""
        import numpy as np

        if not len(self):
            return np.full(len(hashes), -1, np.int64)
        order = np.argsort(hashes)  # in order, the search stays in the cache: 8 times as fast
        wanted = hashes[order]
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self) - 1)
        rows: np.ndarray = np.empty(len(hashes), np.int64)
        rows[order] = np.where(self._hashes[places] == wanted, self._rows[places], -1)
        return rows


class Lines:
    """Lines of a plain file by their byte offset.

    The file is opened at the first reading, in every process anew; threads and forked processes
    may share it. Where ``size`` is given, a file of another size is refused.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self._path, self._size = path, size
        self._handle: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_size": self._size, "_handle": None}

    def at(self, offset: int) -> str:
        """The line that begins at ``offset``, without its end."""
        handle = self._handle  # held here: another thread that opens at the same time replaces it
        if handle is None:
            self._handle = handle = self._opened()
        number, data, length = handle.fileno(), b"", 4096
        while b"\n" not in data:
            more = os.pread(number, length, offset + len(data))
            if not more:
                break
            data, length = data + more, 2 * length
        return data.partition(b"\n")[0].removesuffix(b"\r").decode()

    def _opened(self) -> Any:
        try:
            handle = self._path.open("rb", buffering=0)
        except OSError as error:
            problem = Problem(str(self._path), None, f"cannot be read: {error.strerror}")
            raise InputError(problem) from None
        if self._size is not None and os.fstat(handle.fileno()).st_size != self._size:
            handle.close()
            raise IndexDamaged(f"{self._path} has changed since it was scanned: start anew")
        return handle

    def text_at(self, offset: int, between: str) -> tuple[str, str]:
        """Id and text of the line at ``offset``; two texts are joined by ``between``."""
        return _split(self.at(offset), between)


def _split(line: str, between: str) -> tuple[str, str]:
    if line.startswith("{"):
        return _record(line.encode(), between)
    identifier, *texts = line.split("\t")
    return identifier, between.join(filter(None, texts))
