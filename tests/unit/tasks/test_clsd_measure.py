"""P@1: strict hits, ties that are exact, and pairs without distractors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from polyray.errors import PolyrayError
from tasks.clsd.data import ClsdFile, ClsdRow
from tasks.clsd.measure import (
    Direction,
    Pair,
    PairOutcome,
    directions,
    inner_products,
    judge,
    pairs,
    summary,
)

WAY = Direction("de", "fr")


def outcome(scores: Mapping[str, float]) -> PairOutcome:
    """Judge a pair whose candidates score as given; ``t`` is the true translation."""
    distractors = {name: name for name in scores if name != "t"}
    return judge(Pair("7", WAY, "q", "t", distractors), lambda _query, text: scores[text])


def file(de: tuple[str | None, ...], fr: tuple[str | None, ...]) -> ClsdFile:
    row = ClsdRow("0", 2, {"de": "D", "fr": "F"}, {"de": de, "fr": fr})
    return ClsdFile("x.csv", ("de", "fr"), (row,), 0)


def test_strictly_higher_is_a_hit() -> None:
    found = outcome({"t": 0.9, "a": 0.5, "b": 0.8})
    assert found.hit
    assert (found.best_distractor, found.best_distractor_score) == ("b", 0.8)
    assert (found.row_id, found.direction, found.candidates) == ("7", "de->fr", 3)


def test_a_tie_is_a_miss() -> None:
    found = outcome({"t": 0.8, "a": 0.8, "b": 0.1})
    assert not found.hit
    assert found.tie


def test_lower_is_a_miss_and_no_tie() -> None:
    found = outcome({"t": 0.7, "a": 0.8})
    assert not found.hit
    assert not found.tie


def test_the_first_of_equal_distractors_is_named() -> None:
    assert outcome({"t": 0.9, "a": 0.3, "b": 0.3}).best_distractor == "a"


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(PolyrayError, match="row '7'"):
        outcome({"t": float("nan"), "a": 0.3})


def test_directions_take_query_and_candidates_from_different_languages() -> None:
    data = file(("d1", "d2", "d3", "d4"), ("f1", "f2", "f3", "f4"))
    there, back = directions(data)
    assert (str(there), str(back)) == ("de->fr", "fr->de")
    assert next(pairs(data, there)) == Pair(
        "0", there, "D", "F", {f"fr_adv{n}": f"f{n}" for n in range(1, 5)}
    )
    assert next(pairs(data, back)).query == "F"


def test_missing_distractors_are_left_out() -> None:
    data = file((None,) * 4, (None, "f2", None, "f4"))
    there, back = directions(data)
    assert next(pairs(data, there)).distractors == {"fr_adv2": "f2", "fr_adv4": "f4"}
    assert list(pairs(data, back)) == []


def test_equal_vectors_tie_to_the_last_bit() -> None:
    rng = np.random.default_rng(42)
    texts = ["q", *(f"c{n}" for n in range(7))]
    vectors = rng.normal(size=(8, 383)).astype(np.float32)
    vectors[2:] = vectors[1]
    score = inner_products(texts, vectors)
    assert len({score("q", text) for text in texts[1:]}) == 1


def test_inner_products_are_those_of_numpy() -> None:
    vectors = np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)
    expected = float(vectors[0].astype(np.float64) @ vectors[1].astype(np.float64))
    assert inner_products(["a", "b"], vectors)("a", "b") == pytest.approx(expected, abs=1e-12)


def test_summary_counts() -> None:
    outcomes = [outcome({"t": true, "a": 0.5}) for true in (0.9, 0.5, 0.1, 0.6)]
    assert summary(outcomes) == {"P@1": 0.5, "pairs": 4, "hits": 2, "ties": 1}
    assert summary([])["P@1"] is None
