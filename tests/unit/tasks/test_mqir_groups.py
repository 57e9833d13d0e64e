"""Means over seeds and paired tests of systems that differ in their seed alone."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from polyray.config import load_config
from polyray.errors import ConfigError
from polyray.evaluation.measures import Evaluation
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import Condition
from tasks.mqir.groups import _holm, group_table, paired_tests
from tasks.mqir.run import Score

ROOT = Path(__file__).resolve().parents[3]
GROUPS = {"backbone": ("b",), "mono": ("m1", "m2")}
VALUES = {
    ("b", "de"): (0.2, 0.4, 0.6),
    ("b", "zh"): (0.6, 0.5, 0.1),
    ("m1", "de"): (0.3, 0.5, 0.7),
    ("m1", "zh"): (0.7, 0.9, 0.2),
    ("m2", "de"): (0.5, 0.4, 0.3),
    ("m2", "zh"): (0.8, 0.7, 0.3),
}


def scores(variant: str = "native") -> list[Score]:
    made = []
    for (system, code), values in VALUES.items():
        per_topic = {f"t{n}": {"AP@100": value} for n, value in enumerate(values)}
        per_topic["without"] = {"AP@100": 0.0}
        mean = {"AP@100": statistics.mean(values)}
        evaluation = Evaluation(mean, mean, {}, per_topic, topics_without_relevant=["without"])
        made.append(Score(system, Condition("en", code, variant), evaluation, {}, {}))
    return made


def test_means_and_spread_over_seeds() -> None:
    table = group_table(scores(), GROUPS, "AP@100", "")
    assert table.columns == ["documents", "query", "group", "de", "zh", "mean", "±"]
    backbone, mono = table.rows
    assert backbone[:3] == ["en", "native", "backbone"]
    assert backbone[3:] == [*map(pytest.approx, (0.4, 0.4, 0.4)), None]
    assert mono[:3] == ["en", "native", "mono"]
    assert mono[3:5] == [pytest.approx(0.45), pytest.approx(0.6)]
    # The seeds' means over languages, not all values: (0.5 + 0.6) / 2 and (0.4 + 0.6) / 2.
    assert mono[5:] == [pytest.approx(0.525), pytest.approx(0.05 / 2**0.5)]


def test_english_queries_are_of_no_language_of_the_table() -> None:
    english = [
        replace(score, condition=Condition("en", "en", "english"))
        for score in scores()
        if score.condition.language == "de"
    ]
    table = group_table([*english, *scores()], GROUPS, "AP@100", "")
    assert table.columns == ["documents", "query", "group", "de", "zh", "mean", "±"]
    assert [row[1] for row in table.rows] == ["native", "native", "english", "english"]
    assert table.rows[3][2:] == [
        "mono",
        None,
        None,
        pytest.approx(0.45),
        pytest.approx(0.1 / 2**0.5),
    ]


def test_pairs_are_topics_once_and_those_without_relevant_documents_are_none() -> None:
    """Means over languages and seeds: what the languages share does not count twice."""
    table = paired_tests(scores(), GROUPS, "AP@100", "")
    (row,) = table.rows
    expected = ttest_rel([0.4, 0.45, 0.35], [0.575, 0.625, 0.375])
    assert row[2] == "backbone - mono"
    assert row[3] == pytest.approx(-0.125)
    assert row[4] == 3
    assert row[5:] == [pytest.approx(expected.pvalue), pytest.approx(expected.pvalue)]


def test_equal_groups_do_not_differ() -> None:
    table = paired_tests(scores(), {"a": ("b",), "c": ("b",)}, "AP@100", "")
    assert table.rows[0][3:] == [0.0, 3, 1.0, 1.0]


def test_holm_s_correction() -> None:
    """R's ``p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`` gives 0.03, 0.06, 0.06, 0.02."""
    assert _holm([0.01, 0.04, 0.03, 0.005]) == [
        pytest.approx(value) for value in (0.03, 0.06, 0.06, 0.02)
    ]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("{a: [hash, other]}", "group 'a': there is no system 'other'"),
        ("{a: []}", "group 'a' has no systems"),
    ],
)
def test_groups_of_unknown_systems_are_refused(groups: str, message: str) -> None:
    system = "systems=[{kind: dense, name: hash, model: 'hashing:16'}]"
    with pytest.raises(ConfigError, match=message):
        load_config(ROOT / "configs/quickstart.yaml", [system, f"groups={groups}"], MqirConfig)
