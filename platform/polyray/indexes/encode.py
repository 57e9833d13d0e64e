"""The distributed stage around :class:`~polyray.indexes.shards.ShardEncoder`: Ray Data actors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from polyray.indexes.actors import map_on_actors
from polyray.indexes.shards import ShardEncoder, ShardTask, is_whole
from polyray.models.packaged import ensure_available
from polyray.models.settings import EncoderSettings

__all__ = ["EncodeSettings", "encode_shards", "load_worker"]


@dataclass(frozen=True, slots=True)
class EncodeSettings:
    """What every worker of one stage is made from."""

    encoder: EncoderSettings
    tokenizer: str
    length: int
    stride: int


def load_worker(settings: EncodeSettings, threads: int | None = None) -> ShardEncoder:
    """The plain worker, with its model; ``threads`` bounds torch's threads on a CPU."""
    from polyray.models.dense import is_light, load_encoder
    from polyray.text.tokenizers import window_tokenizer

    if threads is not None and not is_light(settings.encoder.model):
        import torch

        torch.set_num_threads(threads)
    return ShardEncoder(
        load_encoder(settings.encoder),
        window_tokenizer(settings.tokenizer),
        settings.length,
        settings.stride,
    )


class _Actor:
    """Ray's side of a worker: one row is one shard."""

    def __init__(self, settings: EncodeSettings, threads: int) -> None:
        self._worker = load_worker(settings, threads)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        facts = self._worker(ShardTask(**row))
        return {key: facts[key] for key in ("shard", "documents", "passages")}


def encode_shards(
    tasks: Sequence[ShardTask],
    settings: EncodeSettings,
    *,
    actors: int | None = None,
    cpus: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Encode all shards that are not whole yet; returns how many were encoded now.

    Needs a running Ray; every worker must see the folders that the tasks name. The rows are shard
    numbers and paths, so that block layout and scheduling cannot change a result.
    """
    pending = [task for task in tasks if not is_whole(task)]
    if progress is not None:
        progress(len(tasks) - len(pending), len(tasks))
    if pending:
        ensure_available(settings.encoder.model, settings.encoder.revision)
    rows = [asdict(task) for task in pending]
    gpu = settings.encoder.device.startswith("cuda")
    answers = map_on_actors(rows, _Actor, settings, gpu=gpu, actors=actors, cpus=cpus)
    for done, _facts in enumerate(answers, start=1):
        if progress is not None:
            progress(len(tasks) - len(pending) + done, len(tasks))
    return len(pending)
