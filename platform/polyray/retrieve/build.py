"""From a system's settings and a collection to a retriever, building or reusing its index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.collections.store import DocumentStore
from polyray.indexes.manifest import settings_key
from polyray.models.settings import EncoderSettings, LateSettings
from polyray.records import Document
from polyray.retrieve import Retriever
from polyray.retrieve.settings import Bm25System, DenseSystem, LateSystem, Windows, Workers

if TYPE_CHECKING:
    from polyray.models.dense import Encoder
    from polyray.models.late import LateEncoder

__all__ = ["Built", "Encoders", "Setting", "build_bm25", "build_dense", "build_late", "open_store"]

Progress = Callable[[str, int, int], None]


@dataclass
class Encoders:
    """Encoders of the driver's process, each model loaded once."""

    _loaded: dict[str, Encoder] = field(default_factory=dict)
    _late: dict[str, LateEncoder] = field(default_factory=dict)

    def get(self, settings: EncoderSettings) -> Encoder:
        """The encoder of these settings."""
        from polyray.models.dense import load_encoder

        key = settings.model_dump_json()
        if key not in self._loaded:
            self._loaded[key] = load_encoder(settings)
        return self._loaded[key]

    def get_late(self, settings: LateSettings) -> LateEncoder:
        """The late-interaction encoder of these settings."""
        from polyray.models.late import load_late

        key = settings.model_dump_json()
        if key not in self._late:
            self._late[key] = load_late(settings)
        return self._late[key]


@dataclass(frozen=True, slots=True)
class Built:
    """A retriever, the facts of its index that go into the results, and where the index lies.

    ``encoded`` counts what was encoded by this call: shards of a dense index, passages of a late.
    """

    retriever: Retriever
    facts: dict[str, Any]
    folders: tuple[Path, ...]
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a system is built: documents and their fingerprint, folder of indexes, means."""

    store: DocumentStore
    indexes: Path
    identity: str
    workers: Workers
    encoders: Encoders
    progress: Progress = lambda step, done, total: None


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
    from polyray.indexes.bm25 import FORM, Bm25Index, analyzer_of
    from polyray.retrieve.kinds import Bm25Retriever

    windows = system.passages.model_dump() if system.passages else None
    settings = {"documents": identity, "passages": windows}
    named = {"language": code, "analyzer": analyzer_of(code), "form": FORM}
    key = settings_key({**settings, **named})
    folder = indexes / f"bm25-{code}-{key}"
    rows = _Passages(store, system.passages) if system.passages else store
    Bm25Index.build(folder, rows, code=code, passages=windows is not None, settings=settings)
    index = Bm25Index(folder, k1=system.k1, b=system.b)
    facts = {"index.rows": index.manifest["rows"], "index.documents": store.documents}
    return Built(Bm25Retriever(index), facts, (folder,))


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


def build_dense(system: DenseSystem, encoder: EncoderSettings, setting: Setting) -> Built:
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
        "documents": setting.identity,
        "passages": windows,
        "encoder": encoder.model_dump(exclude={"device", "query_prompt"}),
        "shard_documents": setting.workers.shard_documents,
    }
    folder = setting.indexes / f"dense-{settings_key(described)}"
    job = EncodeSettings(encoder, tokenizer, system.passages.length, system.passages.stride)

    def report(done: int, total: int) -> None:
        setting.progress(system.name, done, total)

    encoded = 0
    if not (folder / "manifest.json").is_file():
        with started(address=setting.workers.address):
            encoded = DenseIndex.build(
                folder,
                setting.store,
                job,
                described,
                actors=setting.workers.actors,
                cpus=setting.workers.cpus,
                progress=report,
            )
    index = DenseIndex(folder)
    if index.manifest["settings"] != described:
        raise IndexDamaged(f"{folder} was made with other settings: remove it")
    facts = {
        f"index.{name}": index.manifest[name]
        for name in ("documents", "passages", "truncated", "without_passages")
    }
    return Built(DenseRetriever(index, setting.encoders.get(encoder)), facts, (folder,), encoded)


def late_settings(system: LateSystem) -> LateSettings:
    """The encoder part of a late-interaction system's settings."""
    return LateSettings(**system.model_dump(include=set(LateSettings.model_fields)))


def build_late(system: LateSystem, encoder: LateSettings, setting: Setting) -> Built:
    """A late-interaction retriever; ``encoder`` are the system's settings with all choices made.

    Starts or joins Ray only where something has to be encoded, or where there are several parts.
    """
    from polyray.cluster import started
    from polyray.indexes.plaid.build import PlaidSettings, build_plaid
    from polyray.indexes.plaid.parts import PlaidParts, part_shards
    from polyray.indexes.plaid.search import PlaidIndex
    from polyray.indexes.plaid.stages import CodecSettings
    from polyray.models.late_files import checkpoint_of, fingerprint
    from polyray.retrieve.kinds import LateRetriever

    own = "words" if encoder.is_light else str(encoder.backbone or encoder.model)
    tokenizer = system.passages.tokenizer or own
    codec = CodecSettings(system.bits, system.kmeans_iterations, system.index_seed, system.buckets)
    described = {
        "documents": setting.identity,
        "passages": {**system.passages.model_dump(), "tokenizer": tokenizer},
        "encoder": encoder.model_dump(exclude={"device", "query_maxlen"}),
        "model_sha256": fingerprint(checkpoint_of(encoder), encoder.revision),
        "codec": asdict(codec),
        "shard_documents": setting.workers.shard_documents,
        "memory_map": system.memory_map,
    }
    windows = system.passages
    job = PlaidSettings(
        encoder, tokenizer, windows.length, windows.stride, codec, system.memory_map
    )
    runs = part_shards(len(setting.store), system.parts)
    folders, encoded = [], 0
    for number, shards in enumerate(runs):
        facts = described if len(runs) == 1 else {**described, "part": [number, len(runs)]}
        folder = setting.indexes / f"plaid-{settings_key(facts)}"
        folders.append(folder)

        def report(stage: str, done: int, total: int) -> None:
            setting.progress(f"{system.name} {stage}", done, total)

        whole = (folder / "manifest.json").is_file()
        with nullcontext() if whole else started(address=setting.workers.address):
            built = build_plaid(
                folder,
                setting.store,
                job,
                facts,
                shards=shards,
                actors=setting.workers.actors,
                cpus=setting.workers.cpus,
                progress=report,
            )
        encoded += built.encoded
    index: PlaidIndex | PlaidParts
    if len(folders) == 1:
        index = PlaidIndex(folders[0], memory_map=system.memory_map)
        manifests = [index.manifest]
    else:
        index = PlaidParts(folders, address=setting.workers.address, memory_map=system.memory_map)
        manifests = index.manifests
    counted = ("documents", "passages", "embeddings", "truncated", "without_passages")
    totals = {f"index.{name}": sum(m[name] for m in manifests) for name in counted}
    retriever = LateRetriever(index, setting.encoders.get_late(encoder), system.search)
    return Built(retriever, totals, tuple(folders), encoded)
