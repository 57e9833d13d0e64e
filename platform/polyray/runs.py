"""Runs: for every query a ranked list of documents; TREC run files; reciprocal-rank fusion."""

from __future__ import annotations

import math
import operator
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

from polyray.collections._lines import columns_of, id_problem, lines_of
from polyray.errors import ConfigError, InputError, Problem, Problems
from polyray.files import atomic_path, open_binary
from polyray.records import Hit

__all__ = ["Run"]

_Ranked = tuple[list[str], "array[float]"]
_Pairs = tuple[list[str], list[float]]

_BLOCK = 1 << 16
_ODD = re.compile("[\0\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_ODD_BYTES = b"\0\x1c\x1d\x1e\x1f"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Run(Mapping[str, list[Hit]]):
    """A ranking of documents for each query.

    Every list is ordered by score (double precision), then by document id, both descending: the
    order that trec_eval uses. A query may have an empty list; a run file cannot show that.

    >>> run = Run({"q1": [("a", 1.0), ("b", 2.0)]})
    >>> [hit.doc_id for hit in run["q1"]]
    ['b', 'a']

    Raises :class:`~polyray.errors.InputError` for a score that is NaN or infinite and for a
    document that stands twice in one list.
    """

    __slots__ = ("_ranked", "tag")

    def __init__(
        self,
        rankings: Mapping[str, Iterable[Hit | tuple[str, float]]],
        tag: str = "polyray",
    ) -> None:
        columns: dict[str, _Pairs] = {}
        for topic, hits in rankings.items():
            pairs = [(hit.doc_id, hit.score) if isinstance(hit, Hit) else hit for hit in hits]
            columns[topic] = [doc_id for doc_id, _ in pairs], [float(score) for _, score in pairs]
        self.tag, self._ranked = tag, _checked(columns)

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, tuple[list[str], list[float]]], tag: str = "polyray"
    ) -> Run:
        """A run from each query's document ids and their scores, in any order.

        >>> Run.of_columns({"q1": (["a", "b"], [1.0, 2.0])}) == Run({"q1": [("a", 1), ("b", 2)]})
        True

        Quicker than pairs where there are many; raises as the class does.
        """
        return cls._of(_checked(columns), tag)

    @classmethod
    def _of(cls, ranked: dict[str, _Ranked], tag: str) -> Run:
        run = cls({}, tag)
        run._ranked = ranked
        return run

    def __getitem__(self, topic: str) -> list[Hit]:
        return list(map(Hit, *self._ranked[topic]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranked)

    def __len__(self) -> int:
        return len(self._ranked)

    def __contains__(self, topic: object) -> bool:
        return topic in self._ranked

    def __eq__(self, other: object) -> bool:
        """Equal rankings and scores; the tag does not matter."""
        return self._ranked == other._ranked if isinstance(other, Run) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Run({len(self)} queries, {self.size} results, tag={self.tag!r})"

    @property
    def rankings(self) -> dict[str, list[Hit]]:
        """Query id -> hits, best first (built anew at each call)."""
        return {topic: self[topic] for topic in self._ranked}

    @property
    def size(self) -> int:
        """Number of results over all queries."""
        return sum(len(docs) for docs, _ in self._ranked.values())

    def ranked(self, topic: str) -> tuple[Sequence[str], Sequence[float]]:
        """Document ids and their scores, best first, without a copy: do not change them."""
        return self._ranked[topic]

    def top(self, k: int) -> Run:
        """The first ``k`` results of every query."""
        if k < 0:
            raise ConfigError(f"k is {k}; it must not be negative")
        cut = {topic: (docs[:k], scores[:k]) for topic, (docs, scores) in self._ranked.items()}
        return Run._of(cut, self.tag)

    def write(self, path: str | Path) -> None:
        """Write a TREC run file (query, Q0, document, rank from 1, score, tag), atomically.

        Scores are written so that reading them gives the same number. Raises
        :class:`~polyray.errors.InputError` for ids that the format cannot hold.
        """
        problems = Problems(str(path))
        for kind, names in (("query", self._ranked), ("tag", (self.tag,))):
            for name in names:
                if what := id_problem(name):
                    problems.add(None, f"{kind}: {what}")
        for docs, _ in self._ranked.values():
            for what in filter(None, map(id_problem, docs)):
                problems.add(None, f"document: {what}")
        problems.raise_if_any()
        with (
            atomic_path(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as out,
        ):
            for topic, (docs, scores) in self._ranked.items():
                out.writelines(
                    f"{topic} Q0 {doc} {rank} {score!r} {self.tag}\n"
                    for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
                )

    @classmethod
    def read(cls, path: str | Path, *, duplicates: Literal["refuse", "best"] = "refuse") -> Run:
        """Read a TREC run file, plain or gzip, columns between spaces or tabs.

        The order of lines and the rank column do not matter; blank lines are passed over.
        ``duplicates="best"`` keeps the best score of a document that a query lists twice.
        Raises :class:`~polyray.errors.InputError` naming every bad line: not six columns, a score
        that is not a finite number, a document twice (both lines).
        """
        if duplicates not in ("refuse", "best"):
            raise ConfigError(f"duplicates is {duplicates!r}; allowed: 'refuse', 'best'")
        found = _read_blocks(path)
        if found is None:
            found = _read_lines(path, keep_best=duplicates == "best")
        topics, tag = found
        return cls._of({topic: _ranked(*pairs) for topic, pairs in topics.items()}, tag)

    @staticmethod
    def fuse(runs: Sequence[Run], k: int = 60, depth: int | None = None) -> Run:
        """Reciprocal-rank fusion: a document's score is the sum of ``1 / (k + rank)``.

        Cormack, Clarke and Büttcher (SIGIR 2009), ranks from 1, ``k = 60`` as there. ``depth``
        limits how many results of each run take part; ``None`` takes all. A query that only some
        of the runs hold is fused from those.
        """
        if not runs:
            raise ConfigError("fusion needs at least one run")
        if k < 0 or (depth is not None and depth < 1):
            raise ConfigError(f"fusion: k ({k}) must be 0 or more, depth ({depth}) 1 or more")
        fused: dict[str, _Ranked] = {}
        for topic in dict.fromkeys(topic for run in runs for topic in run):
            parts: dict[str, list[float]] = {}
            for run in runs:
                docs = run._ranked[topic][0][:depth] if topic in run else []
                for rank, doc in enumerate(docs, 1):
                    parts.setdefault(doc, []).append(1.0 / (k + rank))
            fused[topic] = _ranked(list(parts), [math.fsum(part) for part in parts.values()])
        return Run._of(fused, "rrf")


def _checked(columns: Mapping[str, _Pairs]) -> dict[str, _Ranked]:
    """Ranked lists out of columns; raises for bad scores and repeated documents."""
    problems = Problems("run")
    for topic, (docs, scores) in columns.items():
        if not all(map(math.isfinite, scores)):
            problems.add(None, f"query {topic}: a score is not a finite number")
        for doc_id in _repeated(docs):
            problems.add(None, f"query {topic}: document {doc_id} stands twice")
    problems.raise_if_any()
    return {topic: _ranked(docs, scores) for topic, (docs, scores) in columns.items()}


def _repeated(docs: list[str]) -> list[str]:
    if len(set(docs)) == len(docs):
        return []
    seen: set[str] = set()
    return list(dict.fromkeys(doc for doc in docs if doc in seen or seen.add(doc)))  # type: ignore[func-returns-value]


def _ranked(docs: list[str], scores: list[float]) -> _Ranked:
    if not all(map(operator.gt, scores, scores[1:])):
        pairs = sorted(zip(scores, docs, strict=True), reverse=True)
        docs, scores = [doc for _, doc in pairs], [score for score, _ in pairs]
    return docs, array("d", scores)


def _read_blocks(path: str | Path) -> tuple[dict[str, _Pairs], str] | None:
    """Read a clean file in blocks; ``None`` where something needs the careful reader."""
    topics: dict[str, _Pairs] = {}
    tag = ""
    with open_binary(path) as handle:
        rest = b""
        while block := handle.read(_BLOCK):
            cut = block.rfind(b"\n") + 1
            piece, rest = rest + block[:cut], block[cut:] if cut else rest + block
            if len(rest) > _BLOCK:
                return None
            if cut and not _take(piece, topics):
                return None
            tag = tag or _tag_of(piece)
        if rest and not _take(rest + b"\n", topics):
            return None
        tag = tag or _tag_of(rest)
    if not topics or any(len(set(docs)) != len(docs) for docs, _ in topics.values()):
        return None
    return topics, tag


def _tag_of(lines: bytes) -> str:
    columns = lines[: lines.find(b"\n")].split()
    return columns[5].decode() if len(columns) == 6 else ""


def _take(block: bytes, topics: dict[str, _Pairs]) -> bool:
    """Add whole lines to the topics; False, with nothing added, if any needs a closer look."""
    if block.isascii():
        if len(block.translate(None, _ODD_BYTES)) != len(block):
            return False
        text = block.decode("ascii")
    else:
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError:
            return False
        if _ODD.search(text):
            return False
    # A mark after every line: all lines have six columns if and only if each seventh token is one.
    tokens = text.replace("\n", " \0 ").split()
    count = text.count("\n")
    if len(tokens) != 7 * count or tokens[6::7].count("\0") != count:
        return False
    numbers = tokens[4::7]
    joined = "".join(numbers)
    if "_" in joined or not joined.isascii():
        return False
    try:
        scores = list(map(float, numbers))
    except ValueError:
        return False
    if not math.isfinite(sum(scores)):
        return False
    documents = tokens[2::7]
    start = 0
    for topic, same in groupby(tokens[0::7]):
        end = start + len(list(same))
        docs, values = topics.setdefault(topic, ([], []))
        docs += documents[start:end]
        values += scores[start:end]
        start = end
    return True


def _read_lines(path: str | Path, keep_best: bool) -> tuple[dict[str, _Pairs], str]:
    """The careful reader: names every bad line."""
    problems = Problems(str(path))
    first: dict[str, dict[str, tuple[float, int]]] = {}
    tag = ""
    for number, line in lines_of(path, problems):
        columns = columns_of(line)
        if not columns:
            continue
        if len(columns) != 6:
            what = f"{len(columns)} columns instead of six"
            problems.add(number, what, "write: query Q0 document rank score tag")
            continue
        topic, _, doc, _, text, tag_here = columns
        score = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(score):
            what = f"the score {text!r} is not a finite number"
            problems.add(number, what, "write a decimal number")
            continue
        tag = tag or tag_here
        docs = first.setdefault(topic, {})
        if doc not in docs:
            docs[doc] = (score, number)
        elif keep_best:
            docs[doc] = max(docs[doc], (score, number), key=lambda pair: pair[0])
        else:
            what = (
                f"query {topic}: document {doc} stands twice, in lines {docs[doc][1]} and {number}"
            )
            problems.add(number, what, "keep one of them, or say duplicates best")
    problems.raise_if_any()
    if not first:
        raise InputError(Problem(str(path), None, "no results in the file", "give a run file"))
    return {
        topic: (list(docs), [score for score, _ in docs.values()]) for topic, docs in first.items()
    }, tag
