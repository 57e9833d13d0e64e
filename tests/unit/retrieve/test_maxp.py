"""Passages to documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyray.collections.qrels import read_qrels
from polyray.errors import InputError
from polyray.evaluation.measures import evaluate
from polyray.retrieve.maxp import max_passage
from polyray.runs import Run


def test_the_best_passage_counts(cases: Path) -> None:
    """Right results: cases/H21_maxp (pytrec_eval), to 1e-6."""
    folder = cases / "H21_maxp"
    expected = json.loads((folder / "expected.json").read_text())
    passages = Run.read(str(folder / "passage_run.txt"))
    ids = [hit.doc_id for hit in passages["1"]]
    run = max_passage(passages, {name: name.rpartition("#")[0] for name in ids})
    assert [[hit.doc_id, hit.score] for hit in run["1"]] == expected["document_run"]
    qrels = read_qrels(str(folder / "qrels.txt"))
    found = evaluate(run, qrels, ["AP@100", "nDCG@20", "P@1"]).per_topic["1"]
    names = {"AP@100": "MAP@100", "nDCG@20": "nDCG@20", "P@1": "P@1"}
    for ours, theirs in names.items():
        assert found[ours] == pytest.approx(expected["metrics"]["1"][theirs], abs=1e-6)


def test_ids_are_mapped_and_never_cut() -> None:
    run = Run({"q": [("a#b#0", 1.0), ("x", 2.0)]})
    found = max_passage(run, {"a#b#0": "a#b", "x": "a"})
    assert [hit.doc_id for hit in found["q"]] == ["a", "a#b"]


def test_unknown_passages_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        max_passage(Run({"q": [("p", 1.0), ("r", 2.0)]}), {})
    assert len(caught.value.problems) == 2
