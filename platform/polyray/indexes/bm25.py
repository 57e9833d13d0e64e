"""BM25 (Robertson et al. 2009) on Anserini, with the document language's Lucene analyzer.

Texts and queries are analysed through :func:`~polyray.text.keys.matching_key`, so that spellings
that look the same match. Where Lucene has no analyzer for a language (Swahili, Somali), words are
found by Unicode's rules and lower-cased; nothing is stemmed or stopped.

Scores are Anserini's: rounded to four decimals, a tie's later members lowered by a millionth each.
Lucene breaks ties by its own ids, ascending; here those are given out by document id, descending,
so that ties come in trec_eval's order, at the cut after ``k`` documents, too.
"""

from __future__ import annotations

import json
import math
import operator
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from polyray.errors import ConfigError, PolyrayError
from polyray.indexes.jvm import java_class, java_list
from polyray.indexes.manifest import read_manifest, write_manifest
from polyray.languages import language
from polyray.records import Document, Query
from polyray.runs import Run

__all__ = ["Bm25Index", "analyzer_of"]

LOWERCASE = "lowercase"
KIND = "bm25"
_BATCH = 1000
_Columns = tuple[list[str], list[float]]
"""Document ids and their scores, best first."""


def analyzer_of(code: str) -> str:
    """The name of the analyzer that texts of a language get.

    >>> analyzer_of("de"), analyzer_of("sw")
    ('de', 'lowercase')
    """
    return language(code).analyzer


class Bm25Index:
    """A Lucene index of whole documents, or of passages whose best one counts (MaxP)."""

    def __init__(self, folder: Path, *, k1: float = 0.9, b: float = 0.4, threads: int = 0) -> None:
        """Open a whole index. ``k1`` and ``b`` are Anserini's defaults; 0 threads is all cores."""
        import pyarrow.parquet as pq

        if not (k1 >= 0 and 0 <= b <= 1):
            raise ConfigError(f"BM25 needs k1 >= 0 and 0 <= b <= 1, not k1={k1}, b={b}")
        self.manifest = read_manifest(folder, KIND)
        self._analyzer = self.manifest["settings"]["analyzer"]
        self._ids: list[str] = pq.read_table(folder / "ids.parquet")["doc_id"].to_pylist()
        self._passages = bool(self.manifest["passages"])
        self._threads = threads or os.cpu_count() or 1
        self.k1, self.b = k1, b
        self._searcher: Any = None
        if self._ids:
            self._searcher = java_class("io.anserini.search.SimpleSearcher")(str(folder / "lucene"))
            self._searcher.set_bm25(k1, b)
            self._set_analyzer()

    def _set_analyzer(self) -> None:
        if self._analyzer == LOWERCASE:
            whitespace = java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")
            self._searcher.set_analyzer(whitespace())
        elif self._analyzer != "en":
            self._searcher.set_language(self._analyzer)

    @classmethod
    def build(
        cls,
        folder: Path,
        rows: Iterable[Document],
        *,
        code: str,
        passages: bool = False,
        threads: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Index ``rows`` in the language ``code``; a folder that is whole is left as it is.

        ``rows`` is gone through twice: for the ids, then for the texts. With ``passages`` several
        rows may carry one document id. ``settings`` goes into the manifest. What an interrupted
        build left is removed.
        """
        analyzer = analyzer_of(code)
        settings = {"language": code, "analyzer": analyzer, **(settings or {})}
        if (folder / "manifest.json").is_file():
            read_manifest(folder, KIND)
            return
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            count = _index(temporary, rows, analyzer, threads or os.cpu_count() or 1)
            write_manifest(temporary, KIND, settings, rows=count, passages=passages)
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def describe(self) -> dict[str, Any]:
        """What a figure made with this index depends on."""
        return {
            "bm25.k1": self.k1,
            "bm25.b": self.b,
            "bm25.analyzer": self._analyzer,
            "bm25.unit": "passage" if self._passages else "document",
        }

    def search(self, queries: Sequence[Query], k: int) -> Run:
        """The best ``k`` documents of each query; one call into Java for all of them.

        A query without words that the index analyses has an empty list.
        """
        found: dict[str, _Columns] = {query.query_id: ([], []) for query in queries}
        asked = {q.query_id: _analysed(q.text, self._analyzer) for q in queries}
        pending = {key: text for key, text in asked.items() if text.strip()}
        depth = 2 * k if self._passages else k
        while pending and self._searcher is not None:
            again = {}
            for key, numbers, scores in self._batch(pending, depth):
                docs, best = self._documents(numbers, scores)
                if len(docs) >= k or len(numbers) < depth:
                    found[key] = docs[:k], best[:k]
                else:
                    again[key] = pending[key]
            pending, depth = again, depth * 4
        return Run.of_columns(found, tag="bm25")

    def _documents(self, numbers: list[str], scores: list[float]) -> _Columns:
        """Documents in Lucene's order, each with the score of its best row.

        A score that is not below the one before it, as after a hundred ties, is lowered to the
        next smaller number, so that the order is the scores' own.
        """
        ids = list(map(self._ids.__getitem__, map(int, numbers)))
        if not self._passages and all(map(operator.gt, scores, scores[1:])):
            return ids, scores
        best: dict[str, float] = {}
        last = math.inf
        for doc_id, score in zip(ids, scores, strict=True):
            if doc_id not in best:
                last = min(score, math.nextafter(last, -math.inf))
                best[doc_id] = last
        return list(best), list(best.values())

    def _batch(
        self, texts: dict[str, str], depth: int
    ) -> Iterator[tuple[str, list[str], list[float]]]:
        """Anserini's own batch search: each query with its hits' numbers and scores.

        The answer comes over as one JSON text. Its pairs are strung together before it is
        parsed: a list a hit would take longer than all the rest.
        """
        keys = list(texts)
        numbers = java_list([str(number) for number in range(len(keys))])
        answer = self._searcher.batch_search(
            java_list(list(texts.values())), numbers, depth, self._threads
        )
        text = _mapper().writeValueAsString(answer).replace("],[", ",")
        for number, hits in json.loads(text).items():
            flat = hits[0] if hits else []
            yield keys[int(number)], flat[0::2], flat[1::2]


@cache
def _mapper() -> Any:
    """A JSON writer of hits, each an array: Anserini's id and score, nothing else of it."""
    mapper = java_class("com.fasterxml.jackson.databind.ObjectMapper")()
    named = java_class("java.lang.Class").forName
    yes = java_class("java.lang.Boolean")(True)
    lucene_number = java_class("java.lang.Integer").TYPE
    for unwanted in (named("org.apache.lucene.document.Document"), lucene_number):
        mapper.configOverride(unwanted).setIsIgnoredType(yes)
    annotation = "com.fasterxml.jackson.annotation.JsonFormat"
    array_shape = java_class(f"{annotation}$Shape").ARRAY
    shaped = java_class(f"{annotation}$Value").forShape(array_shape)
    mapper.configOverride(named("io.anserini.search.ScoredDoc")).setFormat(shaped)
    by_name = java_class("com.fasterxml.jackson.databind.MapperFeature")
    mapper.configure(by_name.SORT_PROPERTIES_ALPHABETICALLY, True)
    return mapper


def _analysed(text: str, analyzer: str) -> str:
    from polyray.text.keys import matching_key, words

    key = matching_key(text)
    return " ".join(words(key)) if analyzer == LOWERCASE else key


def _index(folder: Path, rows: Iterable[Document], analyzer: str, threads: int) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [row.doc_id for row in rows]
    order = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
    numbers = array("q", bytes(8 * len(ids)))
    for number, position in enumerate(order):
        numbers[position] = number
    width = len(str(len(ids)))  # equal lengths sort as numbers do; short ones cross from Java fast
    arguments = ["-index", str(folder / "lucene"), "-input", "", "-collection", "JsonCollection"]
    arguments += ["-threads", str(threads)]
    arguments += ["-pretokenized"] if analyzer == LOWERCASE else ["-language", analyzer]
    indexer = java_class("io.anserini.index.SimpleIndexer")(arguments)
    pairs = iter(zip(numbers, rows, strict=True))
    try:
        while batch := list(islice(pairs, _BATCH)):
            texts = [
                json.dumps(
                    {"id": f"{number:0{width}d}", "contents": _analysed(row.contents, analyzer)}
                )
                for number, row in batch
            ]
            added = indexer.addRawDocuments(texts)
            if added != len(batch):
                raise PolyrayError(f"Anserini took {added} of {len(batch)} documents")
    finally:
        indexer.close()
    sorted_ids = pa.array([ids[position] for position in order], pa.string())
    pq.write_table(pa.table({"doc_id": sorted_ids}), folder / "ids.parquet")
    return len(ids)
