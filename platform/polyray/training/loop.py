"""The one loop that trains every student: sentence-transformers' trainer over :class:`Example` s.

Nothing here depends on the recipe: an example is a query, its passages and the teacher's scores.
Tokens go in exactly as they do when the finished model encodes. The loop knows no Ray; where
torch's process group is up, every rank takes its part of each batch, in the order of the examples.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from polyray.errors import ConfigError
from polyray.files import read_json, write_json
from polyray.models.settings import LateSettings
from polyray.training.settings import Contrastive, KlDivergence, TrainingSettings

if TYPE_CHECKING:
    from polyray.models.late import TorchLateEncoder
    from polyray.training.validation import Validation

__all__ = ["Example", "Trained", "train"]

WHOLE, DONE = "whole.json", "done.json"
METRIC = "ndcg_at_10"

Report = Callable[[dict[str, float]], None]


class Example(Protocol):
    """A query, ``n`` passages of which the first is the positive, and ``n`` teacher scores."""

    @property
    def query(self) -> str:
        """The query's text, in the recipe's language or mix."""
        ...

    @property
    def passages(self) -> tuple[str, ...]:
        """Texts of the passages."""
        ...

    @property
    def scores(self) -> tuple[float, ...]:
        """The teacher's score of each passage."""
        ...


@dataclass(frozen=True, slots=True)
class Trained:
    """What a finished training left: the step of the best checkpoint, curves and speed."""

    folder: Path
    facts: dict[str, Any]

    @property
    def history(self) -> list[dict[str, float]]:
        """Loss, learning rate, gradient norm and validation, by step."""
        return [dict(line) for line in self.facts["history"]]


def train(
    student: LateSettings,
    settings: TrainingSettings,
    examples: Sequence[Example],
    folder: Path,
    *,
    seed: int = 42,
    validation: Validation | None = None,
    card: dict[str, Any] | None = None,
    report: Report | None = None,
) -> Trained:
    """Train ``student`` on ``examples``, in their order.

    When they end they begin again: with their ``at``, where they have one, which knows further
    passes in an order of their own.

    ``folder`` gets ``best/`` and ``last/`` (colbert-ai's form where it can hold the model, with
    sentence-transformers' in a folder inside), ``done.json``, and while it runs ``checkpoints/``.
    A folder with whole checkpoints is gone on with from the last: same examples, optimiser, random
    numbers. A finished one is returned as it is. ``report`` is called on every rank.

    Raises :class:`~polyray.errors.TrainingFailed` for a loss that is not finite, naming the step.
    """
    from polyray.models.late import TorchLateEncoder, resolved_late

    folder = folder.resolve()
    if (folder / DONE).is_file():
        return Trained(folder, read_json(folder / DONE))
    rank, world = _rank()
    resolved = resolved_late(student.model_copy(update={"precision": "float32"}))
    lengths = {"query_maxlen": settings.query_maxlen, "doc_maxlen": settings.doc_maxlen}
    encoder = TorchLateEncoder(resolved.model_copy(update=lengths))
    own = encoder.lengths_of(student)
    _freeze(encoder, settings)
    arguments = _arguments(settings, folder / "checkpoints", resolved.device, seed, world)
    trainer = _trainer(encoder, settings, arguments, examples, validation, report)
    checkpoint = _last_whole(folder / "checkpoints", world, remove=rank == 0)
    started = time.perf_counter()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    seconds = time.perf_counter() - started
    if rank == 0:
        facts = _facts(trainer, settings, encoder, checkpoint, seconds) | (card or {})
        _keep(trainer, encoder, own, folder, facts)
        write_json(folder / DONE, facts)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    _wait()
    return Trained(folder, read_json(folder / DONE))


def _rank() -> tuple[int, int]:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def _wait() -> None:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.barrier()


def _freeze(encoder: TorchLateEncoder, settings: TrainingSettings) -> None:
    backbone = encoder.model[0].model
    pooler = getattr(backbone, "pooler", None)
    if pooler is not None:  # gives no token a vector
        pooler.requires_grad_(False)
    if settings.freeze.embeddings:
        backbone.embeddings.requires_grad_(False)
        _without_dropout(backbone.embeddings)
    if settings.freeze.layers:
        layers = getattr(getattr(backbone, "encoder", backbone), "layer", None)
        if layers is None or settings.freeze.layers > len(layers):
            have = "no layers that can be told" if layers is None else f"{len(layers)} layers"
            raise ConfigError(f"freeze.layers is {settings.freeze.layers}: the model has {have}")
        frozen = layers[: settings.freeze.layers]
        frozen.requires_grad_(False)
        _without_dropout(frozen)
        if settings.freeze.embeddings and settings.freeze.cache_mib:
            from polyray.training.trunk import FrozenTrunk

            padding = int(backbone.config.pad_token_id or 0)
            FrozenTrunk(backbone, len(frozen), padding, settings.freeze.cache_mib << 20)
    if not settings.dropout:
        _without_dropout(encoder.model)


def _without_dropout(part: Any) -> None:
    import torch

    for module in part.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def _arguments(settings: TrainingSettings, output: Path, device: str, seed: int, world: int) -> Any:
    from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainingArguments

    from polyray.models.device import choose_precision

    share, rest = divmod(settings.batch_size, world * settings.accumulate)
    if rest:
        raise ConfigError(
            f"batch_size {settings.batch_size} does not divide by {world} workers "
            f"x accumulate {settings.accumulate}"
        )
    precision = choose_precision(settings.precision, device)
    validates = settings.validate_every is not None
    return MultiVectorEncoderTrainingArguments(
        output_dir=str(output),
        max_steps=settings.steps,
        per_device_train_batch_size=share,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear" if settings.schedule == "linear" else "constant_with_warmup",
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip_norm,
        optim="adamw_torch",
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        activation_checkpointing=settings.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False},
        seed=seed,
        batch_sampler=_in_order,
        dataloader_drop_last=True,
        dataloader_pin_memory=device.startswith("cuda"),
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,
        use_cpu=not device.startswith("cuda"),
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,
        save_steps=settings.save_every,
        save_total_limit=2,
        eval_strategy="steps" if validates else "no",
        eval_steps=settings.validate_every,
        metric_for_best_model=f"eval_{METRIC}" if validates else None,
        greater_is_better=True if validates else None,
        report_to="none",
        disable_tqdm=True,
        log_level="error",
    )


def _in_order(dataset: Any, *, batch_size: int, drop_last: bool, **_: Any) -> Any:
    """Batches of consecutive examples: their order is the recipe's schedule, shuffled already."""
    from torch.utils.data import BatchSampler, SequentialSampler

    return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)


class _Collator:
    """Example numbers to ids and masks, exactly as encoding makes them."""

    valid_label_columns: tuple[str, ...] = ()

    def __init__(self, encoder: TorchLateEncoder, examples: Sequence[Example]) -> None:
        self._encoder, self._examples = encoder, examples
        self._ways = len(examples[0].passages)

    def __call__(self, rows: list[dict[str, int]]) -> dict[str, Any]:
        import torch

        chosen = [self._at(row["number"]) for row in rows]
        columns = [("query", [example.query for example in chosen])]
        for way in range(self._ways):
            columns.append((f"passage{way}", [example.passages[way] for example in chosen]))
        batch: dict[str, Any] = {"label": torch.tensor([example.scores for example in chosen])}
        for name, texts in columns:
            passages = name != "query"
            for key, value in self._encoder.features(texts, passages=passages).items():
                batch[f"{name}_{key}"] = value
            batch[f"{name}_task"] = "document" if passages else "query"
        return batch

    def _at(self, number: int) -> Example:
        if hasattr(self._examples, "at"):
            found: Example = self._examples.at(number)
            return found
        return self._examples[number % len(self._examples)]


def _trainer(
    encoder: TorchLateEncoder,
    settings: TrainingSettings,
    arguments: Any,
    examples: Sequence[Example],
    validation: Validation | None,
    report: Report | None,
) -> Any:
    from datasets import Dataset
    from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer
    from sentence_transformers.multi_vector_encoder.model_card import (
        MultiVectorEncoderModelCardCallback,
    )
    from transformers import PrinterCallback

    from polyray.training.callbacks import watcher

    if not len(examples):
        raise ConfigError("there are no examples to train on")
    if settings.validate_every is not None and validation is None:
        raise ConfigError("validate_every is given, but nothing to validate on")
    numbers = Dataset.from_dict({"number": range(settings.steps * settings.batch_size)})
    encoder.model.model_card_data.widget = [{"text": ""}]  # or it reads examples to show some
    watch = watcher(settings.batch_size, report)
    trainer = MultiVectorEncoderTrainer(
        model=encoder.model,
        args=arguments,
        train_dataset=numbers,
        loss=_loss(encoder.model, settings),
        evaluator=None if validation is None else validation.evaluator(encoder, METRIC),
        data_collator=_Collator(encoder, examples),
        callbacks=[watch],
    )
    for noisy in (PrinterCallback, MultiVectorEncoderModelCardCallback):
        trainer.remove_callback(noisy)
    return trainer


def _loss(model: Any, settings: TrainingSettings) -> Any:
    from sentence_transformers.multi_vector_encoder import losses

    chosen = settings.loss
    if isinstance(chosen, KlDivergence):
        return losses.MultiVectorDistillKLDivLoss(
            model,
            student_temperature=chosen.student_temperature,
            teacher_temperature=chosen.teacher_temperature,
        )
    if isinstance(chosen, Contrastive):
        return losses.MultiVectorMultipleNegativesRankingLoss(model, scale=1 / chosen.temperature)
    return losses.MultiVectorMarginMSELoss(model)


def _last_whole(folder: Path, world: int, *, remove: bool) -> Path | None:
    """The last checkpoint that was written to its end; others after it are removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    whole = [path for path in found if (path / WHOLE).is_file()]
    if whole and (trained := read_json(whole[-1] / WHOLE)["workers"]) != world:
        raise ConfigError(f"{folder} was begun with {trained} workers: go on with as many")
    for path in found:
        if remove and path not in whole:
            shutil.rmtree(path)
    _wait()
    return whole[-1] if whole else None


def _facts(
    trainer: Any,
    settings: TrainingSettings,
    encoder: TorchLateEncoder,
    resumed: Path | None,
    seconds: float,
) -> dict[str, Any]:
    state = trainer.state
    begun = 0 if resumed is None else int(resumed.name.split("-")[1])
    weights = list(encoder.model.parameters())
    done = (state.global_step - begun) * settings.batch_size
    return {
        "steps": state.global_step,
        "best_step": _best_step(state),
        "best": state.best_metric,
        "resumed_from": begun,
        "seconds": round(seconds, 3),
        "examples_per_second": round(done / seconds, 3),
        "trainable_weights": sum(w.numel() for w in weights if w.requires_grad),
        "weights": sum(w.numel() for w in weights),
        "history": [_plain(line) for line in state.log_history],
    }


def _plain(line: dict[str, Any]) -> dict[str, float]:
    dropped = ("epoch", "total_flos", "train_runtime")
    return {
        name: float(value)
        for name, value in line.items()
        if name not in dropped and isinstance(value, int | float) and math.isfinite(value)
    }


def _best_step(state: Any) -> int:
    best = state.best_model_checkpoint
    return int(Path(best).name.split("-")[1]) if best else int(state.global_step)


def _keep(
    trainer: Any,
    encoder: TorchLateEncoder,
    lengths: tuple[int, int],
    folder: Path,
    facts: dict[str, Any],
) -> None:
    """Write ``last/`` and ``best/``, each with its card."""
    from polyray.training.saving import save_student

    last = save_student(encoder, folder / "last", lengths, facts)
    best = trainer.state.best_model_checkpoint
    if best is None or _best_step(trainer.state) == trainer.state.global_step:
        shutil.rmtree(folder / "best", ignore_errors=True)
        shutil.copytree(last, folder / "best", copy_function=_linked)
        return
    from polyray.models.late import TorchLateEncoder

    settings = encoder.settings.model_copy(update={"model": str(best), "backbone": None})
    save_student(TorchLateEncoder(settings), folder / "best", lengths, facts)


def _linked(source: str, target: str) -> None:
    import os

    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
