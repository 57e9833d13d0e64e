"""ir_datasets ids, with small collections registered here in the package's own classes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from polyray.collections import read_documents, read_qrels, read_topics
from polyray.errors import ConfigError, MissingPrerequisite
from polyray.records import Document, Qrel, Topic

ir_datasets = pytest.importorskip("ir_datasets")


class Titled(NamedTuple):
    """A document as NeuCLIR's have it."""

    doc_id: str
    title: str
    text: str


@pytest.fixture
def registered() -> Iterator[str]:
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery
    from ir_datasets.formats.extracted_cc import ExctractedCCQuery
    from ir_datasets.formats.trec import TrecQrel

    class Docs(BaseDocs):  # type: ignore[misc]
        def docs_iter(self) -> Iterator[Any]:
            yield Titled("007", "T", "x")
            yield SimpleNamespace(doc_id="8", default_text=lambda: "whole")

    class Queries(BaseQueries):  # type: ignore[misc]
        def queries_iter(self) -> Iterator[Any]:
            texts = ("t", "d", "ht", "hd", "mt", "md")
            yield ExctractedCCQuery("1", *texts, {}, "", "", "", "zho")
            yield GenericQuery("2", "plain  words")

        def queries_lang(self) -> str | None:
            return None

    class Qrels(BaseQrels):  # type: ignore[misc]
        def qrels_iter(self) -> Iterator[Any]:
            yield TrecQrel("1", "007", 3, "0")

    class Broken(BaseDocs):  # type: ignore[misc]
        def docs_iter(self) -> Iterator[Any]:
            raise OSError("no route to host")
            yield

    name = "polyray-test"
    registry = ir_datasets.registry
    registry.register(name, Dataset(Docs(), Queries(), Qrels()))
    registry.register(f"{name}/broken", Dataset(Broken()))
    yield f"irds:{name}"
    for made in (name, f"{name}/broken"):
        registry._registered.pop(made, None)


def test_everything(registered: str) -> None:
    assert list(read_documents(registered)) == [Document("007", "x", "T"), Document("8", "whole")]
    assert read_qrels(registered) == [Qrel("1", "007", 3)]
    assert read_topics(registered, language="zh", source="human") == [
        Topic("1", "ht", "hd", language="zh", source="human translation")
    ]
    assert read_topics(registered, language="zh", source="machine")[0].title == "mt"
    assert read_topics(registered, language="en")[0].title == "t"


def test_errors(registered: str) -> None:
    with pytest.raises(ConfigError, match="knows no collection"):
        list(read_documents("irds:no/such/thing"))
    with pytest.raises(MissingPrerequisite, match="no route to host"):
        list(read_documents(f"{registered}/broken"))
    with pytest.raises(ConfigError, match="has no qrels"):
        read_qrels(f"{registered}/broken")
