"""What a worker does in each stage of a build. This module knows no Ray.

Every stage takes one passage shard (or, for the codec and the end, the whole index) and writes
its files and then a ``.json`` with their SHA-256: a stage started again skips what is whole. What
a shard becomes depends on its documents, the settings, the sample and the codec alone: texts are
sorted by length and batched inside the shard, never across.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.files import atomic_path, read_json, sha256_of, write_json
from polyray.indexes.plaid.codec import Buckets
from polyray.indexes.plaid.files import (
    WORK,
    chunk_files,
    hashes,
    read_codec,
    save_array,
    save_tensor,
    stage_files,
    write_codec,
)

if TYPE_CHECKING:
    import numpy as np

    from polyray.models.late import LateEncoder
    from polyray.text.tokenizers import WindowTokenizer

__all__ = ["CodecSettings", "PassageEncoder", "PassageSplitter", "PlaidShard", "train_codec"]


@dataclass(frozen=True, slots=True)
class PlaidShard:
    """One shard of documents, and where it stands in the index that ``folder`` becomes.

    ``offset`` is the number of its first passage and ``chunk`` that of its chunk (-1: it has no
    passage); both are known once all shards are split.
    """

    number: int
    documents: str
    sha256: str
    folder: str
    offset: int = -1
    chunk: int = -1

    @property
    def files(self) -> dict[str, Path]:
        """The shard's files of the stages."""
        return stage_files(Path(self.folder), self.number)


@dataclass(frozen=True, slots=True)
class CodecSettings:
    """Bits a dimension, k-means iterations, the seed of sample and k-means, how buckets are cut."""

    bits: int = 2
    iterations: int = 4
    seed: int = 42
    buckets: Buckets = "lloyd-max"


class PassageSplitter:
    """Stage 1: cuts a shard's documents into passages."""

    def __init__(self, tokenizer: WindowTokenizer, length: int, stride: int) -> None:
        self._tokenizer, self._length, self._stride = tokenizer, length, stride

    def __call__(self, shard: PlaidShard) -> dict[str, Any]:
        """Write the shard's windows; returns its facts."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from polyray.collections.store import read_shard
        from polyray.text.windows import cut

        documents = read_shard(Path(shard.documents), shard.sha256)
        groups = cut(documents, self._tokenizer, self._length, self._stride)
        rows = [(row, passage) for row, group in enumerate(groups) for passage in group]
        columns = {"row": pa.array([row for row, _ in rows], pa.int32())}
        columns["doc_id"] = pa.array([passage.doc_id for _, passage in rows], pa.string())
        for name in ("index", "start", "end", "tokens"):
            columns[name] = pa.array([getattr(p, name) for _, p in rows], pa.int32())
        files = shard.files
        with atomic_path(files["passages"]) as temporary:
            pq.write_table(pa.table(columns), temporary)
        facts = {
            "shard": shard.number,
            "documents": len(documents),
            "passages": len(rows),
            "without_passages": sum(not group for group in groups),
            "documents_sha256": shard.sha256,
            "files": hashes(Path(shard.folder), files["passages"]),
        }
        write_json(files["split"], facts)
        return facts


class PassageEncoder:
    """Stages 2 and 3: encodes the sampled passages of a shard, then the rest, and compresses all.

    No passage is encoded twice: the sample's vectors, float16, are kept until they are compressed.
    ``load`` gives the model, and is called when the first passage has to be encoded.
    """

    def __init__(self, load: Callable[[], LateEncoder]) -> None:
        self._load = load
        self._encoder: LateEncoder | None = None
        self._codec: dict[str, dict[str, Any]] = {}

    def sample(self, shard: PlaidShard, sample_sha256: str) -> dict[str, Any]:
        """Encode the passages of the shard that are in ``work/sample.npy``; returns facts."""
        import numpy as np

        texts = _texts(shard)
        chosen = _chosen(shard, len(texts))
        vectors, lengths, truncated = self._vectors([texts[place] for place in chosen])
        files = shard.files
        save_array(files["vectors"], vectors)
        save_array(files["lengths"], np.asarray(lengths, np.int32))
        facts = {
            "shard": shard.number,
            "encoded": len(chosen),
            "truncated": truncated,
            "sample_sha256": sample_sha256,
            "documents_sha256": shard.sha256,
            "files": hashes(Path(shard.folder), files["vectors"], files["lengths"]),
        }
        write_json(files["sample"], facts)
        return facts

    def encode(self, shard: PlaidShard, codec_sha256: str) -> dict[str, Any]:
        """Encode what the sample left, compress all, write the chunk; returns facts."""
        import numpy as np
        import torch

        from polyray.indexes.plaid.codec import compress

        texts = _texts(shard)
        chosen = _chosen(shard, len(texts))
        rest = np.setdiff1d(np.arange(len(texts)), chosen)
        lengths: np.ndarray = np.zeros(len(texts), np.int64)
        parts, truncated = [], 0
        if len(chosen):
            known, lengths[chosen], truncated = _sampled(shard)
            parts.append((chosen, known))
        if len(rest):
            fresh, lengths[rest], cut_off = self._vectors([texts[place] for place in rest])
            parts.append((rest, fresh))
            truncated += cut_off
        vectors = _in_order(lengths, parts)
        codes, residuals = compress(torch.from_numpy(vectors), self._codec_of(shard, codec_sha256))
        files = chunk_files(Path(shard.folder), shard.chunk)
        save_tensor(files["codes"], codes)
        save_tensor(files["residuals"], residuals)
        write_json(files["doclens"], lengths.tolist(), indent=None)
        facts = {
            "shard": shard.number,
            "chunk": shard.chunk,
            "passages": len(texts),
            "embeddings": int(lengths.sum()),
            "encoded": len(rest),
            "truncated": truncated,
            "codec_sha256": codec_sha256,
            "documents_sha256": shard.sha256,
            "files": hashes(Path(shard.folder), *files.values()),
        }
        write_json(shard.files["encode"], facts)
        return facts

    def _vectors(self, texts: Sequence[str]) -> tuple[np.ndarray, list[int], int]:
        """float16 ``[tokens, dim]`` of all texts, tokens of each, and how many were cut."""
        import numpy as np

        from polyray.models.late import check_rows

        if self._encoder is None:
            self._encoder = self._load()
        rows = self._encoder.encode_passages(texts)
        check_rows(rows, self._encoder)
        stacked = np.concatenate(rows).astype(np.float16)
        return stacked, list(map(len, rows)), self._encoder.truncated(texts, passages=True)

    def _codec_of(self, shard: PlaidShard, codec_sha256: str) -> dict[str, Any]:
        if codec_sha256 not in self._codec:
            self._codec = {codec_sha256: read_codec(Path(shard.folder))}
        return self._codec[codec_sha256]


def _sampled(shard: PlaidShard) -> tuple[np.ndarray, np.ndarray, int]:
    """What :meth:`PassageEncoder.sample` has left of a shard."""
    import numpy as np

    files = shard.files
    truncated = read_json(files["sample"])["truncated"]
    return np.load(files["vectors"]), np.load(files["lengths"]), truncated


def _in_order(lengths: np.ndarray, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """One float16 matrix in passage order from parts that hold some of the passages each."""
    import numpy as np

    offsets = np.concatenate(([0], np.cumsum(lengths)))
    ordered: np.ndarray = np.zeros((int(offsets[-1]), parts[0][1].shape[1]), np.float16)
    for places, vectors in parts:
        start = 0
        for place in places:
            end = start + int(lengths[place])
            ordered[offsets[place] : offsets[place + 1]] = vectors[start:end]
            start = end
    return ordered


def _texts(shard: PlaidShard) -> list[str]:
    import pyarrow.parquet as pq

    from polyray.collections.store import read_shard

    documents = read_shard(Path(shard.documents), shard.sha256)
    columns = pq.read_table(shard.files["passages"], columns=["row", "start", "end"]).to_pydict()
    rows = zip(columns["row"], columns["start"], columns["end"], strict=True)
    return [documents[row].contents[start:end] for row, start, end in rows]


def _chosen(shard: PlaidShard, passages: int) -> np.ndarray:
    """Places within the shard of the passages that are in the sample, ascending."""
    import numpy as np

    sample = np.load(Path(shard.folder) / WORK / "sample.npy", mmap_mode="r")
    first = int(np.searchsorted(sample, shard.offset))
    last = int(np.searchsorted(sample, shard.offset + passages))
    return np.asarray(sample[first:last]) - shard.offset


def train_codec(
    folder: Path, shards: Sequence[PlaidShard], passages: int, settings: CodecSettings
) -> dict[str, Any]:
    """The second half of stage 2: k-means and buckets from all shards' samples; returns facts."""
    import numpy as np

    from polyray.indexes.plaid.codec import train

    names = [shard.files["vectors"] for shard in shards]
    parts = [np.load(name, mmap_mode="r") for name in names]
    sampled = sum(len(np.load(shard.files["lengths"], mmap_mode="r")) for shard in shards)
    vectors = np.concatenate(parts)
    tokens = len(vectors) / sampled * passages
    codec, facts = train(
        vectors,
        tokens,
        bits=settings.bits,
        iterations=settings.iterations,
        seed=settings.seed,
        buckets=settings.buckets,
    )
    paths = write_codec(folder, codec)
    facts |= {
        "sampled_passages": sampled,
        "sampled_vectors": len(vectors),
        "estimated_tokens": tokens,
        "samples": [sha256_of(shard.files["sample"]) for shard in shards],
        "files": hashes(folder, *paths),
    }
    write_json(folder / WORK / "codec.json", facts)
    return facts
