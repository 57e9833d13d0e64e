"""Candidates: positives first, negatives by rank windows, other positives never among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyray.config import validated
from polyray.errors import ConfigError, InputError
from polyray.runs import Run
from polyray.training.mining import Mining, candidates, mine


def settings(**given: Any) -> Mining:
    systems = [{"kind": "bm25", "name": name} for name in given.pop("names", ["one"])]
    return validated(Mining, {"systems": systems, **given})


def ranked(*ids: str) -> Run:
    return Run({"q": [(name, float(-place)) for place, name in enumerate(ids)]})


def test_windows_count_ranks_with_the_positives_in_them() -> None:
    run = ranked("p1", "a", "p2", "b", "c", "d")
    assert candidates("q", [run], ["p1", "p2"], settings(negatives=9)) == ["a", "b", "c", "d"]
    window = settings(negatives=9, first_rank=3, last_rank=5)
    assert candidates("q", [run], ["p1", "p2"], window) == ["b", "c"]
    assert candidates("other", [run], [], settings()) == []


def test_systems_take_turns_and_a_short_one_leaves_its_turns_to_the_others() -> None:
    runs = [ranked("a", "b", "p", "c", "d", "e"), ranked("b", "x", "a")]
    given = settings(names=["one", "two"], negatives=5)
    assert candidates("q", runs, ["p"], given) == ["a", "b", "c", "x", "d"]


def test_samples_are_fixed_by_seed_query_and_system_alone() -> None:
    run = ranked("p", *(f"n{number:02d}" for number in range(60)))
    drawn = {
        seed: candidates("q", [run], ["p"], settings(choice="sample", negatives=8, seed=seed))
        for seed in range(30)
    }
    again = candidates("q", [run], ["p"], settings(choice="sample", negatives=8, seed=3))
    assert drawn[3] == again
    assert len({tuple(names) for names in drawn.values()}) == 30
    places = [int(name[1:]) for names in drawn.values() for name in names]
    assert 20 < sum(places) / len(places) < 40  # 240 draws around 29.5


def test_one_line_a_positive_and_what_was_left_out(tmp_path: Path) -> None:
    run = Run(
        {
            "two": [("p1", 3.0), ("a", 2.0), ("p2", 1.5), ("b", 1.0)],
            "few": [("p", 2.0), ("a", 1.0)],
            "none": [("p", 1.0)],
            "unjudged": [("a", 1.0)],
        }
    )
    positives = {"two": ["p1", "p2"], "few": ["p"], "none": ["p"]}
    path = tmp_path / "c.jsonl"
    found = mine(list(run), positives, [run], settings(negatives=2), path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [["two", "p1", "a", "b"], ["two", "p2", "a", "b"], ["few", "p", "a"]]
    assert found.facts() == {
        "lines": 3,
        "without_positive": 1,
        "without_positive_ids": ["unjudged"],
        "without_negatives": 1,
        "without_negatives_ids": ["none"],
        "fewer": 1,
        "fewer_ids": ["few"],
    }
    with pytest.raises(InputError, match="no query has both"):
        mine(["none"], positives, [run], settings(), tmp_path / "d.jsonl")
    assert not (tmp_path / "d.jsonl").exists()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="above first_rank"):
        settings(first_rank=5, last_rank=4)
    with pytest.raises(ConfigError, match="same name"):
        settings(names=["one", "one"])
