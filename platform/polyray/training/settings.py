"""How a student is trained: loss, optimiser, lengths, what is frozen, when it is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from polyray.config import Settings

__all__ = ["Contrastive", "Freeze", "KlDivergence", "Loss", "MarginMse", "TrainingSettings"]


class KlDivergence(Settings):
    """KL divergence of the student's softmax over a query's passages from the teacher's.

    ColBERTv2 (Santhanam et al. 2022, section 3.2); Translate-Distill (Yang et al. 2024).
    """

    kind: Literal["kl"] = "kl"
    student_temperature: float = Field(default=1.0, gt=0)
    teacher_temperature: float = Field(default=1.0, gt=0)


class MarginMse(Settings):
    """Squared error of the margins to the first passage (Hofstätter et al. 2020)."""

    kind: Literal["margin_mse"]


class Contrastive(Settings):
    """Cross entropy of the first passage against the query's others and the batch's."""

    kind: Literal["contrastive"]
    temperature: float = Field(default=1.0, gt=0)


Loss = Annotated[KlDivergence | MarginMse | Contrastive, Field(discriminator="kind")]


class Freeze(Settings):
    """What of the backbone keeps its weights: the embeddings, and so many of its lowest layers.

    Frozen layers have no dropout. Where the embeddings are frozen, too, what they make of a text is
    computed once and kept, up to ``cache_mib`` of them; 0 computes it every time.
    """

    embeddings: bool = False
    layers: int = Field(default=0, ge=0)
    cache_mib: int = Field(default=1024, ge=0)


class TrainingSettings(Settings):
    """One student's training, the same for every recipe.

    ``batch_size`` counts queries of one optimiser step over all workers; each worker takes
    ``batch_size / workers / accumulate`` of them at once. ``query_maxlen`` and ``doc_maxlen``
    count special tokens and the marker, as those of the model do.
    """

    steps: int = Field(default=200_000, gt=0)
    batch_size: int = Field(default=64, gt=0)
    accumulate: int = Field(default=1, gt=0)
    learning_rate: float = Field(default=5e-6, gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip_norm: float = Field(default=1.0, ge=0)
    """Largest norm of all gradients together; 0 does not clip."""
    schedule: Literal["linear", "constant"] = "linear"
    loss: Loss = KlDivergence()
    freeze: Freeze = Freeze()
    dropout: bool = True
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    gradient_checkpointing: bool = False
    query_maxlen: int = Field(default=32, gt=3)
    doc_maxlen: int = Field(default=183, gt=3)
    log_every: int = Field(default=10, gt=0)
    validate_every: int | None = Field(default=None, gt=0)
    save_every: int = Field(default=1000, gt=0)

    @model_validator(mode="after")
    def _whole(self) -> TrainingSettings:
        if self.batch_size % self.accumulate:
            raise ValueError("batch_size must be a multiple of accumulate")
        if self.validate_every is not None and self.save_every % self.validate_every:
            raise ValueError("save_every must be a multiple of validate_every")
        return self
