"""BM25 from queries to a run, against Anserini's own batch search and against call by call."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._measure import Row, interleaved, row, seconds, threads
from benchmarks._text import questions, source, word_documents
from polyray.records import Query

DOCUMENTS, QUERIES = 100_000, 500
DEPTHS = (100, 1000)
"""What a run keeps, and what a fusion asks its parts for."""
ROUNDS = 9
BATCH_TARGET, CALLS_TARGET = 0.9, 5.0


def _opened(folder: Path) -> Any:
    """Anserini's searcher on the same index, with the same parameters."""
    from polyray.indexes.jvm import java_class

    searcher = java_class("io.anserini.search.SimpleSearcher")(str(folder / "lucene"))
    searcher.set_bm25(0.9, 0.4)
    return searcher


def _in_java(searcher: Any, queries: Sequence[Query], k: int) -> float:
    """Seconds of the batch call alone: its arguments are there before, its answer stays in Java."""
    from polyray.indexes.jvm import java_class

    as_list = java_class("java.util.Arrays").asList
    texts = as_list(*[query.text for query in queries])
    keys = as_list(*[query.query_id for query in queries])
    return seconds(lambda: searcher.batch_search(texts, keys, k, threads()))


def call_by_call(searcher: Any, queries: Sequence[Query], k: int) -> dict[str, list[Any]]:
    """One call into Java a query, its hits read one by one."""
    return {
        query.query_id: [(hit.docid, hit.score) for hit in searcher.search(query.text, k)]
        for query in queries
    }


def measure(quick: bool = False) -> list[Row]:
    """Seconds of one batch of queries."""
    from polyray.indexes.bm25 import Bm25Index

    count, rounds = (2_000, 2) if quick else (DOCUMENTS, ROUNDS)
    queries = questions(40 if quick else QUERIES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        Bm25Index.build(folder, list(word_documents(count)), code="en", threads=threads())
        index, searcher = Bm25Index(folder, threads=threads()), _opened(folder)
        shared: dict[str, Any] = {
            "documents": count,
            "queries": len(queries),
            "text": f"words drawn from the {source()}",
        }
        rows = []
        for k in DEPTHS:
            ours = partial(seconds, partial(index.search, queries, k))
            calls = partial(seconds, partial(call_by_call, searcher, queries, k))
            java = partial(_in_java, searcher, queries, k)
            facts = {"k": k, "results": index.search(queries, k).size, **shared}
            batch = interleaved(ours, java, rounds)
            name = "Anserini's batch_search alone, results left in Java"
            rows.append(row(f"BM25 batch, k={k}", batch, BATCH_TARGET, other=name, **facts))
            single = interleaved(ours, calls, min(rounds, 5))
            name = "one search a query, its hits read in Python"
            rows.append(row(f"BM25 call by call, k={k}", single, CALLS_TARGET, other=name, **facts))
    return rows
