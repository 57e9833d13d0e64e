"""From ranked passages to ranked documents: the best passage counts (MaxP, Dai & Callan 2019)."""

from __future__ import annotations

from collections.abc import Mapping

from polyray.errors import InputError, Problem
from polyray.runs import Run

__all__ = ["max_passage"]


def max_passage(run: Run, documents: Mapping[str, str]) -> Run:
    """The run over documents whose scores are those of their best passages.

    ``documents`` maps every passage id to its document id: the map that was stored when the
    passages were cut, never the id cut at a delimiter. Raises
    :class:`~polyray.errors.InputError` listing the passages that it lacks.

    >>> run = Run({"q": [("a#0", 1.0), ("b#0", 2.0), ("a#1", 3.0)]})
    >>> max_passage(run, {"a#0": "a", "a#1": "a", "b#0": "b"})["q"]
    [Hit(doc_id='a', score=3.0), Hit(doc_id='b', score=2.0)]
    """
    unknown = sorted({hit.doc_id for hits in run.values() for hit in hits} - documents.keys())
    if unknown:
        raise InputError(
            [Problem("run", None, f"passage {name} has no document") for name in unknown]
        )
    ranked: dict[str, dict[str, float]] = {}
    for query, hits in run.items():
        best = ranked.setdefault(query, {})
        for hit in hits:
            best.setdefault(documents[hit.doc_id], hit.score)
    return Run({query: best.items() for query, best in ranked.items()}, run.tag)
