"""The kinds of retriever: BM25, dense, and reciprocal-rank fusion of any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyray.records import Query
from polyray.retrieve import Retriever
from polyray.runs import Run

if TYPE_CHECKING:
    from polyray.indexes.bm25 import Bm25Index
    from polyray.indexes.dense import DenseIndex
    from polyray.models.dense import Encoder

__all__ = ["Bm25Retriever", "DenseRetriever", "FusionRetriever"]


class Bm25Retriever:
    """BM25 over a Lucene index."""

    def __init__(self, index: Bm25Index) -> None:
        self._index = index

    def retrieve(self, queries: Sequence[Query], k: int) -> Run:
        """At most ``k`` documents of each query."""
        return self._index.search(queries, k)

    def describe(self) -> dict[str, Any]:
        """Parameters and analyzer."""
        return {"kind": "bm25", **self._index.describe()}


class DenseRetriever:
    """Nearest passages of a dense encoder; the best passage of a document counts (MaxP)."""

    def __init__(self, index: DenseIndex, encoder: Encoder) -> None:
        self._index, self._encoder = index, encoder

    def retrieve(self, queries: Sequence[Query], k: int) -> Run:
        """At most ``k`` documents of each query; a blank query has none."""
        from polyray.text.keys import is_blank

        asked = [query for query in queries if not is_blank(query.text)]
        vectors = self._encoder.encode_queries([query.text for query in asked])
        found = self._index.search([query.query_id for query in asked], vectors, k)
        rankings = {query.query_id: found.get(query.query_id, []) for query in queries}
        return Run(rankings, tag="dense")

    def truncated(self, queries: Sequence[Query]) -> int:
        """How many of the queries are longer than the model reads."""
        return self._encoder.truncated([query.text for query in queries], passages=False)

    def describe(self) -> dict[str, Any]:
        """Encoder and passage settings."""
        windows = self._index.manifest["settings"]["passages"]
        return {
            "kind": "dense",
            **self._encoder.describe(),
            "passages.length": windows["length"],
            "passages.stride": windows["stride"],
            "passages.tokenizer": windows["tokenizer"],
        }


class FusionRetriever:
    """Reciprocal-rank fusion (Cormack et al. 2009) of other retrievers' first ``depth`` ranks."""

    def __init__(self, parts: dict[str, Retriever], *, k: int = 60, depth: int = 1000) -> None:
        self._parts, self._k, self._depth = parts, k, depth

    def retrieve(self, queries: Sequence[Query], k: int) -> Run:
        """At most ``k`` documents of each query."""
        runs = [part.retrieve(queries, max(k, self._depth)) for part in self._parts.values()]
        return fuse(runs, self._k, self._depth, k)

    def describe(self) -> dict[str, Any]:
        """Which retrievers, and the constant of the formula."""
        return {
            "kind": "fusion",
            "fusion.of": "+".join(self._parts),
            "fusion.k": self._k,
            "fusion.depth": self._depth,
        }


def fuse(runs: Sequence[Run], constant: int, depth: int, k: int) -> Run:
    """Reciprocal-rank fusion of the first ``depth`` ranks, cut to ``k`` documents."""
    return Run.fuse(runs, k=constant, depth=depth).top(k)
