"""Effectiveness of a run against relevance judgments, as trec_eval computes it.

The measures are ir_measures' own objects; it hands the default ones to trec_eval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyray.errors import ConfigError, InputError, Problem
from polyray.records import Qrel

if TYPE_CHECKING:
    from ir_measures import Measure

    from polyray.runs import Run

__all__ = ["DEFAULT_MEASURES", "Evaluation", "evaluate", "parse_measures"]

DEFAULT_MEASURES = ("AP@100", "nDCG@20", "P@1", "R@100")
"""What both studies report: mean average precision, graded gain, first hit, recall."""

_BY_PREFIX = frozenset({"AP", "nDCG", "P", "R", "Success"})
"""Measures that look at the first ``cutoff`` documents only."""


def parse_measures(names: Iterable[str | Measure]) -> list[Measure]:
    """Turn names such as ``AP@100`` into ir_measures' objects, repeats left out.

    ``MAP@100`` is read as ``AP@100``. Raises :class:`~polyray.errors.ConfigError` naming every
    measure that is unknown, incomplete, or not computed by any installed library.
    """
    found: dict[str, Measure] = {}
    wrong: list[str] = []
    for name in names:
        try:
            measure = _parse_measure(name)
        except ConfigError as error:
            wrong.append(str(error))
        else:
            found.setdefault(str(measure), measure)
    if wrong:
        raise ConfigError("\n".join(wrong))
    if not found:
        raise ConfigError(f"no measure is given; for example {', '.join(DEFAULT_MEASURES)}")
    return list(found.values())


def _parse_measure(name: str | Measure) -> Measure:
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name.strip() if isinstance(name, str) else name)
        measure.validate_params()
    except NameError:
        raise ConfigError(f"measure {name!r} is not known{_hint(str(name))}") from None
    except AssertionError as error:
        raise ConfigError(f"measure {name!r}: {_readable(str(error))}") from None
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError):
        example = ", ".join(DEFAULT_MEASURES)
        raise ConfigError(f"measure {name!r} is not written like {example}") from None
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and (isinstance(cutoff, bool) or cutoff < 1):
        raise ConfigError(f"measure {name!r}: the cutoff must be at least 1")
    if not ir_measures.DefaultPipeline.supports(measure):
        raise ConfigError(f"measure {name!r}: no installed library computes it")
    return measure


def _readable(reason: str) -> str:
    if "<object object" in reason:
        parameter = reason.removeprefix("invalid param ").partition("=")[0]
        return f"{parameter} is missing, for example @10"
    return reason


def _hint(name: str) -> str:
    import difflib
    import re

    import ir_measures

    word = re.split(r"[@(\s]", name, maxsplit=1)[0]
    known = {alias.lower(): m.NAME for alias, m in ir_measures.measures.registry.items()}
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {known[close[0]]}{name[len(word) :]}?"
    return f"; for example {', '.join(DEFAULT_MEASURES)}"


@dataclass(frozen=True)
class Evaluation:
    """What a run is worth.

    A *judged* topic has at least one judgment; a judged topic that the run misses counts 0.
    Topics are in the order of the judgments.
    """

    measures: dict[str, float]
    """The headline: measure -> mean over the judged topics that have a relevant document."""
    measures_all_judged: dict[str, float]
    """Measure -> mean over all judged topics, those without a relevant document counting 0."""
    topics: dict[str, int]
    """Counts: ``judged``; ``with_relevant`` of them; ``retrieved`` = judged with results;
    ``missing`` = judged without results; ``unjudged`` = with results, without judgments."""
    per_topic: dict[str, dict[str, float]]
    """Judged topic -> measure -> value."""
    missing_topics: list[str] = field(default_factory=list)
    unjudged_topics: list[str] = field(default_factory=list)
    topics_without_relevant: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON values: both means, the counts and every topic."""
        return {
            "measures": self.measures,
            "measures_all_judged": self.measures_all_judged,
            "topics": self.topics,
            "per_topic": self.per_topic,
        }

    def notes(self) -> list[str]:
        """What a reader must know besides the figures, one sentence each."""
        notes = []
        gaps = []
        if self.missing_topics:
            gaps.append(f"{_count(self.missing_topics, 'judged topic')} without results")
        if self.unjudged_topics:
            gaps.append(f"{_count(self.unjudged_topics, 'run topic')} without judgments")
        if gaps:
            notes.append(", ".join(gaps))
        if self.topics_without_relevant:
            count = _count(self.topics_without_relevant, "topic")
            which = _some(self.topics_without_relevant)
            notes.append(f"{count} without relevant documents: {which}")
        if not self.topics["retrieved"]:
            notes.append("no topic of the run is judged: do run and judgments belong together?")
        return notes


def _count(topics: Sequence[str], noun: str) -> str:
    return f"{len(topics)} {noun}{'' if len(topics) == 1 else 's'}"


def _some(topics: Sequence[str], limit: int = 10) -> str:
    more = len(topics) - limit
    return ", ".join(topics[:limit]) + (f" and {more} more" if more > 0 else "")


def evaluate(
    run: Run,
    qrels: Iterable[Qrel],
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
) -> Evaluation:
    """Measure ``run`` against ``qrels``.

    The order is the run's own: score in double precision, then document id, both descending,
    which is trec_eval's rule. A grade of 1 or more is relevant; a negative grade is judged, not
    relevant and gains 0 for every measure; nDCG has linear gain.

    Raises :class:`~polyray.errors.ConfigError` for a measure that cannot be computed and
    :class:`~polyray.errors.InputError` for contradicting judgments or none to average over.
    """
    parsed = parse_measures(measures)
    judged = _judgments(qrels)
    relevant = {topic for topic, grades in judged.items() if max(grades.values()) >= 1}
    if not relevant:
        what = "no topic has a relevant document" if judged else "there are no judgments"
        raise InputError(Problem("judgments", None, what, "a grade of 1 or more is relevant"))
    ranked = _ranks(run, judged, _depth(parsed))
    per_topic = _compute(parsed, judged, ranked)
    missing = [topic for topic in judged if topic not in ranked]
    unjudged = [topic for topic in run if topic not in judged and run.ranked(topic)[0]]
    return Evaluation(
        measures=_means(parsed, [per_topic[topic] for topic in judged if topic in relevant]),
        measures_all_judged=_means(parsed, list(per_topic.values())),
        topics={
            "judged": len(judged),
            "with_relevant": len(relevant),
            "retrieved": len(judged) - len(missing),
            "missing": len(missing),
            "unjudged": len(unjudged),
        },
        per_topic=per_topic,
        missing_topics=missing,
        unjudged_topics=unjudged,
        topics_without_relevant=[topic for topic in judged if topic not in relevant],
    )


def _judgments(qrels: Iterable[Qrel]) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    clashes = []
    for qrel in qrels:
        grades = judged.setdefault(qrel.query_id, {})
        grade = qrel.grade if qrel.grade > 0 else 0
        if grades.setdefault(qrel.doc_id, grade) != grade:
            what = f"topic {qrel.query_id}, document {qrel.doc_id}: two different grades"
            clashes.append(Problem("judgments", None, what, "keep one of them"))
    if clashes:
        raise InputError(clashes)
    return judged


def _depth(measures: Sequence[Measure]) -> int | None:
    """How many documents a topic the measures look at; None if all of them."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    for measure, cutoff in zip(measures, cutoffs, strict=True):
        if measure.NAME not in _BY_PREFIX or cutoff is None or measure.params.get("judged_only"):
            return None
    return max(cutoffs)


def _ranks(
    run: Run, judged: Mapping[str, object], depth: int | None
) -> dict[str, dict[str, float]]:
    """Topic -> document -> whole numbers falling by one from rank to rank.

    trec_eval keeps scores in single precision and sorts again; whole numbers up to 2**24 stay
    apart there, so that the order is the run's whatever the scores are.
    """
    ranked = {}
    for topic in judged:
        docs = run.ranked(topic)[0][:depth] if topic in run else ()
        if docs:
            falling = map(float, range(len(docs), 0, -1))
            ranked[topic] = dict(zip(docs, falling, strict=True))
    return ranked


def _compute(
    measures: Sequence[Measure],
    judged: dict[str, dict[str, int]],
    ranked: dict[str, dict[str, float]],
) -> dict[str, dict[str, float]]:
    import ir_measures

    names = {measure: str(measure) for measure in measures}
    values: dict[str, dict[str, float]] = {topic: {} for topic in judged}
    for metric in ir_measures.iter_calc(measures, judged, ranked):
        if metric.query_id in values:
            values[metric.query_id][names[metric.measure]] = float(metric.value)
    # One order of the columns, whichever library computed which of them.
    order = list(names.values())
    return {topic: {name: row.get(name, 0.0) for name in order} for topic, row in values.items()}


def _means(measures: Sequence[Measure], rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Aggregate as the measure asks: an exact mean, or the sum for counts such as NumRet."""
    from ir_measures import SumAgg

    means = {}
    for measure in measures:
        name = str(measure)
        total = math.fsum(row[name] for row in rows)
        means[name] = total if isinstance(measure.aggregator(), SumAgg) else total / len(rows)
    return means
