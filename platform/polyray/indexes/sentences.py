"""Vectors of a set of sentences, encoded in shards that a restarted job does not redo.

Each distinct text is encoded once, so that equal texts have equal vectors to the last bit. The
texts are sorted and cut into shards of :data:`SHARD`; a shard's bytes depend on its texts and the
encoder's settings alone. :class:`SentenceEncoder` is the plain worker and knows no Ray.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.files import atomic_path, read_json, sha256_of, sha256_text, write_json
from polyray.indexes.actors import map_on_actors
from polyray.indexes.manifest import read_manifest, settings_key, write_manifest
from polyray.indexes.shards import check_finite
from polyray.models.packaged import ensure_available
from polyray.models.settings import EncoderSettings

if TYPE_CHECKING:
    import numpy as np

    from polyray.models.dense import Encoder

__all__ = ["SHARD", "SentenceEncoder", "SentenceTask", "SentenceVectors", "encode_sentences"]

KIND = "sentences"
SHARD = 512
"""Texts in one shard."""


@dataclass(frozen=True, slots=True)
class SentenceTask:
    """One shard to encode: its texts, and the folder that its files go to."""

    number: int
    texts: list[str]
    output: str

    @property
    def sha256(self) -> str:
        """What ties the stored vectors to the texts."""
        return _digest(self.texts)

    @property
    def vectors(self) -> Path:
        """float32 ``[texts, dim]``."""
        return Path(self.output) / f"{self.number:05d}.vectors.npy"

    @property
    def done(self) -> Path:
        """The shard's facts, written last."""
        return Path(self.output) / f"{self.number:05d}.json"

    def is_whole(self) -> bool:
        """Whether the shard was finished from these texts and its vectors are as written."""
        if not self.done.is_file() or not self.vectors.is_file():
            return False
        facts = read_json(self.done)
        same = facts["texts_sha256"] == self.sha256
        return same and facts["vectors_sha256"] == sha256_of(self.vectors)


class SentenceEncoder:
    """Encodes shards of sentences, every one as a query: the task has no passages."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def __call__(self, task: SentenceTask) -> dict[str, Any]:
        """Encode one shard and return its facts, which also lie in its ``done`` file."""
        import numpy as np

        vectors: np.ndarray = self._encoder.encode_queries(task.texts).astype(np.float32)
        check_finite(vectors, self._encoder)
        with atomic_path(task.vectors) as temporary, temporary.open("wb") as handle:
            np.save(handle, vectors)
        facts = {
            "shard": task.number,
            "texts": len(task.texts),
            "texts_sha256": task.sha256,
            "truncated": self._encoder.truncated(task.texts, passages=False),
            "encoder": self._encoder.describe(),
            "vectors_sha256": sha256_of(task.vectors),
        }
        write_json(task.done, facts)
        return facts


class _Actor:
    """Ray's side of a worker: one row is one shard."""

    def __init__(self, settings: EncoderSettings, threads: int) -> None:
        from polyray.models.dense import TorchEncoder, load_encoder

        encoder = load_encoder(settings)
        if isinstance(encoder, TorchEncoder):
            import torch

            torch.set_num_threads(threads)
        self._worker = SentenceEncoder(encoder)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        facts = self._worker(SentenceTask(row["number"], list(row["texts"]), row["output"]))
        return {"shard": facts["shard"]}


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """float32 ``vectors`` ``[n, dim]`` in the order of the texts that were asked for.

    ``facts``: distinct ``texts``, how many of them were ``truncated``, and the ``encoder``'s own
    description. ``encoded_shards`` is how many shards were computed by this call.
    """

    vectors: np.ndarray
    facts: dict[str, Any]
    encoded_shards: int


def encode_sentences(
    texts: Sequence[str],
    settings: EncoderSettings,
    indexes: Path,
    *,
    prefix: str = KIND,
    actors: int | None = None,
    cpus: int | None = None,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SentenceVectors:
    """Vectors of ``texts``, from ``<indexes>/<prefix>-<key>/`` or computed by Ray Data actors.

    ``settings`` have to be resolved; the key is made of them and of the texts. Ray is started or
    joined only where something has to be encoded. Raises
    :class:`~polyray.errors.IndexDamaged` where a finished folder has been altered.
    """
    import numpy as np

    distinct = sorted(set(texts))
    described = {
        "encoder": settings.model_dump(exclude={"device", "passage_prompt"}),
        "texts_sha256": _digest(distinct),
        "shard": SHARD,
    }
    folder = indexes / f"{prefix}-{settings_key(described)}"
    tasks = [
        SentenceTask(number, distinct[start : start + SHARD], str(folder.resolve()))
        for number, start in enumerate(range(0, len(distinct), SHARD))
    ]
    encoded = 0
    if not (folder / "manifest.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        encoded = _encode(tasks, settings, actors, cpus, address, progress)
        _close(folder, tasks, described)
    manifest = read_manifest(folder, KIND)
    facts = {name: manifest[name] for name in ("texts", "truncated", "encoder")}
    if not tasks:
        return SentenceVectors(np.zeros((0, 0), np.float32), facts, encoded)
    rows = np.concatenate([np.load(task.vectors) for task in tasks])
    place = {text: row for row, text in enumerate(distinct)}
    return SentenceVectors(rows[[place[text] for text in texts]], facts, encoded)


def _encode(
    tasks: Sequence[SentenceTask],
    settings: EncoderSettings,
    actors: int | None,
    cpus: int | None,
    address: str | None,
    progress: Callable[[int, int], None] | None,
) -> int:
    from polyray.cluster import started

    pending = [task for task in tasks if not task.is_whole()]
    report = progress or (lambda done, total: None)
    report(len(tasks) - len(pending), len(tasks))
    if pending:
        ensure_available(settings.model, settings.revision)
    gpu = settings.device.startswith("cuda")
    with started(address=address) if pending else nullcontext():
        answers = map_on_actors(
            [asdict(task) for task in pending],
            _Actor,
            settings,
            gpu=gpu,
            actors=actors,
            cpus=cpus,
        )
        for done, _ in enumerate(answers, start=1):
            report(len(tasks) - len(pending) + done, len(tasks))
    return len(pending)


def _close(folder: Path, tasks: Sequence[SentenceTask], described: dict[str, Any]) -> None:
    facts = [read_json(task.done) for task in tasks]
    write_manifest(
        folder,
        KIND,
        described,
        texts=sum(fact["texts"] for fact in facts),
        truncated=sum(fact["truncated"] for fact in facts),
        encoder=facts[0]["encoder"] if facts else {},
    )


def _digest(texts: Sequence[str]) -> str:
    return sha256_text(json.dumps(list(texts), ensure_ascii=False))
