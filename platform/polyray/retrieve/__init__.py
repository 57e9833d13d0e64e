"""Retrievers: whatever answers queries with ranked documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from polyray.records import Query
    from polyray.runs import Run

__all__ = ["Retriever"]


class Retriever(Protocol):
    """Answers queries over one collection; ids are the user's own strings, always.

    >>> class Fixed:
    ...     def retrieve(self, queries, k):
    ...         from polyray.runs import Run
    ...         return Run({query.query_id: [("d1", 1.0)][:k] for query in queries})
    ...     def describe(self):
    ...         return {"kind": "fixed"}
    """

    def retrieve(self, queries: Sequence[Query], k: int) -> Run:
        """At most ``k`` documents of each query, best first; a query without words has none."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a figure made with this retriever depends on, as flat names and values."""
        ...
