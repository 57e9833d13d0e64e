"""Training a student: our job's examples a second against colbert-ai's own ``train()``."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from benchmarks._late import judgments, passages, questions
from benchmarks._measure import Row, interleaved, row

STEPS, ROUNDS, BATCH, WAYS = 8, 3, 8, 6
WARM = 2
"""Steps at the start that are not counted."""
QUERY_TOKENS, PASSAGE_TOKENS = 32, 64
TARGET = 1.0
WRAPPING_TARGET = 0.97


@dataclass(frozen=True)
class Row6:
    """An example: a question, its passage and five others, with scores."""

    query: str
    passages: tuple[str, ...]
    scores: tuple[float, ...]


def measure(quick: bool = False) -> list[Row]:
    """Examples a second of the loop in this process, under Ray, and of colbert-ai."""
    steps, rounds = (3, 1) if quick else (STEPS, ROUNDS)
    rows = _examples(steps * BATCH)
    facts = {
        "steps": steps,
        "queries": BATCH,
        "passages": WAYS,
        "query_tokens": QUERY_TOKENS,
        "passage_tokens": PASSAGE_TOKENS,
        "precision": "float32",
        "model": "packaged multilingual-e5-small, all weights trained",
    }
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        bare = partial(_speed, partial(_ours, root / "bare", rows, steps))
        theirs = partial(_speed, partial(_theirs, root / "theirs", rows, steps))
        pairs = interleaved(bare, theirs, rounds, warm_up=False)
        made = [
            row(
                "training a student",
                pairs,
                TARGET,
                other="colbert-ai's train()",
                unit="examples/s",
                **facts,
            )
        ]
        made.append(_wrapping(root, rows, steps, rounds, facts))
        made += _bfloat16(root, rows, steps, rounds, facts)
    return made


def _bfloat16(
    root: Path, rows: list[Row6], steps: int, rounds: int, facts: dict[str, Any]
) -> list[Row]:
    """What bfloat16 adds, where the processor gains by it."""
    from polyray.models.device import WORTHWHILE, probe_bfloat16

    gain = probe_bfloat16()
    if gain < WORTHWHILE:
        return []
    half = partial(_speed, partial(_ours, root / "half", rows, steps, "bfloat16"))
    whole = partial(_speed, partial(_ours, root / "bare", rows, steps))
    return [
        row(
            "training a student, bfloat16",
            interleaved(half, whole, rounds, warm_up=False),
            None,
            other="the same loop in float32",
            unit="examples/s",
            **facts | {"precision": "bfloat16", "probe": round(gain, 2)},
        )
    ]


def _wrapping(root: Path, rows: list[Row6], steps: int, rounds: int, facts: dict[str, Any]) -> Row:
    from polyray.cluster import started

    with started(num_cpus=os.cpu_count()):
        wrapped = partial(_speed, partial(_with_ray, root / "ray", rows, steps))
        bare = partial(_speed, partial(_ours, root / "bare", rows, steps))
        pairs = interleaved(wrapped, bare, rounds, warm_up=False)
    return row(
        "training a student under Ray Train",
        pairs,
        WRAPPING_TARGET,
        other="the same loop in this process",
        unit="examples/s",
        **facts,
    )


def _speed(run: Callable[[], list[float]]) -> float:
    """Examples a second, from the median time between two steps."""
    moments = run()[WARM - 1 :]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    return BATCH / statistics.median(gaps)


def _examples(count: int) -> list[Row6]:
    documents = passages(400)
    texts = {document.doc_id: document.contents for document in documents}
    ids = list(texts)
    answers = {qrel.query_id: qrel.doc_id for qrel in judgments() if qrel.grade > 0}
    made = []
    asked = questions(1000)
    for number in range(count):
        query = asked[number % len(asked)]
        right = answers.get(query.query_id)
        first = right if right in texts else ids[number % len(ids)]
        others = [ids[(number * 7 + step * 31) % len(ids)] for step in range(1, WAYS)]
        scores = (10.0, *(float(step % 3) for step in range(1, WAYS)))
        made.append(Row6(query.text, tuple(texts[i] for i in (first, *others)), scores))
    return made


def _settings(steps: int, precision: Literal["float32", "bfloat16"] = "float32") -> Any:
    from polyray.training.settings import TrainingSettings

    return TrainingSettings(
        steps=steps,
        batch_size=BATCH,
        learning_rate=1e-5,
        query_maxlen=QUERY_TOKENS,
        doc_maxlen=PASSAGE_TOKENS,
        precision=precision,
        log_every=1,
        save_every=10_000,
        clip_norm=2.0,
    )


def _student() -> Any:
    from polyray.models.settings import LateSettings

    return LateSettings(
        backbone="packaged:multilingual-e5-small", device="cpu", precision="float32"
    )


def _ours(
    folder: Path,
    rows: list[Row6],
    steps: int,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> list[float]:
    """Moments at which each step was done."""
    from polyray.training.loop import train

    shutil.rmtree(folder, ignore_errors=True)
    moments: list[float] = []
    train(
        _student(),
        _settings(steps, precision),
        rows,
        folder,
        report=lambda line: moments.append(time.perf_counter()) if "loss" in line else None,
    )
    return moments


@dataclass(frozen=True)
class _Timed:
    """A trial that writes down when its steps were done."""

    name: str
    folder: Path
    rows: list[Row6]
    steps: int

    def train(self, report: Callable[[dict[str, float]], None] | None) -> Any:
        from polyray.files import write_json
        from polyray.training.loop import train

        moments: list[float] = []

        def watched(line: dict[str, float]) -> None:
            if report is not None:
                report(line)
            if "loss" in line:
                moments.append(time.perf_counter())

        done = train(_student(), _settings(self.steps), self.rows, self.folder, report=watched)
        write_json(self.folder / "moments.json", moments)
        return done


def _with_ray(folder: Path, rows: list[Row6], steps: int) -> list[float]:
    from polyray.files import read_json
    from polyray.training.distributed import Trainers, run_trial

    shutil.rmtree(folder, ignore_errors=True)
    run_trial(_Timed("timed", folder, rows, steps), Trainers())
    moments: list[float] = read_json(folder / "moments.json")
    return moments


def _theirs(folder: Path, rows: list[Row6], steps: int) -> list[float]:
    """colbert-ai's ``train()`` called directly: its Trainer does not run on a processor."""
    import torch
    import torch.distributed as dist

    from polyray.models.colbert_ai import on_processor, prepare, quiet
    from polyray.models.late_files import checkpoint_of

    prepare()
    from colbert.infra import ColBERTConfig, RunConfig
    from colbert.infra import Run as ColbertRun
    from colbert.training import training

    shutil.rmtree(folder, ignore_errors=True)
    moments: list[float] = []
    numbers = {text: n for n, text in enumerate({t for r in rows for t in r.passages})}
    triples = [
        [n, *([numbers[text], score] for text, score in zip(r.passages, r.scores, strict=True))]
        for n, r in enumerate(rows)
    ]
    parallel = torch.nn.parallel.DistributedDataParallel
    shown, saved = training.print_progress, training.manage_checkpoints
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    training.print_progress = lambda scores: moments.append(time.perf_counter())
    training.manage_checkpoints = lambda *_, **__: None
    torch.nn.parallel.DistributedDataParallel = lambda module, **_: parallel(
        module, find_unused_parameters=True
    )
    try:
        with quiet(), on_processor(), ColbertRun().context(RunConfig(root=str(folder), nranks=1)):
            config = ColBERTConfig(
                checkpoint=checkpoint_of(_student()),
                bsize=BATCH,
                accumsteps=1,
                nway=WAYS,
                lr=1e-5,
                warmup=0,
                maxsteps=steps,
                doc_maxlen=PASSAGE_TOKENS,
                query_maxlen=QUERY_TOKENS,
                amp=False,
                rank=0,
                nranks=1,
                distillation_alpha=1.0,
            )
            training.train(config, triples, dict(enumerate(r.query for r in rows)), list(numbers))
    finally:
        training.print_progress, training.manage_checkpoints = shown, saved
        torch.nn.parallel.DistributedDataParallel = parallel
        dist.destroy_process_group()
    return moments
