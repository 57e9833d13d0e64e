"""What people say of mixed queries: ratings and preferences from CSV, and how far they agree.

Ratings: ``queries,language,query_id,annotator,accuracy,fluency,realism``, whole numbers from 1 to
3 (MiLQ, appendices A.4 and A.5). Preferences: ``queries,language,query_id,annotator,native,mixed,
english``, 1 for each formulation that the annotator prefers (several may be), else 0. ``queries``
is the name that the config gives the query set. An empty cell is a judgment not given.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from polyray.errors import Problems
from polyray.files import open_text

__all__ = [
    "CRITERIA",
    "FORMULATIONS",
    "Judgment",
    "QueryKey",
    "mean_ratings",
    "preference_summary",
    "rating_summary",
    "read_preferences",
    "read_ratings",
]

CRITERIA = ("accuracy", "fluency", "realism")
FORMULATIONS = ("native", "mixed", "english")
_IDS = ("queries", "language", "query_id", "annotator")


class QueryKey(NamedTuple):
    """A mixed query: the set's name, the native language and the query's id."""

    queries: str
    language: str
    query_id: str


class Judgment(NamedTuple):
    """What one annotator says of one query, by criterion or formulation."""

    query: QueryKey
    annotator: str
    values: dict[str, int]
    line: int


def read_ratings(path: str | Path) -> list[Judgment]:
    """Read ratings; raises :class:`~polyray.errors.InputError` naming every bad line."""
    return _read(path, CRITERIA, ("1", "2", "3"))


def read_preferences(path: str | Path) -> list[Judgment]:
    """Read preferences; raises :class:`~polyray.errors.InputError` naming every bad line."""
    return _read(path, FORMULATIONS, ("0", "1"))


def _read(path: str | Path, names: Sequence[str], allowed: Sequence[str]) -> list[Judgment]:
    problems = Problems(str(path))
    reader = csv.reader((f"{text}\n" for _, text in open_text(path)), strict=True)
    wanted = [*_IDS, *names]
    found: list[Judgment] = []
    seen: dict[tuple[QueryKey, str], int] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) != sorted(wanted):
            problems.add(1, f"columns {', '.join(header)}", f"needed: {', '.join(wanted)}")
            problems.raise_if_any()
        for cells in reader:
            line = reader.line_num
            if not any(cells):
                continue
            if len(cells) != len(header):
                problems.add(line, f"{len(cells)} cells where the header has {len(header)}")
                continue
            row = dict(zip(header, map(str.strip, cells), strict=True))
            judgment = _judgment(row, names, allowed, line, problems)
            key = (judgment.query, judgment.annotator)
            if key in seen:
                problems.add(line, f"the annotator's judgment of line {seen[key]} stands again")
            seen.setdefault(key, line)
            found.append(judgment)
    except csv.Error as error:
        problems.add(reader.line_num, f"not CSV: {error}", "quote cells by RFC 4180")
    if not found and not problems:
        problems.add(None, "no judgments")
    problems.raise_if_any()
    return found


def _judgment(
    row: Mapping[str, str],
    names: Sequence[str],
    allowed: Sequence[str],
    line: int,
    problems: Problems,
) -> Judgment:
    for name in _IDS:
        if not row[name]:
            problems.add(line, f"{name} is empty")
    values: dict[str, int] = {}
    for name in names:
        if row[name] in allowed:
            values[name] = int(row[name])
        elif row[name]:
            problems.add(line, f"{name} {row[name]!r}", f"allowed: {', '.join(allowed)}")
    query = QueryKey(row["queries"], row["language"], row["query_id"])
    return Judgment(query, row["annotator"], values, line)


def mean_ratings(judgments: Iterable[Judgment]) -> dict[QueryKey, dict[str, float]]:
    """Each query's mean over its annotators, by criterion; a criterion nobody rated is absent."""
    grouped: dict[QueryKey, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for judgment in judgments:
        for name, value in judgment.values.items():
            grouped[judgment.query][name].append(value)
    return {
        query: {name: sum(values) / len(values) for name, values in own.items()}
        for query, own in grouped.items()
    }


def rating_summary(judgments: Sequence[Judgment]) -> dict[str, dict[str, Any]]:
    """By criterion: the mean over queries of their mean over annotators, and the agreement.

    ``mean`` (1..3), ``queries``, ``annotators``, ``majority`` (share of the queries with two or
    more ratings where more than half of them are the same) and ``alpha`` (Krippendorff's, ordinal;
    None where it is not defined).
    """
    means = mean_ratings(judgments)
    found: dict[str, dict[str, Any]] = {}
    for name in CRITERIA:
        values = [own[name] for own in means.values() if name in own]
        if values:
            rated = [judgment for judgment in judgments if name in judgment.values]
            found[name] = {
                "mean": sum(values) / len(values),
                "queries": len(values),
                "annotators": len({judgment.annotator for judgment in rated}),
                "majority": _majority(rated, name),
                "alpha": krippendorff_alpha(rated, name, "ordinal"),
            }
    return found


def _majority(judgments: Iterable[Judgment], name: str) -> float | None:
    given: dict[QueryKey, Counter[int]] = defaultdict(Counter)
    for judgment in judgments:
        given[judgment.query][judgment.values[name]] += 1
    several = [counts for counts in given.values() if counts.total() > 1]
    agreed = sum(2 * max(counts.values()) > counts.total() for counts in several)
    return agreed / len(several) if several else None


def preference_summary(judgments: Sequence[Judgment]) -> dict[str, Any]:
    """Votes for each formulation, as table 2 of the MiLQ paper has them.

    A query counts as agreed where some formulation has the vote of more than half of the
    annotators who judged it (2 of 3); a query that one person alone judged counts neither way, and
    an empty cell is no judgment. ``agreed``: their share of the queries with two or more;
    ``votes``: mean votes by formulation over them (0..annotators; None without any), ``votes_all``
    over all queries; ``queries``; ``annotators`` (the most that a query has); ``alpha`` by
    formulation (Krippendorff's, nominal).
    """
    given: dict[QueryKey, dict[str, list[int]]] = defaultdict(dict)
    people: dict[QueryKey, int] = Counter()
    for judgment in judgments:
        people[judgment.query] += bool(judgment.values)
        for name, value in judgment.values.items():
            given[judgment.query].setdefault(name, []).append(value)
    several = [own for own in given.values() if max(map(len, own.values())) > 1]
    agreed = [
        own for own in several if any(len(v) > 1 and 2 * sum(v) > len(v) for v in own.values())
    ]
    return {
        "queries": len(given),
        "annotators": max(people.values(), default=0),
        "agreed": len(agreed) / len(several) if several else None,
        "votes": _mean_votes(agreed),
        "votes_all": _mean_votes(list(given.values())),
        "alpha": {
            name: krippendorff_alpha([j for j in judgments if name in j.values], name, "nominal")
            for name in FORMULATIONS
        },
    }


def _mean_votes(given: Sequence[Mapping[str, list[int]]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in FORMULATIONS:
        votes = [sum(own[name]) for own in given if name in own]
        found[name] = sum(votes) / len(votes) if votes else None
    return found


def krippendorff_alpha(
    judgments: Iterable[Judgment], name: str, level: Literal["nominal", "ordinal"]
) -> float | None:
    """Krippendorff's alpha of one criterion; None without two annotators or two values."""
    import krippendorff
    import numpy as np

    given = {(j.annotator, j.query): j.values[name] for j in judgments}
    annotators = sorted({annotator for annotator, _ in given})
    queries = sorted({query for _, query in given})
    if len(annotators) < 2 or len(set(given.values())) < 2:
        return None
    rows = [[given.get((a, q), np.nan) for q in queries] for a in annotators]
    data = np.array(rows, dtype=float)
    pairable = data[:, (~np.isnan(data)).sum(axis=0) > 1]
    if len(set(pairable[~np.isnan(pairable)])) < 2:
        return None
    return float(krippendorff.alpha(reliability_data=data, level_of_measurement=level))
