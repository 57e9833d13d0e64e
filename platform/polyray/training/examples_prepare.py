"""Checks the files of training examples once and writes what is usable as numbers.

``examples-<key>/`` holds, in the machine's byte order, ``starts`` int64 ``[lines + 1]``,
``queries`` int32 ``[lines]``, ``passages`` int32 and ``scores`` float64 ``[pairs]``, and byte
offsets int64 of every row of queries and passages in each language. Rows count the ids of the
first language's file, which is the pivot's where that is read.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from polyray.errors import InputError, Problem
from polyray.files import open_binary, resolve
from polyray.indexes.manifest import read_manifest, settings_key, write_manifest
from polyray.training.examples_lines import Batch, Ids, read_batches
from polyray.training.examples_report import Findings, Report
from polyray.training.offsets import IdTable, scan
from polyray.training.recipes import Recipe

if TYPE_CHECKING:
    import numpy as np

    from polyray.training.examples import ExampleSource

__all__ = ["open_arrays", "open_facts", "prepare"]

KIND, FORMAT = "examples", 1
_TYPES = {"starts": "int64", "queries": "int32", "passages": "int32", "scores": "float64"}
_THERE, _UNKNOWN, _MISSING, _BLANK = range(4)
_STATES = {
    _UNKNOWN: "id does not exist",
    _MISSING: "is not there in every language",
    _BLANK: "has no text",
}

Progress = Callable[[str, int, int], None]


def open_facts(folder: Path) -> dict[str, Any]:
    """The facts of a prepared folder; raises IndexDamaged where a file is missing or changed."""
    facts: dict[str, Any] = read_manifest(folder, KIND)["facts"]
    for file in facts["files"].values():
        path = Path(file["path"])
        file["path"] = str(path if path.is_absolute() else folder / path)
    return facts


def open_arrays(folder: Path, facts: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """All arrays of a prepared folder, mapped into memory."""
    import numpy as np

    names = {f"{name}.offsets": "int64" for name in facts["files"]}
    names |= {name: kind for name, kind in _TYPES.items() if facts["scored"] or name != "scores"}
    return {
        name: np.asarray(np.memmap(folder / f"{name}.bin", kind, "r"))
        for name, kind in names.items()
    }


def prepare(
    source: ExampleSource,
    recipes: Sequence[Recipe],
    indexes: Path,
    inputs: Mapping[str, str],
    progress: Progress | None,
) -> Path:
    """The folder of the source's usable lines, made if it is not there; see ``Examples``."""
    pivots = {recipe.pivot for recipe in recipes}
    read = {
        "queries": {code for recipe in recipes for code in recipe.query_files},
        "passages": {code for recipe in recipes for code in recipe.passage_files},
    }
    codes = {
        what: sorted(found, key=lambda code: (code not in pivots, code))
        for what, found in read.items()
    }
    paths = {f"queries.{code}": source.query_path(code).absolute() for code in codes["queries"]}
    paths |= {
        f"passages.{code}": source.passage_path(code).absolute() for code in codes["passages"]
    }
    described = {
        "format": FORMAT,
        **{name: inputs[name] for name in ("examples", *paths)},
        **{f"path.{name}": str(path) for name, path in paths.items()},
        **source.model_dump(include={"nway", "choice", "max_examples"}),
    }
    folder = indexes / f"{KIND}-{settings_key(described)}"
    if (folder / "manifest.json").is_file():
        return folder
    work = indexes / f".{folder.name}.{os.getpid()}.tmp"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        facts = _Preparation(source, work, paths, progress or (lambda *_: None)).facts(codes)
        write_manifest(work, KIND, described, facts=facts)
        try:
            work.rename(folder)
        except OSError:
            if not (folder / "manifest.json").is_file():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


@dataclass(frozen=True, slots=True)
class _Texts:
    """Queries or passages: the table of ids, and each row's state over all languages."""

    what: str
    table: IdTable
    states: np.ndarray

    def find(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and states of hashed ids."""
        import numpy as np

        rows = self.table.rows(hashes)
        states: np.ndarray = np.full(len(rows), _UNKNOWN, np.int8)
        states[rows >= 0] = self.states[rows[rows >= 0]]
        return rows, states


class _Preparation:
    """One making of a folder."""

    def __init__(
        self, source: ExampleSource, folder: Path, paths: Mapping[str, Path], progress: Progress
    ) -> None:
        self._source, self._folder, self._paths = source, folder, paths
        self._progress = progress
        self._findings = Findings()
        self._files: dict[str, dict[str, Any]] = {}

    def facts(self, codes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Scan everything and write the arrays; what the manifest says of them."""
        queries, passages = (self._texts(what, codes[what]) for what in ("queries", "passages"))
        given = resolve(self._source.examples)
        plain = self._plain("examples", given)
        size, read = plain.stat().st_size, 0
        with _Writer(self._folder) as writer:
            for batch in read_batches(plain, given, self._findings):
                read = batch.last
                self._add(writer, given, batch, queries, passages)
                self._progress("examples: bytes read", batch.read, size)
                if writer.lines == self._source.max_examples:
                    break
        if not writer.lines:
            remedy = "a line needs an existing query and nway usable passages"
            raise InputError(self._findings.problems(remedy))
        if plain != given:
            plain.unlink()
        report = Report.of(self._findings, read, writer.lines, writer.pairs)
        return {
            "lines": writer.lines,
            "scored": writer.scored,
            "files": self._files,
            "report": asdict(report),
            **self._source.model_dump(include={"nway", "choice"}),
        }

    def _plain(self, name: str, path: Path) -> Path:
        """The file itself, or its unpacked copy in the folder."""
        with open_binary(path) as handle:
            if not isinstance(handle, gzip.GzipFile):
                return path
        plain = self._folder / f"{name}.txt"
        with open_binary(path) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        return plain

    def _texts(self, what: str, codes: Sequence[str]) -> _Texts:
        """Scan the files of all languages; rows are those of the first."""
        import numpy as np

        table: IdTable | None = None
        for done, code in enumerate(codes):
            name = f"{what}.{code}"
            given = self._paths[name]
            self._progress(f"{what}: files scanned", done, len(codes))
            plain = self._plain(name, given)
            kept = plain.name if plain != given else str(plain)
            self._files[name] = {"path": kept, "bytes": plain.stat().st_size}
            scanned = scan(plain, given, self._findings)
            own = IdTable(plain, given, scanned, self._findings)
            self._findings.note(f"empty text in {what}", given, scanned.lines[scanned.blank])
            if table is None:
                table = own
                states: np.ndarray = np.full(len(table), _THERE, np.int8)
            rows = table.rows(scanned.hashes[own.first])
            there = rows >= 0
            offsets: np.ndarray = np.full(len(table), -1, np.int64)
            offsets[rows[there]] = scanned.offsets[own.first[there]]
            states[rows[there & scanned.blank[own.first]]] = _BLANK
            states[offsets < 0] = _MISSING
            offsets.tofile(self._folder / f"{name}.offsets.bin")
        if table is None:
            raise InputError(Problem(what, None, "no language", "name one"))
        return _Texts(what, table, states)

    def _add(
        self, writer: _Writer, given: Path, batch: Batch, queries: _Texts, passages: _Texts
    ) -> None:
        """Keep the usable pairs of the usable lines, note the others."""
        import numpy as np

        note = self._findings.note
        query_rows, query_states = queries.find(batch.queries.hashes())
        rows, states = passages.find(batch.passages.hashes())
        line_of: np.ndarray = np.repeat(np.arange(len(batch.lines)), np.diff(batch.starts))
        for state, what in _STATES.items():
            bad = np.flatnonzero(query_states == state)
            note(f"query {what}", given, batch.lines[bad], _spell(batch.queries, bad))
            bad = np.flatnonzero(states == state)
            note(f"passage {what}", given, batch.lines[line_of[bad]], _spell(batch.passages, bad))
        good = states == _THERE
        if batch.scores is not None:
            numeric = np.isfinite(batch.scores)
            bad = np.flatnonzero(~numeric)
            what = "score is not a finite number"
            note(what, given, batch.lines[line_of[bad]], _spell(batch.passages, bad))
            good &= numeric
        keys = line_of * len(passages.table) + rows
        known = np.flatnonzero(rows >= 0)
        again: np.ndarray = np.delete(known, np.unique(keys[known], return_index=True)[1])
        what = "passage twice in a line"
        note(what, given, batch.lines[line_of[again]], _spell(batch.passages, again))
        good[again] = False
        self._keep(writer, given, batch, query_rows, query_states == _THERE, rows, good, line_of)

    def _keep(
        self,
        writer: _Writer,
        given: Path,
        batch: Batch,
        query_rows: np.ndarray,
        asked: np.ndarray,
        rows: np.ndarray,
        good: np.ndarray,
        line_of: np.ndarray,
    ) -> None:
        import numpy as np

        nway = self._source.nway
        counts = np.bincount(line_of[good], minlength=len(batch.lines))
        few = np.flatnonzero(counts < nway)
        self._findings.note(
            f"fewer than {nway} usable passages",
            given,
            batch.lines[few],
            lambda n: f"{counts[few[n]]}",
        )
        used = asked & (counts >= nway)
        if self._source.choice != "random":
            headless = used & ~good[batch.starts[:-1]]
            self._findings.note("first passage unusable", given, batch.lines[headless])
            used &= ~headless
        if (most := self._source.max_examples) is not None:
            used[np.flatnonzero(used)[most - writer.lines :]] = False
        kept = np.flatnonzero(good & used[line_of])
        scores = None if batch.scores is None else batch.scores[kept]
        writer.add(counts[used], query_rows[used], rows[kept], scores)


def _spell(ids: Ids, chosen: np.ndarray) -> Callable[[int], str]:
    return lambda number: repr(ids[int(chosen[number])])


class _Writer:
    """Appends usable lines to the folder's arrays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._open: dict[str, Any] = {}
        self.lines = self.pairs = 0
        self.scored = False

    def __enter__(self) -> Self:
        for name in _TYPES:
            handle = (self._folder / f"{name}.bin").open("wb")
            self._open[name] = self._stack.enter_context(handle)
        self._write("starts", [0])
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if not self.scored:
            (self._folder / "scores.bin").unlink()

    def add(
        self,
        counts: np.ndarray,
        queries: np.ndarray,
        passages: np.ndarray,
        scores: np.ndarray | None,
    ) -> None:
        """Add lines: pairs a line, query rows, and the rows and scores of all pairs."""
        import numpy as np

        self._write("starts", self.pairs + np.cumsum(counts))
        self._write("queries", queries)
        self._write("passages", passages)
        if scores is not None:
            self._write("scores", scores)
            self.scored = True
        self.lines += len(counts)
        self.pairs += len(passages)

    def _write(self, name: str, values: Any) -> None:
        import numpy as np

        self._open[name].write(np.asarray(values, _TYPES[name]).tobytes())
