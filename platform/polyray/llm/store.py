"""The durable store of LLM answers: one SQLite file, one writer.

An answer is on disk before anybody sees it. Before a call goes out it is noted as *sent*; a call
that is still *sent* when the store is opened went out in a run that was killed, may have been
paid, and counts against the budget. The file belongs on a local disk (SQLite's write-ahead log
does not work over a network).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from polyray.errors import InputError, PolyrayError, Problem
from polyray.llm.outcomes import storable

__all__ = ["Answer", "Ended", "Sent", "Spent", "Store", "Usage"]

_VERSION = 1
_TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, identity TEXT NOT NULL, whole INTEGER NOT NULL DEFAULT 0,
    started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, ended TEXT);
CREATE TABLE requests (base TEXT PRIMARY KEY, request TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
    key TEXT PRIMARY KEY, base TEXT NOT NULL, retake INTEGER NOT NULL, run INTEGER NOT NULL,
    content TEXT, finish_reason TEXT, refusal TEXT,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, counted INTEGER NOT NULL,
    usd REAL, seconds REAL NOT NULL, made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX answers_of ON answers (base, retake);
CREATE TABLE calls (
    call INTEGER PRIMARY KEY, key TEXT NOT NULL, base TEXT NOT NULL, run INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', status INTEGER,
    usd REAL NOT NULL, perhaps_paid INTEGER NOT NULL DEFAULT 1, sent REAL NOT NULL);
CREATE INDEX calls_of ON calls (base);
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came. ``counted`` is false where the server gave no token counts and they
    are estimated upwards; ``usd`` is ``None`` where the model has no price."""

    key: str
    base: str
    retake: int
    run: int
    content: str | None
    finish_reason: str | None
    refusal: str | None
    input_tokens: int
    output_tokens: int
    counted: bool
    usd: float | None
    seconds: float


_COLUMNS = tuple(field.name for field in fields(Answer))


@dataclass(frozen=True, slots=True)
class Sent:
    """A call about to go out; ``usd`` is the most that it can cost."""

    call: int
    key: str
    base: str
    usd: float
    sent: float


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: ``state`` is ``answered`` or ``failed``."""

    call: int
    state: str
    reason: str = ""
    status: int | None = None
    perhaps_paid: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """What a store has cost: known from answers, and at most for calls without an answer."""

    usd: float
    usd_unanswered: float
    calls: int
    unanswered: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What some questions have taken in all runs: calls, answers, tokens, US dollars.

    ``usd_unanswered`` is the most that calls without an answer may have cost. Answers of a model
    without a price count no dollars.
    """

    calls: int = 0
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    usd_unanswered: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


Prices = Mapping[str, tuple[float, float]]
"""US dollars a million tokens of input and of output, by model."""


class Store:
    """An open store; use it as a context manager. A second writer is refused.

    Raises :class:`~polyray.errors.InputError` for a file that is no store, or damaged, and
    :class:`~polyray.errors.PolyrayError` where another process holds it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.path)
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._lock.close()
            raise _damaged(self.path, error) from None
        self._next_call = 1 + int(self._one("SELECT coalesce(max(call), 0) FROM calls"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let go of it."""
        self._db.close()
        self._lock.close()

    def _prepare(self) -> None:
        version = int(self._one("PRAGMA user_version"))
        known = int(self._one("SELECT count(*) FROM sqlite_master"))
        if version not in (0, _VERSION) or (version == 0 and known):
            raise sqlite3.DatabaseError("made by something else, or by another version")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        if not version:
            self._db.executescript(f"BEGIN;{_TABLES}PRAGMA user_version={_VERSION};COMMIT;")

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        return self._db.execute(query, values).fetchone()[0]

    def start_run(self, identity: str) -> int:
        """The number of the run that asks what ``identity`` names.

        It is the latest run of that identity where that one did not get to its end, else a new
        one.
        """
        row = self._db.execute(
            "SELECT run, whole FROM runs WHERE identity = ? ORDER BY run DESC LIMIT 1", [identity]
        ).fetchone()
        if row is not None and not row[1]:
            return int(row[0])
        with self._transaction():
            made = self._db.execute("INSERT INTO runs (identity) VALUES (?)", [identity])
        return int(made.lastrowid or 0)

    def end_run(self, run: int) -> None:
        """Note that a run got to its end."""
        with self._transaction():
            self._db.execute(
                "UPDATE runs SET whole = 1, ended = CURRENT_TIMESTAMP WHERE run = ?", [run]
            )

    def new_calls(self, count: int) -> range:
        """Numbers for so many calls, never used before."""
        first = self._next_call
        self._next_call += count
        return range(first, self._next_call)

    def commit(
        self,
        *,
        answers: Iterable[Answer] = (),
        ended: Iterable[Ended] = (),
        sent: Iterable[Sent] = (),
        requests: Iterable[tuple[str, str]] = (),
        run: int = 0,
    ) -> None:
        """Write all of it in one transaction; on return it is on the disk.

        Raises :class:`~polyray.errors.PolyrayError` where it cannot be written.
        """
        try:
            with self._transaction():
                self._write(answers, ended, sent, requests, run)
        except sqlite3.Error as error:
            raise PolyrayError(f"{self.path}: answers cannot be written: {error}") from error

    def _write(
        self,
        answers: Iterable[Answer],
        ended: Iterable[Ended],
        sent: Iterable[Sent],
        requests: Iterable[tuple[str, str]],
        run: int,
    ) -> None:
        self._db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?)", requests)
        self._db.executemany(
            f"INSERT OR REPLACE INTO answers ({', '.join(_COLUMNS)}) "
            f"VALUES ({', '.join('?' * len(_COLUMNS))})",
            (
                (
                    *(a.key, a.base, a.retake, a.run),
                    *map(_storable, (a.content, a.finish_reason, a.refusal)),
                    *(a.input_tokens, a.output_tokens, a.counted, a.usd, a.seconds),
                )
                for a in answers
            ),
        )
        self._db.executemany(
            "UPDATE calls SET state = ?, reason = ?, status = ?, perhaps_paid = ? WHERE call = ?",
            ((e.state, e.reason, e.status, e.perhaps_paid, e.call) for e in ended),
        )
        self._db.executemany(
            "INSERT INTO calls (call, key, base, run, state, usd, sent) "
            "VALUES (?, ?, ?, ?, 'sent', ?, ?)",
            ((s.call, s.key, s.base, run, s.usd, s.sent) for s in sent),
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)

    def answers(self, bases: Iterable[str]) -> dict[str, list[Answer]]:
        """The answers to these questions, by question and in the order of their retakes."""
        found: dict[str, list[Answer]] = {}
        query = f"SELECT {', '.join(_COLUMNS)} FROM answers WHERE base IN ({{}}) ORDER BY retake"
        for row in self._in_batches(query, bases):
            values = dict(zip(_COLUMNS, row, strict=True))
            answer = Answer(**{**values, "counted": bool(values["counted"])})
            found.setdefault(answer.base, []).append(answer)
        return found

    def turns(self, bases: Iterable[str]) -> dict[str, int]:
        """How many calls each of these questions has had."""
        query = "SELECT base, count(*) FROM calls WHERE base IN ({}) GROUP BY base"
        return dict(self._in_batches(query, bases))

    def usage(self, bases: Iterable[str], prices: Prices | None = None) -> Usage:
        """What these questions have taken; ``prices`` are for answers that came without one."""
        wanted = list(bases)
        found = Usage()
        query = (
            "SELECT count(*), coalesce(sum(CASE WHEN state != 'answered' AND perhaps_paid "
            "THEN usd END), 0) FROM calls WHERE base IN ({})"
        )
        for calls, at_most in self._in_batches(query, wanted):
            found += Usage(calls=calls, usd_unanswered=float(at_most))
        query = (
            "SELECT json_extract(request, '$.model'), usd IS NULL, count(*), sum(input_tokens), "
            "sum(output_tokens), coalesce(sum(usd), 0) FROM answers JOIN requests USING (base) "
            "WHERE base IN ({}) GROUP BY 1, 2"
        )
        for model, unpriced, count, put_in, got_out, usd in self._in_batches(query, wanted):
            more = _worth((prices or {}).get(model), put_in, got_out) if unpriced else 0.0
            found += Usage(0, count, put_in, got_out, float(usd) + more)
        return found

    def recent(self, endpoint: str, model: str, since: float) -> list[tuple[float, int]]:
        """Calls to a model since a time of the clock: when they went out, tokens if answered."""
        rows = self._db.execute(
            "SELECT c.sent, coalesce(a.input_tokens + a.output_tokens, 0) FROM calls c "
            "JOIN requests r ON r.base = c.base LEFT JOIN answers a ON a.key = c.key "
            "WHERE c.sent >= ? AND json_extract(r.request, '$.endpoint') = ? "
            "AND json_extract(r.request, '$.model') = ? ORDER BY c.sent",
            [since, endpoint, model],
        )
        return [(float(sent), int(tokens)) for sent, tokens in rows]

    def _in_batches(self, query: str, values: Iterable[str]) -> Iterable[Any]:
        wanted = list(values)
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            yield from self._db.execute(query.format(", ".join("?" * len(some))), some)

    def spent(self, prices: Prices | None = None) -> Spent:
        """What all runs on this store have cost; ``prices`` for answers that came without one."""
        usd, put_in, got_out = self._db.execute(
            "SELECT coalesce(sum(usd), 0), coalesce(sum(input_tokens), 0), "
            "coalesce(sum(output_tokens), 0) FROM answers"
        ).fetchone()
        for model, more_in, more_out in self._db.execute(
            "SELECT json_extract(request, '$.model'), sum(input_tokens), sum(output_tokens) "
            "FROM answers JOIN requests USING (base) WHERE usd IS NULL GROUP BY 1"
        ):
            usd += _worth((prices or {}).get(model), more_in, more_out)
        calls = int(self._one("SELECT count(*) FROM calls"))
        unanswered, at_most = self._db.execute(
            "SELECT count(*), coalesce(sum(usd), 0) FROM calls "
            "WHERE state != 'answered' AND perhaps_paid"
        ).fetchone()
        return Spent(float(usd), float(at_most), calls, int(unanswered), put_in, got_out)

    def unanswered(self) -> int:
        """Calls that are noted as sent and have no answer."""
        return int(self._one("SELECT count(*) FROM calls WHERE state = 'sent'"))


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _worth(price: tuple[float, float] | None, put_in: int, got_out: int) -> float:
    return 0.0 if price is None else (put_in * price[0] + got_out * price[1]) / 1_000_000


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _locked(path: Path) -> Any:
    """An open lock file that is this process's alone until it is closed, or the process ends."""
    handle = path.with_name(path.name + ".lock").open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.seek(0)
        holder = handle.read(20).strip()
        handle.close()
        who = f" (process {holder})" if holder else ""
        raise PolyrayError(f"{path}: another job{who} is writing to it; wait or stop it") from None
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def _damaged(path: Path, error: Exception) -> InputError:
    remedy = "move it away to start a new store, or bring back a copy"
    return InputError(Problem(str(path), None, f"no usable answer store: {error}", remedy))
