"""What a worker does: documents of one shard -> passages -> float16 vectors, on disk.

This module knows no Ray. A shard's result depends on its documents and the settings alone:
passages are cut, sorted by length and batched inside the shard, so that the same shard gives the
same bytes on any worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import PolyrayError
from polyray.files import atomic_path, read_json, sha256_of, write_json

if TYPE_CHECKING:
    import numpy as np

    from polyray.models.dense import Encoder
    from polyray.text.tokenizers import WindowTokenizer

__all__ = ["ShardEncoder", "ShardTask", "check_finite", "is_whole", "read_vectors", "shard_paths"]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard to encode: where its documents lie and what they must hash to."""

    number: int
    documents: str
    sha256: str
    output: str


def shard_paths(folder: Path, number: int) -> dict[str, Path]:
    """The files of one encoded shard; ``done`` is written last."""
    stem = f"{number:05d}"
    return {
        "vectors": folder / f"{stem}.vectors.npy",
        "passages": folder / f"{stem}.passages.parquet",
        "done": folder / f"{stem}.json",
    }


def is_whole(task: ShardTask) -> bool:
    """Whether the shard was finished from the same documents and its files are as written."""
    paths = shard_paths(Path(task.output), task.number)
    if not paths["done"].is_file():
        return False
    done = read_json(paths["done"])
    return done["documents_sha256"] == task.sha256 and all(
        paths[name].is_file() and sha256_of(paths[name]) == done["files"][name]
        for name in ("vectors", "passages")
    )


class ShardEncoder:
    """Encodes shards; the model is loaded once, when the first shard comes."""

    def __init__(
        self, encoder: Encoder, tokenizer: WindowTokenizer, length: int, stride: int
    ) -> None:
        self._encoder, self._tokenizer = encoder, tokenizer
        self._length, self._stride = length, stride

    def __call__(self, task: ShardTask) -> dict[str, Any]:
        """Encode one shard and return its facts, which also lie in its ``done`` file."""
        import numpy as np

        from polyray.collections.store import read_shard
        from polyray.text.windows import cut

        documents = read_shard(Path(task.documents), task.sha256)
        by_document = cut(documents, self._tokenizer, self._length, self._stride)
        passages = [passage for group in by_document for passage in group]
        texts = [passage.text for passage in passages]
        vectors: np.ndarray = self._encoder.encode_passages(texts).astype(np.float16)
        check_finite(vectors, self._encoder)
        paths = shard_paths(Path(task.output), task.number)
        with atomic_path(paths["vectors"]) as temporary, temporary.open("wb") as handle:
            np.save(handle, vectors)
        self._write_passages(paths["passages"], passages)
        facts = {
            "shard": task.number,
            "documents": len(documents),
            "passages": len(passages),
            "without_passages": sum(not group for group in by_document),
            "truncated": self._encoder.truncated(texts, passages=True),
            "documents_sha256": task.sha256,
            "files": {name: sha256_of(paths[name]) for name in ("vectors", "passages")},
        }
        write_json(paths["done"], facts)
        return facts

    @staticmethod
    def _write_passages(path: Path, passages: list[Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = ("doc_id", "index", "start", "end", "tokens")
        types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
        columns = {
            name: pa.array([getattr(passage, name) for passage in passages], kind)
            for name, kind in zip(names, types, strict=True)
        }
        with atomic_path(path) as temporary:
            pq.write_table(pa.table(columns), temporary)


def check_finite(vectors: np.ndarray, encoder: Encoder) -> None:
    """Raise :class:`~polyray.errors.PolyrayError` for NaN or infinity: no search would show it."""
    import numpy as np

    if not np.isfinite(vectors).all():
        facts = encoder.describe()
        raise PolyrayError(
            f"{facts.get('model')} gave vectors that are not finite "
            f"in {facts.get('precision')}: try precision float32"
        )


def read_vectors(path: Path) -> np.ndarray:
    """float16 ``[n, dim]``, memory-mapped."""
    import numpy as np

    return np.load(path, mmap_mode="r")
