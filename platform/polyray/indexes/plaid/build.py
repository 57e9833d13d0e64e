"""Building a PLAID index from a document store: four stages, each a Ray Data pass.

1. *split*: documents -> passages; passage and chunk numbers are prefix sums over shard counts.
2. *sample and codec*: a seeded sample of passages is encoded; k-means and buckets from it.
3. *encode*: every shard's other passages are encoded, all are compressed, the chunk is written.
4. *finalize*: inverted lists, ids, metadata, manifest.

Each stage skips the shards that it finds whole. Rows hold shard numbers and paths alone, so that
neither block layout nor scheduling can change a byte; the driver holds a few numbers a shard.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from polyray.collections.store import DocumentStore
from polyray.errors import IndexDamaged, PolyrayError
from polyray.files import read_json, sha256_of, write_json
from polyray.indexes.actors import map_on_actors
from polyray.indexes.manifest import read_manifest, settings_key
from polyray.indexes.plaid.files import IDS, WORK, recover, save_array, whole
from polyray.indexes.plaid.finalize import KIND, close_index, write_ids, write_lists
from polyray.indexes.plaid.mapped import write_mapped
from polyray.indexes.plaid.stages import (
    CodecSettings,
    PassageEncoder,
    PassageSplitter,
    PlaidShard,
    train_codec,
)
from polyray.models.settings import LateSettings

__all__ = ["PlaidBuild", "PlaidSettings", "Stages", "build_plaid", "map_here", "shards_of"]

Spread = Callable[..., Iterator[dict[str, Any]]]
"""How rows get to workers: :func:`~polyray.indexes.actors.map_on_actors` or :func:`map_here`."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class PlaidSettings:
    """What every worker of a build is made from."""

    encoder: LateSettings
    tokenizer: str
    length: int = 180
    stride: int = 90
    codec: CodecSettings = field(default_factory=CodecSettings)
    memory_map: bool = False


@dataclass(frozen=True, slots=True)
class PlaidBuild:
    """What a call of :func:`build_plaid` did: passages encoded now, and the index's manifest."""

    encoded: int
    manifest: dict[str, Any]


class _Worker:
    """Does any stage's row; tokenizer and model are loaded when the first row needs them."""

    def __init__(self, settings: PlaidSettings, threads: int | None = None) -> None:
        self._settings, self._threads = settings, threads
        self._splitter: PassageSplitter | None = None
        self._encoder: PassageEncoder | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        stage = row["stage"]
        if stage in ("codec", "lists"):
            return self._alone(stage, Path(row["folder"]), [int(n) for n in row["numbers"]])
        given = row["given"]
        shard = PlaidShard(*(row[name] for name in PlaidShard.__slots__))
        if stage == "split":
            facts = self.splitter(shard)
        elif stage == "sample":
            facts = self.encoder.sample(shard, given)
        else:
            facts = self.encoder.encode(shard, given)
        return {"shard": shard.number, "encoded": int(facts.get("encoded", 0))}

    def _alone(self, stage: str, folder: Path, numbers: list[int]) -> dict[str, Any]:
        self._bound_threads()
        if stage == "codec":
            passages, *numbers = numbers
            shards = [PlaidShard(number, "", "", str(folder)) for number in numbers]
            train_codec(folder, shards, passages, self._settings.codec)
        else:
            chunks, centroids, *numbers = numbers
            write_lists(folder, chunks, centroids)
            if self._settings.memory_map:
                write_mapped(folder, range(chunks))
            parts = [
                PlaidShard(number, "", "", str(folder)).files["passages"] for number in numbers
            ]
            write_ids(folder / IDS, parts)
        return {"shard": -1, "encoded": 0}

    @property
    def splitter(self) -> PassageSplitter:
        if self._splitter is None:
            from polyray.text.tokenizers import window_tokenizer

            settings = self._settings
            tokenizer = window_tokenizer(settings.tokenizer)
            self._splitter = PassageSplitter(tokenizer, settings.length, settings.stride)
        return self._splitter

    @property
    def encoder(self) -> PassageEncoder:
        if self._encoder is None:
            from polyray.models.late import load_late

            self._bound_threads()
            self._encoder = PassageEncoder(partial(load_late, self._settings.encoder))
        return self._encoder

    def _bound_threads(self) -> None:
        if self._threads is not None:
            import faiss
            import torch

            torch.set_num_threads(self._threads)
            faiss.omp_set_num_threads(self._threads)


def map_here(
    rows: Sequence[dict[str, Any]], actor: type, settings: Any, **_: Any
) -> Iterator[dict[str, Any]]:
    """The rows done one after another in this process, without Ray."""
    if rows:
        yield from map(actor(settings), rows)


@dataclass
class Stages:
    """The stages of one build, in order; ``encoded`` counts passages that were encoded now."""

    folder: Path
    shards: list[PlaidShard]
    settings: PlaidSettings
    spread: Spread
    progress: Progress
    actors: int | None
    cpus: int | None
    encoded: int = 0
    left_to_encode: bool = True
    """Whether the sample left passages, so that encoding needs the model."""

    def run(
        self, stage: str, shards: Sequence[PlaidShard], given: str, *, model: bool, **expected: Any
    ) -> None:
        """Do what is not whole yet of one stage; ``model`` says whether it needs the model."""
        pending = [
            shard
            for shard in shards
            if not whole(shard.files[stage], documents_sha256=shard.sha256, **expected)
        ]
        self.progress(stage, len(shards) - len(pending), len(shards))
        rows = [asdict(shard) | {"stage": stage, "given": given} for shard in pending]
        done = len(shards) - len(pending)
        for answer in self._spread(rows, gpu=model, tasks=not model):
            done += 1
            self.encoded += answer["encoded"]
            self.progress(stage, done, len(shards))

    def alone(self, stage: str, numbers: list[int]) -> None:
        """Do a stage's one step over the whole index, in a worker."""
        row = {"stage": stage, "folder": str(self.folder), "numbers": numbers}
        for _ in self._spread([row], gpu=stage == "codec", whole_node=True):
            self.progress(stage, 1, 1)

    def _spread(
        self, rows: list[dict[str, Any]], *, gpu: bool, **how: bool
    ) -> Iterator[dict[str, Any]]:
        on_gpu = gpu and self.settings.encoder.device.startswith("cuda")
        yield from self.spread(
            rows,
            _Worker,
            self.settings,
            gpu=on_gpu,
            actors=self.actors,
            cpus=self.cpus,
            **how,
        )

    def split(self, offset: int = 0, chunk: int = 0) -> list[dict[str, Any]]:
        """Stage 1, and then every shard knows its first passage and its chunk.

        ``offset`` and ``chunk`` are the first numbers to give out.
        """
        self.run("split", self.shards, "", model=False)
        facts = [read_json(shard.files["split"]) for shard in self.shards]
        placed = []
        for shard, fact in zip(self.shards, facts, strict=True):
            has = fact["passages"] > 0
            placed.append(replace(shard, offset=offset, chunk=chunk if has else -1))
            offset += fact["passages"]
            chunk += has
        self.shards = [shard for shard in placed if shard.chunk >= 0]
        return facts

    def sample(self, passages: int) -> str:
        """Stage 2; returns the codec's SHA-256."""
        import numpy as np

        from polyray.indexes.plaid.codec import sample_size

        file = self.folder / WORK / "sample.npy"
        size = sample_size(passages)
        if not file.is_file():
            random = np.random.default_rng(self.settings.codec.seed)
            chosen = random.choice(passages, size, replace=False, shuffle=False)
            save_array(file, np.sort(chosen))
        sample = np.load(file, mmap_mode="r")
        starts = np.array([shard.offset for shard in self.shards] + [passages])
        counts = np.diff(np.searchsorted(sample, starts))
        del sample
        shards = [shard for shard, count in zip(self.shards, counts, strict=True) if count]
        sample_sha256 = sha256_of(file)
        self.run("sample", shards, sample_sha256, model=True, sample_sha256=sample_sha256)
        self.left_to_encode = size < passages
        done = self.folder / WORK / "codec.json"
        samples = [sha256_of(shard.files["sample"]) for shard in shards]
        if not whole(done, samples=samples):
            self.alone("codec", [passages, *(shard.number for shard in shards)])
        return sha256_of(done)

    def encode(self, codec_sha256: str) -> list[dict[str, Any]]:
        """Stage 3; returns the chunks' facts, in order."""
        model = self.left_to_encode
        self.run("encode", self.shards, codec_sha256, model=model, codec_sha256=codec_sha256)
        return [read_json(shard.files["encode"]) for shard in self.shards]

    def lists(self, chunks: int, centroids: int, shards: int) -> None:
        """Stage 4, the part that is work: inverted lists and ids."""
        self.alone("lists", [chunks, centroids, *range(shards)])


def build_plaid(
    folder: Path,
    store: DocumentStore,
    settings: PlaidSettings,
    described: dict[str, Any],
    *,
    shards: range | None = None,
    actors: int | None = None,
    cpus: int | None = None,
    spread: Spread = map_on_actors,
    progress: Progress | None = None,
) -> PlaidBuild:
    """Build the index of a store, or of some of its ``shards``; what is whole is not done again.

    ``described`` goes into the manifest as settings. Needs a running Ray unless all is done or
    ``spread`` is :func:`map_here`. Raises :class:`~polyray.errors.IndexDamaged` for a folder that
    was begun or made with other settings.
    """
    described = json.loads(json.dumps(described))  # as the manifest has it: no tuples
    recover(folder)
    if (folder / "manifest.json").is_file():
        manifest = read_manifest(folder, KIND)
        if manifest["settings"] != described:
            raise IndexDamaged(f"{folder} was made with other settings: remove it")
        shutil.rmtree(folder / WORK, ignore_errors=True)
        return PlaidBuild(0, manifest)
    _begin(folder, settings_key(described))
    stages = Stages(
        folder.resolve(),
        shards_of(folder, store, shards),
        settings,
        spread,
        progress or (lambda stage, done, total: None),
        actors,
        cpus,
    )
    split = stages.split()
    passages = sum(fact["passages"] for fact in split)
    if not passages:
        raise PolyrayError("no document has a passage to index")
    codec_sha256 = stages.sample(passages)
    chunks = stages.encode(codec_sha256)
    codec = read_json(folder / WORK / "codec.json")
    stages.lists(len(chunks), codec["centroids"], len(split))
    facts: dict[str, Any] = {
        "centroids": codec["centroids"],
        "documents": sum(fact["documents"] for fact in split),
        "without_passages": sum(fact["without_passages"] for fact in split),
        "truncated": sum(chunk["truncated"] for chunk in chunks),
        "stages": _stage_lines(split, codec, chunks),
    }
    close_index(folder, chunks, colbert_settings(settings), described, facts)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    return PlaidBuild(stages.encoded, read_manifest(folder, KIND))


def shards_of(folder: Path, store: DocumentStore, shards: range | None = None) -> list[PlaidShard]:
    """The shards of a store, or some of them, numbered from 0 in the index ``folder``."""
    entries = store.manifest["shards"]
    chosen = entries if shards is None else entries[shards.start : shards.stop]
    return [
        PlaidShard(
            number,
            str((store.folder / "shards" / entry["file"]).resolve()),
            entry["sha256"],
            str(folder.resolve()),
        )
        for number, entry in enumerate(chosen)
    ]


def _begin(folder: Path, key: str) -> None:
    """Mark a folder as being built with these settings, or see that it was begun with them.

    What a killed build was writing is removed.
    """
    for left in (*folder.glob(".*"), *(folder / WORK).glob(".*")):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    mark = folder / WORK / "begun.json"
    if mark.is_file() and read_json(mark)["settings"] != key:
        raise IndexDamaged(f"{folder} was begun with other settings: remove it")
    write_json(mark, {"settings": key})


def _stage_lines(
    split: list[dict[str, Any]], codec: dict[str, Any], chunks: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """One line a stage: what went in and came out."""
    trained = {name: value for name, value in codec.items() if name not in ("samples", "files")}
    return [
        {
            "stage": "split",
            "shards": len(split),
            "documents": sum(fact["documents"] for fact in split),
            "passages": sum(fact["passages"] for fact in split),
        },
        {"stage": "sample and codec", **trained},
        {
            "stage": "encode",
            "chunks": len(chunks),
            "embeddings": sum(chunk["embeddings"] for chunk in chunks),
            "passages_encoded": sum(chunk["encoded"] for chunk in chunks),
        },
        {"stage": "finalize", "centroids": codec["centroids"]},
    ]


def colbert_settings(settings: PlaidSettings) -> dict[str, Any]:
    """What colbert-ai's Searcher reads from ``metadata.json``."""
    from polyray.models.late_files import colbert_folder

    encoder = settings.encoder
    own = {
        "dim": encoder.dim,
        "nbits": settings.codec.bits,
        "kmeans_niters": settings.codec.iterations,
        "similarity": "cosine",
        "interaction": "colbert",
        # colbert-ai wants a collection to be named; passages are found by ids.parquet
        "collection": ["the passages are those of ids.parquet"],
    }
    return own | colbert_folder(encoder)
