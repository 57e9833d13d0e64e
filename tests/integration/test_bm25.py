"""BM25 in the real Java machine."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from polyray.collections.documents import read_documents
from polyray.collections.qrels import read_qrels
from polyray.collections.topics import read_topics
from polyray.errors import ConfigError, IndexDamaged
from polyray.evaluation.measures import evaluate
from polyray.indexes.bm25 import Bm25Index, analyzer_of
from polyray.languages import LANGUAGES
from polyray.records import Document, Query


def index_of(folder: Path, documents: list[Document], code: str = "en", **more: bool) -> Bm25Index:
    Bm25Index.build(folder, documents, code=code, **more)
    return Bm25Index(folder)


@pytest.mark.parametrize(
    ("documents", "queries", "reference"),
    [("en", "en", 0.6931), ("en", "sw", 0.4408), ("de", "de", 0.668), ("zh", "zh", 0.7243)],
)
def test_figures_of_an_independent_pyserini_run(
    tmp_path: Path, data_root: Path, documents: str, queries: str, reference: float
) -> None:
    """AP@100 within 0.005 of reference/ntrex-bm25.json (pyserini's own searcher, k1 .9, b .4).

    What may differ is the matching key: full-width forms, ZWNJ, letter variants.
    """
    folder = data_root / "ntrex"
    rows = list(read_documents(str(folder / f"docs/{documents}_docs.tsv")))
    index = index_of(tmp_path / "index", rows, documents)
    topics = read_topics(str(folder / f"queries/{queries}_queries_concat.tsv"), language=queries)
    run = index.search([topic.query() for topic in topics], 100)
    found = evaluate(run, read_qrels(str(folder / "qrels/qrels.tsv")), ["AP@100"])
    assert found.measures["AP@100"] == pytest.approx(reference, abs=0.005)


def test_hits_exactly_where_the_matching_keys_agree(tmp_path: Path, cases: Path) -> None:
    """Right results: cases/H19_unicode_pairs, both ways. The language-neutral analyzer is used,
    since German's own folds schön to schon; Han text gets the Chinese one, whose unit is two
    characters."""
    with (cases / "H19_unicode_pairs/pairs.tsv").open(encoding="utf-8", newline="") as handle:
        pairs = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(pairs) == 17
    for row in pairs:
        code = "zh" if row["id"] == "p16" else "sw"
        for number, (stored, asked) in enumerate([(row["a"], row["b"]), (row["b"], row["a"])]):
            documents = [Document("it", stored), Document("other", "nothing alike")]
            index = index_of(tmp_path / f"{row['id']}{number}", documents, code)
            hits = index.search([Query("q", asked)], 10)["q"]
            expected = ["it"] if row["same_matching_key"] == "true" else []
            assert [hit.doc_id for hit in hits] == expected, row["id"]


def test_query_operators_are_plain_text_and_empty_queries_have_no_hits(
    tmp_path: Path, cases: Path
) -> None:
    """Right results: cases/H20_topics_xml, query 13 and the empty Persian topic 7."""
    topics = read_topics(str(cases / "H20_topics_xml/topics.xml"), language="en")
    documents = [
        Document("d", "The school by the river had a flood of ice"),
        Document("e", "zebra"),
    ]
    run = index_of(tmp_path / "en", documents).search([topic.query() for topic in topics], 10)
    assert [hit.doc_id for hit in run["13"]] == ["d"]
    persian = read_topics(str(cases / "H20_topics_xml/topics.xml"), language="fa")
    index = index_of(tmp_path / "fa", [Document("d", "صدای مزرعه بادی")], "fa")
    run = index.search([topic.query() for topic in persian], 10)
    assert run["7"] == []
    assert [hit.doc_id for hit in run["12"]] == ["d"]


def test_ids_of_any_spelling_survive(tmp_path: Path, cases: Path) -> None:
    """Right results: cases/H06_string_docids."""
    folder = cases / "H06_string_docids"
    index = index_of(tmp_path / "i", list(read_documents(str(folder / "collection.jsonl"))), "sw")
    topics = read_topics(str(folder / "queries.tsv"))
    run = index.search([topic.query() for topic in topics], 1)
    expected = evaluate(run, read_qrels(str(folder / "qrels.txt")), ["P@1"])
    assert expected.measures["P@1"] == 1.0
    assert set(run) == {f"q{number:02d}" for number in range(7)}


def test_best_passage_counts_and_fetching_goes_on_until_k_documents(tmp_path: Path) -> None:
    """One document of 60 passages that all beat the others must not hide them."""
    rows = [Document("long", "kite kite kite festival") for _ in range(60)]
    rows += [Document(f"d{i}", "kite " + "word " * (i + 2)) for i in range(5)]
    run = index_of(tmp_path / "i", rows, passages=True).search([Query("q", "kite")], 4)
    assert [hit.doc_id for hit in run["q"]] == ["long", "d0", "d1", "d2"]


def test_ties_at_the_cut_go_by_id_descending(tmp_path: Path, cases: Path) -> None:
    """cases/H09_many_duplicates: 60 equal texts; the order written is fixed."""
    rows = list(read_documents(str(cases / "H09_many_duplicates/collection.jsonl")))
    index = index_of(tmp_path / "i", rows)
    run = index.search([Query("q", "Notice: the office is closed today.")], 10)
    same = sorted((row.doc_id for row in rows if row.doc_id.startswith("dup")), reverse=True)
    assert [hit.doc_id for hit in run["q"]] == same[:10]
    assert [hit.doc_id for hit in index.search([Query("q", "office")], 70)["q"]] == same
    unique = index.search([Query("q", "Tickets for the museum are free on Sunday.")], 1)
    assert unique["q"][0].doc_id == "u1"


@pytest.mark.parametrize("name", ["one", "three"])
def test_tiny_collections(tmp_path: Path, cases: Path, name: str) -> None:
    """cases/H08_tiny_collection."""
    rows = list(read_documents(str(cases / f"H08_tiny_collection/{name}.jsonl")))
    index = index_of(tmp_path / "i", rows)
    query = Query("q", " ".join(row.text for row in rows))
    found = sorted(hit.doc_id for hit in index.search([query], 10)["q"])
    assert found == sorted(row.doc_id for row in rows)


def test_every_language_has_an_analyzer_that_lower_cases(tmp_path: Path) -> None:
    words = {"zh": "图书馆", "fa": "کتابخانه", "ru": "Библиотека"}
    for code in LANGUAGES:
        word = words.get(code, "Zebrafink")
        index = index_of(tmp_path / code, [Document("d", word), Document("e", "Q")], code)
        hits = index.search([Query("q", word.upper())], 5)["q"]
        assert [hit.doc_id for hit in hits] == ["d"], code
        assert index.describe()["bm25.analyzer"] == analyzer_of(code)


def test_unknown_language_and_damaged_index_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'xx' is not known"):
        Bm25Index.build(tmp_path / "x", [], code="xx")
    index_of(tmp_path / "i", [Document("d", "x")])
    ids = tmp_path / "i" / "ids.parquet"
    ids.write_bytes(ids.read_bytes()[:-3])
    with pytest.raises(IndexDamaged, match=r"ids\.parquet"):
        Bm25Index(tmp_path / "i")
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not left


def test_empty_collection_answers_with_nothing(tmp_path: Path) -> None:
    assert index_of(tmp_path / "i", []).search([Query("q", "word")], 5)["q"] == []
    assert json.loads((tmp_path / "i" / "manifest.json").read_text())["rows"] == 0


def test_more_than_a_hundred_ties_do_not_overtake_the_next_score(tmp_path: Path) -> None:
    rows = [Document(f"a{i:03d}", "kite festival") for i in range(250)]
    rows += [Document(f"b{i:03d}", "kite festival in spring") for i in range(100)]
    run = index_of(tmp_path / "i", rows).search([Query("q", "kite")], 350)
    found = [hit.doc_id for hit in run["q"]]
    assert found == [f"a{i:03d}" for i in reversed(range(250))] + [
        f"b{i:03d}" for i in reversed(range(100))
    ]
