"""The kinds of retriever: BM25, dense, late interaction, and reciprocal-rank fusion of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyray.records import Query
from polyray.retrieve import Retriever
from polyray.runs import Run

if TYPE_CHECKING:
    from polyray.indexes.bm25 import Bm25Index
    from polyray.indexes.dense import DenseIndex
    from polyray.indexes.plaid.parts import PlaidParts
    from polyray.indexes.plaid.search import PlaidIndex, PlaidSearch
    from polyray.models.dense import Encoder
    from polyray.models.late import LateEncoder

__all__ = ["Bm25Retriever", "DenseRetriever", "FusionRetriever", "LateRetriever"]


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


class LateRetriever:
    """Late interaction over a PLAID index; the best passage of a document counts (MaxP)."""

    def __init__(
        self, index: PlaidIndex | PlaidParts, encoder: LateEncoder, how: PlaidSearch
    ) -> None:
        self._index, self._encoder, self._how = index, encoder, how

    def retrieve(self, queries: Sequence[Query], k: int) -> Run:
        """At most ``k`` documents of each query; a blank query has none."""
        from polyray.text.keys import is_blank

        asked = [query for query in queries if not is_blank(query.text)]
        vectors = self._encoder.encode_queries([query.text for query in asked])
        found = self._index.search([query.query_id for query in asked], vectors, k, self._how)
        empty: tuple[list[str], list[float]] = ([], [])
        columns = {
            query.query_id: found.ranked(query.query_id) if query.query_id in found else empty
            for query in queries
        }
        lists = {key: (list(docs), list(scores)) for key, (docs, scores) in columns.items()}
        return Run.of_columns(lists, tag="late")

    def truncated(self, queries: Sequence[Query]) -> int:
        """How many of the queries are longer than the model reads."""
        return self._encoder.truncated([query.text for query in queries], passages=False)

    def describe(self) -> dict[str, Any]:
        """Encoder, passage windows, codec, and the settings of the search."""
        settings = self._index.manifest["settings"]
        windows, codec, how = settings["passages"], settings["codec"], self._how
        return {
            "kind": "late",
            **self._encoder.describe(),
            "passages.length": windows["length"],
            "passages.stride": windows["stride"],
            "passages.tokenizer": windows["tokenizer"],
            **{f"plaid.{name}": value for name, value in codec.items()},
            "plaid.centroids": self._index.manifest["centroids"],
            **{f"plaid.{name}": _by_k(value) for name, value in how.model_dump().items()},
        }


def _by_k(value: Any) -> Any:
    return "by k, as colbert-ai" if value is None else value


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
