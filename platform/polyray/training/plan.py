"""What a training study would take, from its config alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyray.evaluation.tables import Table
from polyray.models.settings import LateSettings
from polyray.training.settings import TrainingSettings
from polyray.training.study import Student, TrainConfig, students

__all__ = ["Plan", "planned", "training_flop"]

SHAPES = {
    "bert-base-multilingual-uncased": (12, 768, 81_300_000),
    "bert-base-multilingual-cased": (12, 768, 92_200_000),
    "FacebookAI/xlm-roberta-base": (12, 768, 192_400_000),
    "FacebookAI/xlm-roberta-large": (24, 1024, 256_500_000),
}
"""Layers, width and embedding weights of backbones that need not be here to be planned for."""
PEAK = 312e12
"""Dense bf16 FLOP/s of an A100, the study's GPU (NVIDIA's data sheet)."""
UTILISATION = 0.45
"""Share of the peak that encoders of this size reach in training, as a rule."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The table that the job prints, and the folder where the study would lie."""

    tables: list[Table]
    folder: Path
    notes: list[str]


def training_flop(layers: int, width: int, settings: TrainingSettings, nway: int) -> float:
    """Floating-point operations of one training.

    Twelve weights a layer and width squared; two operations a weight and token forwards, four
    backwards (Kaplan et al. 2020), forwards alone for frozen layers; attention is left out.
    """
    tokens = settings.batch_size * (nway * settings.doc_maxlen + settings.query_maxlen)
    frozen = min(settings.freeze.layers, layers)
    weights = 12 * width * width
    return float(settings.steps * tokens * weights * (6 * (layers - frozen) + 2 * frozen))


def planned(config: TrainConfig) -> Plan:
    """Trials, examples, steps, GPU hours and disk of a config; reads no examples."""
    folders = dict.fromkeys([*config.recipes, "validation"], Path("not-prepared"))
    trials = students(config, Path(config.output) / config.name, folders, {})
    shape = _shape(config.student)
    rows = [_row(trial, config, shape) for trial in trials]
    columns = ["student", "recipe", "seed", "steps", "queries", "passages", "lr", "GPU h", "GB"]
    hours = [float(row[7]) for row in rows if row[7] is not None]
    notes = [
        f"{len(trials)} students of {config.student.label}",
        f"a batch of {config.training.batch_size} queries x {config.source.nway} passages on "
        f"{config.workers.workers} workers",
        f"settings: {config.training.model_dump_json()}",
    ]
    if hours:
        notes.append(
            f"{sum(hours):.1f} GPU hours in all, at {UTILISATION:.0%} of an A100's "
            f"{PEAK / 1e12:.0f} TFLOP/s in bf16; the machine at hand decides"
        )
    else:
        notes.append("the backbone's size is not known here: no estimate of GPU hours and disk")
    table = Table(columns, rows, f"{config.name}: plan, nothing was trained")
    return Plan([table], Path(config.output) / config.name, notes)


def _row(trial: Student, config: TrainConfig, shape: tuple[int, int, int] | None) -> list[Any]:
    settings = trial.training
    queries = settings.steps * settings.batch_size
    hours = disk = None
    if shape is not None:
        layers, width, embeddings = shape
        flop = training_flop(layers, width, settings, config.source.nway)
        hours = round(flop / (PEAK * UTILISATION) / 3600, 2)
        weights = 12 * layers * width * width + embeddings
        # best and last in two forms, two checkpoints with weights and two moments of AdamW
        disk = round((4 * weights * 4 + 2 * weights * 12) / 1e9, 1)
    return [
        trial.name,
        trial.recipe.kind,
        trial.seed,
        settings.steps,
        queries,
        queries * config.source.nway,
        f"{settings.learning_rate:g}",
        hours,
        disk,
    ]


def _shape(student: LateSettings) -> tuple[int, int, int] | None:
    """Layers, width and embedding weights of the backbone, where they can be told offline."""
    name = str(student.backbone or student.model)
    if name in SHAPES:
        return SHAPES[name]
    from polyray.errors import PolyrayError
    from polyray.files import read_json
    from polyray.models.late_files import checkpoint_of
    from polyray.models.packaged import folder_of

    try:
        folder = folder_of(name) if student.backbone else Path(checkpoint_of(student))
        config = read_json(folder / "config.json")
        width = int(config["hidden_size"])
        return int(config["num_hidden_layers"]), width, int(config["vocab_size"]) * width
    except (PolyrayError, OSError, KeyError):
        return None
