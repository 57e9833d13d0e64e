"""Expected values: the cases' expected.json (trec_eval, checked by an independent program), to six
decimals; and pytrec_eval called by hand, to 1e-6."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from polyray.collections.qrels import read_qrels
from polyray.errors import ConfigError, InputError
from polyray.evaluation import DEFAULT_MEASURES, Evaluation, evaluate, parse_measures
from polyray.records import Qrel
from polyray.runs import Run

CASE = ("AP@100", "nDCG@20", "P@1")


def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def run_case(folder: Path, **options: Any) -> Evaluation:
    run = Run.read(folder / "run.txt", **options)
    return evaluate(run, read_qrels(str(folder / "qrels.txt")), CASE)


def as_case(values: dict[str, float]) -> dict[str, float]:
    return {name.replace("AP@", "MAP@"): value for name, value in values.items()}


def close(values: dict[str, float], right: dict[str, float]) -> bool:
    return as_case(values) == pytest.approx(right, abs=1e-6)


def test_ties_go_by_document_id_descending(cases: Path) -> None:
    right = expected(cases / "H01_ties")
    result = run_case(cases / "H01_ties")
    for topic, values in right["per_topic"].items():
        assert close(result.per_topic[topic], values)
    assert close(result.measures, right["mean"])


def test_the_order_of_lines_changes_no_digit(cases: Path, tmp_path: Path) -> None:
    folder = cases / "H01_ties"
    first = run_case(folder).to_json()
    for seed in range(5):
        for name in ("run.txt", "qrels.txt"):
            lines = (folder / name).read_text().splitlines()
            random.Random(seed).shuffle(lines)
            (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert run_case(tmp_path).to_json() == first


def test_missing_topics_count_zero(cases: Path) -> None:
    right = expected(cases / "H02_missing_topics")
    result = run_case(cases / "H02_missing_topics")
    assert close(result.measures, right["mean_over_5_judged_topics"])
    assert close(result.measures_all_judged, right["mean_over_5_judged_topics"])
    assert result.missing_topics == right["zero_topics"]
    assert result.unjudged_topics == right["ignored_run_topics"]
    assert right["must_report"] in result.notes()
    assert result.topics == {
        "judged": 5,
        "with_relevant": 5,
        "retrieved": 3,
        "missing": 2,
        "unjudged": 1,
    }
    assert all(set(result.per_topic[topic].values()) == {0.0} for topic in right["zero_topics"])


def test_topics_without_relevant_documents(cases: Path) -> None:
    right = expected(cases / "H03_no_relevant_docs")
    result = run_case(cases / "H03_no_relevant_docs")
    for topic, values in right["per_topic"].items():
        assert close(result.per_topic[topic], values)
    assert close(result.measures, right["mean_excluding_topics_without_relevant_2_topics"])
    assert close(result.measures_all_judged, right["mean_trec_eval_style_3_topics"])
    assert result.notes() == ["1 topic without relevant documents: 302"]


def test_graded_and_negative_judgments(cases: Path) -> None:
    right = expected(cases / "H04_graded_negative")
    result = run_case(cases / "H04_graded_negative")
    assert close(result.per_topic["401"], right["per_topic"]["401"])


def test_a_document_twice(cases: Path) -> None:
    folder = cases / "H05_duplicate_docs_in_run"
    right = expected(folder)
    with pytest.raises(InputError) as caught:
        run_case(folder)
    message = str(caught.value)
    assert all(word in message for word in ("501", "k1", "1", "3"))
    result = run_case(folder, duplicates="best")
    assert close(result.per_topic["501"], right["with_dedup_option_keep_best_score"]["501"])


def by_hand(run: Run, qrels: Sequence[Qrel]) -> dict[str, dict[str, float]]:
    """pytrec_eval on its own data structures, with the scores as they are in the run."""
    import pytrec_eval

    judged: dict[str, dict[str, int]] = {}
    for qrel in qrels:
        judged.setdefault(qrel.query_id, {})[qrel.doc_id] = qrel.grade
    scores = {topic: {hit.doc_id: hit.score for hit in run[topic]} for topic in run}
    names = {
        "map_cut_100": "AP@100",
        "ndcg_cut_20": "nDCG@20",
        "P_1": "P@1",
        "recall_100": "R@100",
        "map": "AP",
        "ndcg": "nDCG",
        "bpref": "Bpref",
    }
    found = pytrec_eval.RelevanceEvaluator(judged, set(names)).evaluate(scores)
    return {
        topic: {names[name]: value for name, value in values.items()}
        for topic, values in found.items()
    }


def agrees(run: Run, qrels: Sequence[Qrel], measures: Sequence[str]) -> int:
    result = evaluate(run, qrels, measures)
    right = by_hand(run, qrels)
    for topic, values in right.items():
        for name in measures:
            assert result.per_topic[topic][name] == pytest.approx(values[name], abs=1e-6)
    assert set(right) == set(result.per_topic) - set(result.missing_topics)
    return len(right)


@pytest.mark.parametrize("name", ["compat", "cwl"])
@pytest.mark.parametrize("measures", [DEFAULT_MEASURES, (*DEFAULT_MEASURES, "AP", "nDCG", "Bpref")])
def test_agreement_with_trec_eval(data_root: Path, name: str, measures: Sequence[str]) -> None:
    folder = data_root / "dirty" / "ir_measures"
    run = Run.read(folder / f"{name}.run")
    assert agrees(run, read_qrels(str(folder / f"{name}.qrels")), measures) >= 1


def test_agreement_with_trec_eval_on_real_judgments_with_many_ties(data_root: Path) -> None:
    folder = data_root / "topics_qrels_only" / "ciral"
    qrels = read_qrels(str(folder / "qrels.ciral-v1.0-sw-test-a.tsv"))
    draw = random.Random(3)
    docs = sorted({qrel.doc_id for qrel in qrels})
    rankings = {}
    for topic in dict.fromkeys(qrel.query_id for qrel in qrels):
        own = [qrel.doc_id for qrel in qrels if qrel.query_id == topic]
        pool = dict.fromkeys([*own, *draw.sample(docs, min(300, len(docs)))])
        rankings[topic] = [(doc, float(draw.randrange(6))) for doc in pool]
    assert agrees(Run(rankings), qrels, (*DEFAULT_MEASURES, "AP", "nDCG")) > 20


def test_scores_that_single_precision_cannot_tell_apart() -> None:
    # 1 + 2**-40 and 1 are the same number in single precision, where "b" would come first.
    run = Run({"q": [("a", 1.0 + 2.0**-40), ("b", 1.0)]})
    result = evaluate(run, [Qrel("q", "a", 1), Qrel("q", "b", 0)], ["P@1"])
    assert result.measures == {"P@1": 1.0}


def test_a_measure_without_cutoff_sees_the_whole_list() -> None:
    run = Run({"q": [(f"d{i}", -float(i)) for i in range(150)]})
    result = evaluate(run, [Qrel("q", "d149", 1)], ["AP", "AP@100", "RR"])
    assert result.measures == pytest.approx({"AP": 1 / 150, "AP@100": 0.0, "RR": 1 / 150})


def test_other_libraries_measures_and_sums() -> None:
    run = Run({"q": [("a", 2.0), ("b", 1.0)], "r": [("a", 1.0)]})
    qrels = [Qrel("q", "b", 1), Qrel("r", "a", 1)]
    result = evaluate(run, qrels, ["RR@10", "NumRet", "P(rel=2)@1"])
    assert result.measures == {"RR@10": 0.75, "NumRet": 3.0, "P(rel=2)@1": 0.0}
    assert list(result.per_topic["q"]) == ["RR@10", "NumRet", "P(rel=2)@1"]


def test_measure_names() -> None:
    assert [str(m) for m in parse_measures(["MAP@100", "AP@100", " P@1 "])] == ["AP@100", "P@1"]
    assert [str(m) for m in parse_measures(parse_measures(DEFAULT_MEASURES))] == [*DEFAULT_MEASURES]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ndcg@10", "did you mean nDCG@10?"),
        ("Mapp@100", "did you mean AP@100?"),
        ("zzz", "not known; for example AP@100"),
        ("P", "cutoff is missing"),
        ("AP@0", "at least 1"),
        ("nDCG@ten", "not written like"),
        ("nDCG(", "not written like"),
        ("P@1; import os", "not written like"),
        ("nDCG(nope=3)@20", "nDCG(nope=3)@20"),
        ("", "not written like"),
    ],
)
def test_wrong_measure_names(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_measures([name, "AP@100"])
    assert words in str(caught.value)


def test_all_wrong_measures_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_measures(["foo@1", "bar@2"])
    assert "foo@1" in str(caught.value)
    assert "bar@2" in str(caught.value)
    with pytest.raises(ConfigError):
        parse_measures([])


def test_nothing_to_average() -> None:
    run = Run({"q": [("a", 1.0)]})
    for qrels, words in (([], "no judgments"), ([Qrel("q", "a", 0)], "no topic has a relevant")):
        with pytest.raises(InputError) as caught:
            evaluate(run, qrels)
        assert words in str(caught.value)
    with pytest.raises(InputError) as caught:
        evaluate(run, [Qrel("q", "a", 0), Qrel("q", "a", 1)])
    assert "two different grades" in str(caught.value)


def test_run_and_judgments_that_do_not_belong_together() -> None:
    result = evaluate(Run({"x": [("a", 1.0)]}), [Qrel("q", "a", 1)])
    assert set(result.measures.values()) == {0.0}
    assert any("belong together" in note for note in result.notes())


def test_empty_lists_are_missing_topics() -> None:
    result = evaluate(Run({"q": [], "x": []}), [Qrel("q", "a", 1)])
    assert result.missing_topics == ["q"]
    assert result.unjudged_topics == []
