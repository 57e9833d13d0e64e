"""The verdict on every odd real file: read, with its count, or refused, with the line or reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyray.collections import check
from polyray.files import open_text

CHECKS: dict[str, tuple[Callable[[str], check.Result], str]] = {
    "documents": (check.check_documents, "documents"),
    "topics": (check.check_queries, "topics"),
    "qrels": (check.check_qrels, "judgments"),
    "run": (check.check_run, "results"),
}

VERDICTS: dict[str, tuple[str, int | str]] = {
    "anserini-tools/qrels.msmarco-doc.dev.crlf.head200.txt": ("qrels", 200),
    "anserini-tools/topics.adhoc.301-350.txt": ("topics", 50),
    "anserini-tools/topics.adhoc.51-100.txt": ("topics", 50),
    "anserini-tools/topics.covid-round1.xml": ("topics", 30),
    "anserini-tools/topics.dl20.txt": ("topics", 200),
    "anserini-tools/topics.mq.latin1.excerpt.txt": ("topics", ":2: not UTF-8"),
    "anserini/20Newsgroups__collection1__82757": ("documents", "format cannot be told"),
    "anserini/cacm__cacm.tar.gz": ("documents", "tar archive"),
    "anserini/clean_trec__collection1__segment1.txt": ("documents", 2),
    "anserini/fineweb__fineweb_no_id.parquet": ("documents", "no id column"),
    "anserini/json__collection_errors__contents_missing.json": ("documents", "has a text"),
    "anserini/json__collection_errors__id_missing.json": (
        "documents",
        ":1: the document has no id",
    ),
    "anserini/json__collection_zh__segment1.json": ("documents", 3),
    "anserini/mrtydi-1.1__fi__corpus.jsonl.gz": ("documents", 4),
    "anserini/mrtydi-1.1__ru__corpus.jsonl.gz": ("documents", 4),
    "anserini/mrtydi-1.1__sw__corpus.jsonl.gz": ("documents", 4),
    "anserini/msmarco-v1-passage__docs00.json": ("documents", 2),
    "anserini/msmarco-v2_1_passage_gz__shard0.json.gz": ("documents", "the file is empty"),
    "anserini/neuclir__collection__sample_rus_collection.jsonl": ("documents", 4),
    "anserini/trec__collection1__segment1.txt": ("documents", 2),
    "anserini/trec__collection3__trec1": ("documents", 2),
    "anserini/trecweb__collection1__segment1.txt": (
        "documents",
        ":10: the document has no <DOCNO>",
    ),
    "ir_measures/compat.qrels": ("qrels", 311),
    "ir_measures/compat.run": ("run", 1927),
    "ir_measures/cwl.qrels": ("qrels", 23),
    "ir_measures/cwl.run": ("run", 30),
    "patapsco/bad_format.jsonl": ("documents", ":1: not JSON"),
    "patapsco/docs.jsonl": ("documents", 2),
    "patapsco/docs1.sgml": ("documents", 2),
    "patapsco/missing_field.jsonl": ("documents", 1),
    "patapsco/msmarco_collection.tsv": ("documents", 2),
    "patapsco/msmarco_queries.tsv": ("topics", 2),
    "patapsco/not_utf8.txt": ("documents", ":1: not UTF-8"),
    "patapsco/qrels_2020": ("qrels", 6),
    "patapsco/qrels_2020.tsv": ("qrels", 6),
    "patapsco/qrels_bad": ("qrels", ":5: the grade '0.5' is not a whole number"),
    "patapsco/queries.jsonl": ("topics", 2),
    "patapsco/results.jsonl": ("run", ":1: 31 columns instead of six"),
    "patapsco/results.txt": ("run", 4),
    "patapsco/scoring_qrels.txt": ("qrels", 5),
    "patapsco/scoring_qrels_missing_doc.txt": ("qrels", 3),
    "patapsco/scoring_results.txt": ("run", 4),
    "patapsco/topics.jsonl": ("topics", 2),
    "patapsco/topics.txt": ("topics", 2),
    "patapsco/topics.xml": ("topics", 2),
    "patapsco/topics_different_langs.jsonl": ("topics", 2),
    "patapsco/topics_none.jsonl": ("topics", 2),
    "pyterrier/light_results": ("run", ":1: 3 columns instead of six"),
    "pyterrier/qrels": ("qrels", 7),
    "pyterrier/singleline.topics": ("topics", ":1: no tab between id and text"),
    "pyterrier/topics.trec": ("topics", 3),
    "pyterrier/topics.trecxml": ("topics", 3),
    "pyterrier/two_queries_result": ("run", 1410),
}


def test_every_file_has_a_verdict(data_root: Path) -> None:
    folder = data_root / "dirty"
    there = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert there - {"SOURCE.md", "patapsco/LICENSE"} == set(VERDICTS)


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict(data_root: Path, name: str) -> None:
    kind, expected = VERDICTS[name]
    checker, counted = CHECKS[kind]
    path = str(data_root / "dirty" / name)
    problems, counts = checker(path)
    if isinstance(expected, int):
        assert problems == []
        assert counts[counted] == expected
    else:
        text = "\n".join(map(str, problems))
        assert expected in text
        assert all(str(problem).startswith(path) for problem in problems)


def test_odd_files_outside_the_folder(data_root: Path) -> None:
    """The UTF-16 table has the same lines as its UTF-8 form; ZWNJ and NBSP are kept."""
    clsd = data_root / "clsd"
    packed = list(open_text(clsd / "FR_wmt1921_swaps_ner_pos.tsv"))
    plain = list(open_text(clsd / "FR_wmt1921_swaps_ner_pos.utf8.tsv"))
    assert packed == plain
    assert len(packed) > 100
    sentences = data_root / "ntrex" / "sentences"
    assert any("\u200c" in line for _, line in open_text(sentences / "fa.txt"))
    assert any("\u00a0" in line for _, line in open_text(sentences / "fr.txt"))
    assert not any(line.endswith("\r") for _, line in open_text(next(clsd.glob("MT_*2019*"))))


def test_a_doubled_topic_id_in_a_published_file(data_root: Path) -> None:
    """CIRAL's Swahili test B topics list 237 twice, with different texts."""
    name = "topics_qrels_only/ciral/topics.ciral-v1.0-sw-test-b-native.tsv"
    problems, counts = check.check_queries(str(data_root / name))
    assert [problem.line for problem in problems] == [70]
    assert counts == {}
