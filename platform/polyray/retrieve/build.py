"""From a system's settings and a collection to a retriever, building or reusing its index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.collections.store import DocumentStore
from polyray.indexes.manifest import settings_key
from polyray.models.settings import EncoderSettings
from polyray.records import Document
from polyray.retrieve import Retriever
from polyray.retrieve.settings import Bm25System, DenseSystem, Windows, Workers

if TYPE_CHECKING:
    from polyray.models.dense import Encoder

__all__ = ["Built", "Encoders", "build_bm25", "build_dense", "open_store"]

Progress = Callable[[str, int, int], None]


@dataclass
class Encoders:
    """Encoders of the driver's process, each model loaded once."""

    _loaded: dict[str, Encoder] = field(default_factory=dict)

    def get(self, settings: EncoderSettings) -> Encoder:
        """The encoder of these settings."""
        from polyray.models.dense import load_encoder

        key = settings.model_dump_json()
        if key not in self._loaded:
            self._loaded[key] = load_encoder(settings)
        return self._loaded[key]


@dataclass(frozen=True, slots=True)
class Built:
    """A retriever, and the facts of its index that go into the results."""

    retriever: Retriever
    facts: dict[str, Any]
    encoded_shards: int = 0


def open_store(
    indexes: Path, documents: Iterable[Document], identity: str, workers: Workers
) -> DocumentStore:
    """The shards of a collection, made when they are not there."""
    key = settings_key({"documents": identity, "shard_documents": workers.shard_documents})
    folder = indexes / f"documents-{key}"
    return DocumentStore.build(folder, documents, identity, small=workers.shard_documents)


def build_bm25(
    system: Bm25System, store: DocumentStore, code: str, indexes: Path, identity: str
) -> Built:
    """A BM25 retriever for documents in the language ``code``."""
    from polyray.indexes.bm25 import Bm25Index, analyzer_of
    from polyray.retrieve.kinds import Bm25Retriever

    windows = system.passages.model_dump() if system.passages else None
    settings = {"documents": identity, "passages": windows}
    key = settings_key({**settings, "language": code, "analyzer": analyzer_of(code)})
    folder = indexes / f"bm25-{code}-{key}"
    rows = _Passages(store, system.passages) if system.passages else store
    Bm25Index.build(folder, rows, code=code, passages=windows is not None, settings=settings)
    index = Bm25Index(folder, k1=system.k1, b=system.b)
    facts = {"index.rows": index.manifest["rows"], "index.documents": store.documents}
    return Built(Bm25Retriever(index), facts)


@dataclass(frozen=True, slots=True)
class _Passages:
    """The passages of a store as rows of their documents, cut anew at every pass."""

    store: DocumentStore
    windows: Windows

    def __iter__(self) -> Iterator[Document]:
        from polyray.text.tokenizers import window_tokenizer
        from polyray.text.windows import cut

        windows = self.windows
        tokenizer = window_tokenizer(windows.tokenizer or "words")
        for shard in range(len(self.store)):
            documents = self.store.read(shard)
            for group in cut(documents, tokenizer, windows.length, windows.stride):
                for passage in group:
                    yield Document(passage.doc_id, passage.text)


def encoder_settings(system: DenseSystem) -> EncoderSettings:
    """The encoder part of a dense system's settings."""
    names = set(EncoderSettings.model_fields)
    return EncoderSettings(**system.model_dump(include=names))


def build_dense(
    system: DenseSystem,
    encoder: EncoderSettings,
    store: DocumentStore,
    indexes: Path,
    identity: str,
    workers: Workers,
    encoders: Encoders,
    progress: Progress | None = None,
) -> Built:
    """A dense retriever; ``encoder`` are the system's settings with all choices made.

    Starts or joins Ray only where something has to be encoded.
    """
    from polyray.cluster import started
    from polyray.errors import IndexDamaged
    from polyray.indexes.dense import DenseIndex
    from polyray.indexes.encode import EncodeSettings
    from polyray.models.dense import is_light
    from polyray.retrieve.kinds import DenseRetriever

    tokenizer = system.passages.tokenizer or ("words" if is_light(encoder.model) else encoder.model)
    windows = {**system.passages.model_dump(), "tokenizer": tokenizer}
    described = {
        "documents": identity,
        "passages": windows,
        "encoder": encoder.model_dump(exclude={"device", "query_prompt"}),
        "shard_documents": workers.shard_documents,
    }
    folder = indexes / f"dense-{settings_key(described)}"
    job = EncodeSettings(encoder, tokenizer, system.passages.length, system.passages.stride)

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(system.name, done, total)

    encoded = 0
    if not (folder / "manifest.json").is_file():
        with started(address=workers.address):
            encoded = DenseIndex.build(
                folder,
                store,
                job,
                described,
                actors=workers.actors,
                cpus=workers.cpus,
                progress=report,
            )
    index = DenseIndex(folder)
    if index.manifest["settings"] != described:
        raise IndexDamaged(f"{folder} was made with other settings: remove it")
    facts = {
        f"index.{name}": index.manifest[name]
        for name in ("documents", "passages", "truncated", "without_passages")
    }
    return Built(DenseRetriever(index, encoders.get(encoder)), facts, encoded)
