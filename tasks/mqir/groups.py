"""Systems that differ in their seed alone, taken together: means, spread, and paired tests."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polyray.evaluation.tables import Cell, Table

if TYPE_CHECKING:
    import numpy as np

    from tasks.mqir.run import Score

__all__ = ["group_table", "paired_tests"]

Groups = Mapping[str, Sequence[str]]
VARIANTS = ("native", "mixed", "english")


def group_table(scores: Sequence[Score], groups: Groups, measure: str, caption: str) -> Table:
    """One row a variant and group: the seeds' mean in each language, their mean and its spread.

    ``±`` is the standard deviation of the seeds' means over the languages (n - 1); a group of one
    has none.
    """
    values = _values(scores, measure)
    shown = list(dict.fromkeys(code for _, code, variant in values if variant != "english"))
    rows: list[list[Cell]] = []
    for documents, variant in _targets(scores):
        here = {
            code: of
            for (where, code, what), of in values.items()
            if (where, what) == (documents, variant)
        }
        for group, members in groups.items():
            each = {code: statistics.mean(of[m] for m in members) for code, of in here.items()}
            means = [statistics.mean(of[m] for of in here.values()) for m in members]
            spread = statistics.stdev(means) if len(means) > 1 else None
            row: list[Cell] = [documents, variant, group, *map(each.get, shown)]
            rows.append([*row, statistics.mean(means), spread])
    return Table(["documents", "query", "group", *shown, "mean", "±"], rows, caption)


def paired_tests(scores: Sequence[Score], groups: Groups, measure: str, caption: str) -> Table:
    """Two-sided paired t-tests of every two groups, by variant, over topics.

    A topic's value is the mean over the languages and the group's seeds: what the languages of one
    topic share does not count several times. Topics without a relevant document are left out.
    ``p (Holm)`` is Holm's correction for all tests of the table.
    """
    from scipy.stats import ttest_rel

    rows: list[list[Cell]] = []
    found: list[float] = []
    for documents, variant in _targets(scores):
        topics = {n: _per_topic(scores, m, measure, documents, variant) for n, m in groups.items()}
        for first, second in itertools.combinations(groups, 2):
            a, b = topics[first], topics[second]
            found.append(float(ttest_rel(a, b).pvalue) if (a != b).any() else 1.0)
            difference = float((a - b).mean())
            rows.append([documents, variant, f"{first} - {second}", difference, len(a)])
    for row, p, corrected in zip(rows, found, _holm(found), strict=True):
        row += [p, corrected]
    columns = ["documents", "query", "groups", "difference", "pairs", "p", "p (Holm)"]
    return Table(columns, rows, caption, decimals={"p": 6, "p (Holm)": 6})


def _targets(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Documents (``en`` or ``native``) and variants that were scored, in the order of tables."""
    found = {(_where(score), score.condition.variant) for score in scores}
    return sorted(found, key=lambda pair: (pair[0] != "en", VARIANTS.index(pair[1])))


def _where(score: Score) -> str:
    return "en" if score.condition.documents == "en" else "native"


def _values(scores: Sequence[Score], measure: str) -> dict[tuple[str, str, str], dict[str, float]]:
    """Value of a system by (documents, language, variant)."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for score in scores:
        key = (_where(score), score.condition.language, score.condition.variant)
        found.setdefault(key, {})[score.system] = score.evaluation.measures[measure]
    return found


def _per_topic(
    scores: Sequence[Score], members: Sequence[str], measure: str, documents: str, variant: str
) -> np.ndarray:
    """float64 ``[topics]``, by topic id: means over the members and the languages."""
    import numpy as np

    values: dict[str, list[float]] = {}
    for score in scores:
        wanted = score.system in members and score.condition.variant == variant
        if wanted and _where(score) == documents:
            without = {*score.evaluation.topics_without_relevant}
            for topic, row in score.evaluation.per_topic.items():
                if topic not in without:
                    values.setdefault(topic, []).append(row[measure])
    return np.asarray([np.mean(values[topic]) for topic in sorted(values)], np.float64)


def _holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: each p by how many hypotheses are left, never falling."""
    order = sorted(range(len(values)), key=lambda n: values[n])
    corrected, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, values[place] * (len(values) - rank)))
        corrected[place] = highest
    return corrected
