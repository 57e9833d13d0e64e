"""How the benchmarks compare: turns, medians, ratios, targets, merging of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import merged
from benchmarks._measure import Pairs, interleaved, row
from polyray.files import write_json


def test_both_take_turns_and_the_first_one_alternates() -> None:
    calls: list[str] = []

    def named(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    pairs = interleaved(lambda: named("ours"), lambda: named("other"), 3)
    assert calls == ["ours", "other", "ours", "other", "other", "ours", "ours", "other"]
    assert pairs == Pairs(ours=(3.0, 6.0, 7.0), other=(4.0, 5.0, 8.0))
    assert interleaved(lambda: 1.0, lambda: 2.0, 1, warm_up=False) == Pairs((1.0,), (2.0,))


def test_ratio_of_medians_for_seconds_and_for_rates() -> None:
    """By hand: medians 2 and 3; ratios of the repeats 3, 1.5 and 0.5."""
    pairs = Pairs(ours=(1.0, 2.0, 8.0), other=(3.0, 3.0, 4.0))
    made = row("s", pairs, 1.2, other="x", size=7)
    assert (made["ours"], made["other"], made["ratio"], made["met"]) == (2.0, 3.0, 1.5, True)
    assert made["settings"]["spread"] == [0.5, 3.0]
    assert made["settings"]["repeats"] == 3
    assert made["settings"]["ours_all"] == [1.0, 2.0, 8.0]
    assert made["settings"]["size"] == 7
    rate = row("s", pairs, 0.95, other="x", unit="passages/s")
    assert rate["ratio"] == pytest.approx(2 / 3, abs=1e-3)
    assert rate["settings"]["spread"] == [0.333, 2.0]
    assert rate["met"] is False
    assert row("s", pairs, None, other="x")["met"] is None


def test_a_ratio_just_under_its_target_is_not_rounded_up_to_it() -> None:
    made = row("s", Pairs((1.0,), (0.9496,)), 0.95, other="x")
    assert made["ratio"] == 0.95
    assert made["met"] is False


def test_rows_of_stages_that_were_not_measured_stay(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert merged(path, [{"stage": "a", "ratio": 1}]) == [{"stage": "a", "ratio": 1}]
    write_json(path, [{"stage": "a", "ratio": 1}, {"stage": "b", "ratio": 2}])
    found = merged(path, [{"stage": "a", "ratio": 3}])
    assert found == [{"stage": "b", "ratio": 2}, {"stage": "a", "ratio": 3}]
