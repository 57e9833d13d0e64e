"""The live endpoint's logic, without any web server or cluster around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from polyray.collections.store import DocumentStore
from polyray.errors import PolyrayError
from polyray.progress import Progress
from polyray.records import Query
from polyray.retrieve import Retriever
from serve.messages import SearchHit, SearchRequest, SearchResponse
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import read_queries
from tasks.mqir.systems import Systems

__all__ = ["SearchService", "UnknownSystem", "prepare", "snippet_of"]

SNIPPET = 200
"""Characters of a document's text that are shown."""
_QUERY_ID = "q"

T = TypeVar("T")


class UnknownSystem(PolyrayError):
    """A request names a system that the config does not have."""


def prepare(config: MqirConfig, documents: str | None = None) -> tuple[Systems, str]:
    """Check a config's inputs without building anything; the systems and the language to search.

    ``documents`` is the language of the documents: by default English, or the config's first
    where it has no English ones. Raises :class:`~polyray.errors.PolyrayError` naming what is
    missing.
    """
    systems = Systems(config, read_queries(config))
    code = systems.codes[0] if documents is None else documents
    systems.check(code)
    return systems, code


class SearchService:
    """Answers one query at a time with any system of a config, as the offline job would.

    Opens the job's stores and indexes under the config's ``output``, or builds them there first
    (dense ones through Ray, which is joined or started for that), and asks every system once, so
    that no user's query is the slow first one. Titles and snippets are held in memory, about half
    a kilobyte a document.

    ``search`` may be called from any thread. The retrievers live in one thread of their own: calls
    into Java share state between threads, and a thread that ends would have to be detached from
    the Java machine.
    """

    def __init__(self, config: MqirConfig, documents: str | None = None) -> None:
        """Open or build everything; ``documents`` is as for :func:`prepare`."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        try:
            self._do(lambda: self._open(config, documents))
        except BaseException:
            self.close()
            raise

    def _open(self, config: MqirConfig, documents: str | None) -> None:
        systems, self.documents = prepare(config, documents)
        store = systems.store(self.documents)
        with Progress(config.name) as progress:
            self._retrievers: dict[str, Retriever] = systems.retrievers(
                self.documents, store, progress.update
            )
        for retriever in self._retrievers.values():
            retriever.retrieve([Query(_QUERY_ID, "warm up")], 1)
        self._shown = _shown(store)
        self.default = config.systems[-1].name

    def _do(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result()

    def systems(self) -> list[dict[str, Any]]:
        """Name, settings and ``default`` flag of every system, in the config's order."""
        return [
            {"name": name, "default": name == self.default, **retriever.describe()}
            for name, retriever in self._retrievers.items()
        ]

    def search(self, request: SearchRequest) -> SearchResponse:
        """The best ``request.k`` documents.

        Raises :class:`UnknownSystem`, which lists the systems that there are.
        """
        name = self.default if request.system is None else request.system
        if name not in self._retrievers:
            known = ", ".join(self._retrievers)
            raise UnknownSystem(f"no system is named {name!r}; there are: {known}")
        return self._do(lambda: self._search(name, request))

    def _search(self, name: str, request: SearchRequest) -> SearchResponse:
        start = time.perf_counter()
        run = self._retrievers[name].retrieve([Query(_QUERY_ID, request.query)], request.k)
        hits = run.get(_QUERY_ID, [])
        took = (time.perf_counter() - start) * 1000
        return SearchResponse(
            system=name,
            query=request.query,
            k=request.k,
            took_ms=round(took, 3),
            hits=[
                SearchHit(
                    rank=rank,
                    doc_id=hit.doc_id,
                    score=hit.score,
                    title=self._shown[hit.doc_id][0],
                    snippet=self._shown[hit.doc_id][1],
                )
                for rank, hit in enumerate(hits, start=1)
            ],
        )

    def close(self) -> None:
        """End the search thread; nothing can be searched afterwards."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _shown(store: DocumentStore) -> dict[str, tuple[str, str]]:
    """Document id -> title and snippet."""
    return {doc.doc_id: (doc.title, snippet_of(doc.text)) for doc in store}


def snippet_of(text: str, length: int = SNIPPET) -> str:
    """At most ``length`` characters of a text, cut at a space where there is one.

    >>> snippet_of("a hare and a tortoise", 9)
    'a hare …'
    """
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    cut, space, _ = text[: length - 1].rpartition(" ")
    return f"{cut} …" if space else f"{text[: length - 1]}…"
