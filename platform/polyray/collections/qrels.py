"""Judgments: TREC qrels files, BEIR's three-column form, ir_datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from polyray.collections._lines import columns_of, id_problem, lines_of
from polyray.errors import Problems
from polyray.files import atomic_path
from polyray.records import Qrel

__all__ = ["read_qrels", "write_qrels"]

_GRADE = re.compile(r"[+-]?[0-9]{1,9}")
_BEIR_HEADER = ["query-id", "corpus-id", "score"]


def read_qrels(path: str) -> list[Qrel]:
    """Read judgments: four columns ``query iteration document grade`` between spaces or tabs.

    Also BEIR's form (header ``query-id corpus-id score``, three columns) and ``irds:ID``. Raises
    :class:`~polyray.errors.InputError` naming every bad line: wrong number of columns, a grade
    that is not a whole number, a document judged twice for one query.
    """
    if str(path).startswith("irds:"):
        from polyray.collections.irds import irds_qrels

        return irds_qrels(str(path))
    problems = Problems(str(path))
    found: list[Qrel] = []
    seen: dict[tuple[str, str], int] = {}
    width = 4
    for number, line in lines_of(path, problems):
        columns = columns_of(line)
        if not columns:
            continue
        if not found and columns == _BEIR_HEADER:
            width = 3
            continue
        if len(columns) != width:
            names = "query document grade" if width == 3 else "query 0 document grade"
            problems.add(number, f"{len(columns)} columns instead of {width}", f"write: {names}")
            continue
        query, document, grade = columns[0], columns[-2], columns[-1]
        if not _GRADE.fullmatch(grade):
            what = f"the grade {grade!r} is not a whole number"
            problems.add(number, what, "grades are integers; 1 and above is relevant")
            continue
        if (query, document) in seen:
            what = f"query {query}: document {document} is already judged in line"
            problems.add(number, f"{what} {seen[query, document]}", "keep one judgment")
            continue
        seen[query, document] = number
        found.append(Qrel(query, document, int(grade)))
    if not found and not problems:
        problems.add(None, "no judgments in the file", "give a qrels file")
    problems.raise_if_any()
    return found


def write_qrels(path: str | Path, qrels: Iterable[Qrel]) -> None:
    """Write TREC qrels (``query 0 document grade``), atomically."""
    problems = Problems(str(path))
    lines: list[str] = []
    seen: set[tuple[str, str]] = set()
    for qrel in qrels:
        for what in filter(None, map(id_problem, (qrel.query_id, qrel.doc_id))):
            problems.add(None, what)
        if (qrel.query_id, qrel.doc_id) in seen:
            problems.add(None, f"query {qrel.query_id}: document {qrel.doc_id} is judged twice")
        seen.add((qrel.query_id, qrel.doc_id))
        lines.append(f"{qrel.query_id} 0 {qrel.doc_id} {qrel.grade}\n")
    problems.raise_if_any()
    with atomic_path(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
