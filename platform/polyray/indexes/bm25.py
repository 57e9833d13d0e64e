"""BM25 (Robertson et al. 2009) on Anserini, with the document language's Lucene analyzer.

Texts and queries are analysed through :func:`~polyray.text.keys.matching_key`, so that spellings
that look the same match. Where Lucene has no analyzer for a language (Swahili, Somali), words are
found by Unicode's rules and lower-cased; nothing is stemmed or stopped.

The index is Anserini's, and so are the queries' terms and the similarity; the ranking is Lucene's
own call. Anserini's searcher would fetch every hit's stored document, which takes longer than the
search, and round scores to four decimals: here they are as Lucene computes them, and a hit's
document id comes from a table by Lucene's number. Ties come in trec_eval's order (document id,
descending), at the cut after ``k`` documents, too.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from polyray.errors import ConfigError, IndexDamaged, PolyrayError
from polyray.indexes.jvm import java_class, leave_thread
from polyray.indexes.manifest import read_manifest, write_manifest
from polyray.languages import language
from polyray.records import Document, Query
from polyray.runs import Run

__all__ = ["FORM", "Bm25Index", "analyzer_of"]

LOWERCASE = "lowercase"
KIND = "bm25"
FORM = 2
"""Raised when an index that was made before cannot be read any more; 2: ids by Lucene's number."""
_BATCH = 1000
_PART = 32
"""Queries that one thread answers at a time."""
_TURN = threading.Lock()
"""Held while one index of this process is searched, by any number of threads; see ``_Lucene``."""
_PAGE = 1_000_000
"""Rows whose Lucene numbers are asked for at once."""
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
        if self.manifest.get("form") != FORM:
            raise IndexDamaged(f"{folder} was made by another version of polyray: remove it")
        self._analyzer = self.manifest["settings"]["analyzer"]
        self._ids: list[str] = pq.read_table(folder / "ids.parquet")["doc_id"].to_pylist()
        self._passages = bool(self.manifest["passages"])
        self._threads = threads or os.cpu_count() or 1
        self.k1, self.b = k1, b
        self._lucene: _Lucene | None = None
        if self._ids:
            with _TURN:
                self._lucene = _Lucene(folder / "lucene", self._analyzer, k1, b)

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
            write_manifest(temporary, KIND, settings, rows=count, passages=passages, form=FORM)
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
        """The best ``k`` documents of each query; a few calls into Java for all of them.

        A query without words that the index analyses has an empty list.
        """
        found: dict[str, _Columns] = {query.query_id: ([], []) for query in queries}
        asked = {q.query_id: _analysed(q.text, self._analyzer) for q in queries}
        pending = {key: text for key, text in asked.items() if text.strip()}
        depth = 2 * k if self._passages else k
        while pending and self._lucene is not None:
            again = {}
            with _TURN:
                hits = list(self._batch(self._lucene, pending, depth))
            for key, numbers, scores in hits:
                docs, best = self._documents(numbers, scores)
                if len(docs) >= k or len(numbers) < depth:
                    found[key] = docs[:k], best[:k]
                else:
                    again[key] = pending[key]
            pending, depth = again, depth * 4
        return Run.of_columns(found, tag="bm25")

    def _documents(self, numbers: list[int], scores: list[float]) -> _Columns:
        """Documents in Lucene's order, each with the score of its best row."""
        ids = list(map(self._ids.__getitem__, numbers))
        if not self._passages:
            return ids, scores
        best: dict[str, float] = {}
        for doc_id, score in zip(ids, scores, strict=True):
            best.setdefault(doc_id, score)
        return list(best), list(best.values())

    def _batch(
        self, lucene: _Lucene, texts: dict[str, str], depth: int
    ) -> Iterator[tuple[str, list[int], list[float]]]:
        """Each query with its hits' Lucene numbers and scores, best first."""
        keys = list(texts)
        parts = [keys[start : start + _PART] for start in range(0, len(keys), _PART)]
        with ThreadPoolExecutor(self._threads) as threads:
            asked = [[texts[key] for key in part] for part in parts]
            answers = threads.map(lambda part: lucene.search(part, depth), asked)
            for part, answer in zip(parts, answers, strict=True):
                for key, (numbers, scores) in zip(part, answer, strict=True):
                    yield key, numbers, scores


class _Lucene:
    """Lucene's searcher over an index that Anserini made, for any number of threads.

    pyjnius keeps the object that a method was last looked up on in the method itself: threads may
    share an object and call static methods, but never call one class's methods on objects of their
    own.
    """

    def __init__(self, folder: Path, analyzer: str, k1: float = 0.9, b: float = 0.4) -> None:
        anserini = java_class("io.anserini.search.SimpleSearcher")(str(folder))
        anserini.set_bm25(k1, b)
        if analyzer == LOWERCASE:
            whitespace = java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")
            anserini.set_analyzer(whitespace())
        elif analyzer != "en":
            anserini.set_language(analyzer)
        self._analyzer = anserini.get_analyzer()
        self._terms = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        path = java_class("java.nio.file.Paths").get(str(folder))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(reader.getContext())
        self._searcher.setSimilarity(anserini.get_similarity())
        field = java_class("org.apache.lucene.search.SortField")
        by_id = field("id", java_class("org.apache.lucene.search.SortField$Type").STRING_VAL)
        self._order = java_class("org.apache.lucene.search.Sort")(field.FIELD_SCORE, by_id)
        _mapper()

    def search(self, texts: list[str], depth: int) -> list[tuple[list[int], list[float]]]:
        """Numbers and scores of each query's hits: by score, then by Anserini's id, ascending."""
        return self._ranked([self._terms.buildQuery(*self._asked(text)) for text in texts], depth)

    def _asked(self, text: str) -> tuple[str, Any, str]:
        return "contents", self._analyzer, text

    def numbers(self, first: str, last: str, most: int) -> list[int]:
        """Lucene's numbers of the rows whose ids lie in ``[first, last]``, in order of ids."""
        query = java_class("org.apache.lucene.search.TermRangeQuery")
        return self._ranked([query.newStringRange("id", first, last, True, True)], most)[0][0]

    def _ranked(self, queries: list[Any], depth: int) -> list[tuple[list[int], list[float]]]:
        """The answers come over as one JSON text: a call a hit would take longer than the search.

        ``[[[[1,2.5,-1],[7,2.0,-1]]],[[]]]`` is two hits and none; a list's end and the next one's
        start are taken out together, so that a query's hits are one list and not one each.
        """
        import orjson

        try:
            answers = [self._searcher.search(query, depth, self._order, True) for query in queries]
            listed = java_class("java.util.Arrays").asList(*answers)
            text = _mapper().writeValueAsString(listed).replace("],[", ",")
        finally:
            leave_thread()
        (results,) = orjson.loads(text)
        flat = [result[0] if result else [] for result in results]
        return [(hits[0::3], hits[1::3]) for hits in flat]


@cache
def _mapper() -> Any:
    """A JSON writer of results: an array of hits, each Lucene's number, score and shard (-1)."""
    mapper = java_class("com.fasterxml.jackson.databind.ObjectMapper")()
    named = java_class("java.lang.Class").forName
    yes = java_class("java.lang.Boolean")(True)
    search = "org.apache.lucene.search"
    for unwanted in ("[Ljava.lang.Object;", f"{search}.TotalHits", f"[L{search}.SortField;"):
        mapper.configOverride(named(unwanted)).setIsIgnoredType(yes)
    annotation = "com.fasterxml.jackson.annotation.JsonFormat"
    array_shape = java_class(f"{annotation}$Shape").ARRAY
    shaped = java_class(f"{annotation}$Value").forShape(array_shape)
    for kind in ("ScoreDoc", "FieldDoc", "TopFieldDocs"):
        mapper.configOverride(named(f"{search}.{kind}")).setFormat(shaped)
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
    width = len(str(len(ids)))  # equal lengths sort as numbers do
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
    by_lucene = _by_lucene_number(folder / "lucene", len(ids), width, analyzer)
    rows_of = pa.array([ids[order[number]] for number in by_lucene], pa.string())
    pq.write_table(pa.table({"doc_id": rows_of}), folder / "ids.parquet")
    return len(ids)


def _by_lucene_number(folder: Path, count: int, width: int, analyzer: str) -> Sequence[int]:
    """For each of Lucene's numbers, the number that the row was indexed under."""
    table = array("q", [-1]) * count
    if not count:
        return table
    with _TURN:
        lucene = _Lucene(folder, analyzer)
        for start in range(0, count, _PAGE):
            last = min(start + _PAGE, count) - 1
            found = lucene.numbers(f"{start:0{width}d}", f"{last:0{width}d}", _PAGE)
            for number, place in enumerate(found, start):
                table[place] = number
    if -1 in table:
        raise PolyrayError(f"{folder}: {table.count(-1)} rows are missing from the index")
    return table
