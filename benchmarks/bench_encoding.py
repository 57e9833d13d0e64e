"""Encoding passages: the Ray Data stage against the plain call, and what our batches gain."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._measure import Row, interleaved, row, seconds, threads
from benchmarks._text import documents, source

MODEL = "packaged:multilingual-e5-small"
BATCH = 8
LENGTH, STRIDE = 180, 90
RUN_SECONDS, SHORT_SECONDS, FORCED_SECONDS = 65, 12, 4
ROUNDS, FORCED_ROUNDS = 5, 3
SHARD_DOCUMENTS, SMALL_SHARD_DOCUMENTS = 128, 16
TARGET = 0.95
UNIT = "passages/s"


@dataclass(frozen=True)
class Material:
    """A store of documents, and the passages of each of its shards."""

    store: Any
    passages: list[list[str]]

    @property
    def counted(self) -> list[str]:
        """The passages of all shards but the first, on which the workers warm up."""
        return [text for shard in self.passages[1:] for text in shard]


def prepare(folder: Path, wanted: int, shard_documents: int) -> Material:
    """Real documents with about ``wanted`` passages behind the first shard."""
    from polyray.collections.store import DocumentStore
    from polyray.text.tokenizers import window_tokenizer
    from polyray.text.windows import cut

    tokenizer = window_tokenizer(MODEL)
    shards: list[list[str]] = []
    count = 0
    while sum(map(len, shards[1:])) < wanted:
        pool = documents(count + shard_documents)[count:]
        count += len(pool)
        groups = cut(pool, tokenizer, LENGTH, STRIDE)
        shards.append([passage.text for group in groups for passage in group])
    store = DocumentStore.build(folder, documents(count), "bench", small=shard_documents)
    return Material(store, shards)


def stage_rate(material: Material, *, actors: int, cpus: int, skipped: int = 1) -> float:
    """Passages a second of the whole stage after its first ``skipped`` shards.

    The clock starts when a worker has written that shard, so that start-up and warm-up are
    apart, and stops when the driver has the last answer. Reading, cutting, checking and writing
    are within.
    """
    from polyray.files import read_json
    from polyray.indexes.encode import EncodeSettings, encode_shards
    from polyray.indexes.shards import ShardTask, shard_paths
    from polyray.models.settings import EncoderSettings

    encoder = EncoderSettings(model=MODEL, device="cpu", precision="float32", batch_size=BATCH)
    settings = EncodeSettings(encoder, MODEL, LENGTH, STRIDE)
    store = material.store
    answers: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        tasks = [
            ShardTask(number, str(store.folder / "shards" / shard["file"]), shard["sha256"], name)
            for number, shard in enumerate(store.manifest["shards"])
        ]
        encode_shards(
            tasks,
            settings,
            actors=actors,
            cpus=cpus,
            progress=lambda done, total: answers.append(time.time()),
        )
        files = [shard_paths(Path(name), task.number)["done"] for task in tasks]
        written = sorted((file.stat().st_mtime, read_json(file)["passages"]) for file in files)
    return sum(count for _, count in written[skipped:]) / (answers[-1] - written[skipped - 1][0])


def plain_model() -> Any:
    """The same model as sentence-transformers loads it, in float32."""
    import torch
    from sentence_transformers import SentenceTransformer

    from polyray.models.packaged import folder_of

    torch.set_num_threads(threads())
    kept = {"add_pooling_layer": False, "dtype": torch.float32}
    return SentenceTransformer(str(folder_of(MODEL)), device="cpu", model_kwargs=kept)


def plain_rate(model: Any, texts: Sequence[str]) -> float:
    """Passages a second of the plain call, which sorts all its texts by length."""
    call = partial(
        model.encode,
        list(texts),
        prompt="passage: ",
        batch_size=BATCH,
        normalize_embeddings=True,
        show_progress_bar=False,
    )
    return len(texts) / seconds(call)


def encoder_rate(encoder: Any, texts: Sequence[str]) -> float:
    """Passages a second of polyray's encoder in this process."""
    return len(texts) / seconds(lambda: encoder.encode_passages(texts))


def measure(quick: bool = False) -> list[Row]:
    """The stage against the plain call, the encoder alone, and how actors share the cores."""
    from polyray.cluster import started

    model = plain_model()
    probe = [text for shard in _probe_passages() for text in shard]
    plain_rate(model, probe[:BATCH])
    rate = plain_rate(model, probe)
    with tempfile.TemporaryDirectory() as name, started(num_cpus=threads()):
        folder = Path(name)
        rows = [_stage_row(folder / "long", model, rate, quick)]
        rows += _encoder_rows(model, rate, quick)
        if threads() > 1:
            rows.append(_actors_row(folder / "small", rate, quick))
    return rows


def _probe_passages() -> list[list[str]]:
    with tempfile.TemporaryDirectory() as name:
        return prepare(Path(name) / "probe", 1, 16).passages


def _stage_row(folder: Path, model: Any, rate: float, quick: bool) -> Row:
    wanted = 16 if quick else int(rate * RUN_SECONDS)
    material = prepare(folder, wanted, 8 if quick else SHARD_DOCUMENTS)
    texts = material.counted
    pairs = interleaved(
        partial(stage_rate, material, actors=1, cpus=threads()),
        partial(plain_rate, model, texts),
        1 if quick else ROUNDS,
        warm_up=False,
    )
    return row(
        "encoding with Ray Data",
        pairs,
        TARGET,
        other=f"SentenceTransformer.encode, batch_size={BATCH}",
        unit=UNIT,
        **_shared(len(texts)),
        precision="float32",
        shard_documents=len(material.store.read(0)),
        seconds_a_run=[round(len(texts) / value, 1) for value in pairs.ours],
    )


def _encoder_rows(model: Any, rate: float, quick: bool) -> list[Row]:
    from polyray.models.dense import load_encoder
    from polyray.models.device import probe_bfloat16
    from polyray.models.settings import EncoderSettings

    chosen = load_encoder(EncoderSettings(model=MODEL, device="cpu"))
    precision = chosen.describe()["precision"]
    plan = [(f"encoder, chosen precision ({precision})", chosen, SHORT_SECONDS, ROUNDS)]
    if precision != "bfloat16":
        forced = load_encoder(EncoderSettings(model=MODEL, device="cpu", precision="bfloat16"))
        plan.append(("encoder, bfloat16 forced", forced, FORCED_SECONDS, FORCED_ROUNDS))
    rows = []
    for stage, encoder, length, rounds in plan:
        with tempfile.TemporaryDirectory() as name:
            wanted = 16 if quick else max(40, int(rate * length))
            texts = prepare(Path(name) / "texts", wanted, 16).counted
        pairs = interleaved(
            partial(encoder_rate, encoder, texts),
            partial(plain_rate, model, texts),
            1 if quick else rounds,
            warm_up=False,
        )
        plain = f"SentenceTransformer.encode, float32, batch_size={BATCH}"
        gain = round(probe_bfloat16(), 2)
        rows.append(
            row(stage, pairs, None, other=plain, unit=UNIT, probe=gain, **_shared(len(texts)))
        )
    return rows


def _actors_row(folder: Path, rate: float, quick: bool) -> Row:
    wanted = 32 if quick else int(rate * RUN_SECONDS * 0.7)
    material = prepare(folder, wanted, 2 if quick else SMALL_SHARD_DOCUMENTS)
    # Both actors have loaded their model and finished a shard by then.
    skipped = max(2, len(material.passages) // 4)
    pairs = interleaved(
        partial(stage_rate, material, actors=threads(), cpus=1, skipped=skipped),
        partial(stage_rate, material, actors=1, cpus=threads(), skipped=skipped),
        1 if quick else FORCED_ROUNDS,
        warm_up=False,
    )
    return row(
        f"{threads()} one-thread actors",
        pairs,
        None,
        other=f"one actor of {threads()} threads",
        unit=UNIT,
        **_shared(sum(map(len, material.passages[skipped:]))),
        shards=len(material.passages),
    )


def _shared(passages: int) -> dict[str, Any]:
    return {"model": MODEL, "passages": passages, "text": source(), "batch_size": BATCH}
