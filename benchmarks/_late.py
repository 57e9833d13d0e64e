"""What the late-interaction stages share: one model, real passages, both indexers and searchers."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._text import data_folder
from polyray.records import Document, Qrel, Query

BITS = 2
LONG = 1000
"""A window that holds any of these passages: each document is one, as colbert-ai has it."""


def passages(count: int) -> list[Document]:
    """The first English passages of AfriQA (Swahili), or of the packaged sample."""
    from polyray.collections.documents import read_documents

    rows = list(read_documents(_file("docs/en_docs.tsv")))
    return rows[:count]


def questions(count: int) -> list[Query]:
    """English questions of AfriQA (Swahili), in file order."""
    from polyray.collections.topics import read_topics

    topics = read_topics(_file("queries/en_queries.tsv"), language="en")
    return [topic.query() for topic in topics][:count]


def judgments() -> Sequence[Qrel]:
    """Which passage answers which question."""
    from polyray.collections.qrels import read_qrels

    return read_qrels(_file("qrels/qrels.tsv"))


def _file(name: str) -> str:
    folder = data_folder("afriqa_sw")
    return f"sample:{name}" if folder is None else str(folder / name)


def model() -> Any:
    """ColBERT of the packaged e5-small, projection untrained, float32 on the processor."""
    from polyray.models.settings import LateSettings

    return LateSettings(
        backbone="packaged:multilingual-e5-small", device="cpu", precision="float32", batch_size=8
    )


def build_ours(folder: Path, documents: Sequence[Document], **codec: Any) -> None:
    """polyray's index, in this process; ``codec`` are further settings of its codec."""
    from polyray.collections.store import DocumentStore
    from polyray.indexes.plaid.build import PlaidSettings, build_plaid, map_here
    from polyray.indexes.plaid.stages import CodecSettings

    shutil.rmtree(folder, ignore_errors=True)
    settings = PlaidSettings(model(), "words", LONG, LONG, CodecSettings(bits=BITS, **codec))
    store_folder = folder.with_name(f"{folder.name}-documents")
    shutil.rmtree(store_folder, ignore_errors=True)
    store = DocumentStore.build(store_folder, documents, "benchmark")

    described = {"benchmark": 1, "passages": {}, "codec": {}}
    build_plaid(folder, store, settings, described, spread=map_here)


def build_theirs(root: Path, documents: Sequence[Document]) -> Path:
    """The index that colbert-ai's own Indexer makes of the same checkpoint, in this process."""
    from polyray.models.colbert_ai import prepare, quiet
    from polyray.models.late_files import checkpoint_of

    prepare()
    from colbert import Indexer
    from colbert.infra import ColBERTConfig, Run, RunConfig

    shutil.rmtree(root, ignore_errors=True)
    run = RunConfig(root=str(root), experiment="e", nranks=1, avoid_fork_if_possible=True)
    with quiet(), Run().context(run):
        config = ColBERTConfig(nbits=BITS, kmeans_niters=4, avoid_fork_if_possible=True)
        indexer = Indexer(checkpoint_of(model()), config=config, verbose=0)
        made = indexer.index("index", [document.contents for document in documents])
    return Path(made)


def searcher(index: Path, documents: Sequence[Document]) -> Any:
    """colbert-ai's untouched Searcher over an index folder."""
    from polyray.models.colbert_ai import prepare, quiet
    from polyray.models.late_files import checkpoint_of

    prepare()
    from colbert import Searcher

    with quiet():
        return Searcher(
            index.name,
            checkpoint=checkpoint_of(model()),
            collection=[document.contents for document in documents],
            index_root=str(index.parent),
            verbose=0,
        )
