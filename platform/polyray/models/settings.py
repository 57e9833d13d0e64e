"""What a user may say about an encoder, and what is filled in for the known families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["EncoderSettings", "Family", "LateSettings", "family_of"]

Precision = Literal["auto", "float32", "bfloat16", "float16"]


class EncoderSettings(BaseModel):
    """An encoder by name; whatever is left ``None`` or ``auto`` is chosen, logged and kept.

    ``model`` is ``packaged:NAME``, ``hashing:DIM``, a local folder or a hub id. ``max_length``
    counts special tokens and the prompt.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    query_prompt: str | None = None
    passage_prompt: str | None = None
    pooling: Literal["mean", "cls"] | None = None
    normalize: bool | None = None
    max_length: int | None = Field(default=None, gt=0)
    device: str = "auto"
    precision: Precision = "auto"
    batch_size: int | None = Field(default=None, gt=0)
    revision: str | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """Settings that a family of models needs and that its files often do not carry."""

    query_prompt: str = ""
    passage_prompt: str = ""
    pooling: Literal["mean", "cls"] | None = None
    normalize: bool = True
    source: str = "the model's own files"


_FAMILIES: tuple[tuple[str, Family], ...] = (
    ("e5", Family("query: ", "passage: ", source="E5 model cards (Wang et al. 2024)")),
    (
        "contriever",
        Family(pooling="mean", normalize=False, source="Contriever (Izacard et al. 2022)"),
    ),
)


def family_of(model: str) -> Family | None:
    """The family that a model's name shows, or None: then its own files decide.

    >>> family_of("intfloat/multilingual-e5-base").query_prompt
    'query: '

    The instruction-tuned E5 models carry their own prompts and are no member.
    """
    words = model.lower().replace("/", "-").replace(":", "-").replace("_", "-").split("-")
    if "instruct" in words:
        return None
    for name, family in _FAMILIES:
        if any(word == name or (name != "e5" and name in word) for word in words):
            return family
    return None


class LateSettings(BaseModel):
    """A late-interaction model: a checkpoint by name, or a new one from a backbone.

    ``model`` is a colbert-ai, PyLate or sentence-transformers checkpoint (hub id or folder) or
    ``hashing:DIM``. ``backbone`` is any encoder (``packaged:NAME``, hub id, folder) that gets
    markers and a projection to ``dim`` from ``seed``: untrained, and called so in every figure.
    ``doc_maxlen`` and ``query_maxlen`` count special tokens and the marker; where they are not
    given the checkpoint's own stand, or 183 and 32.

    A new model reads as ColBERT does, or departs from it in one point or several: ``prompts`` for
    queries and passages stand instead of markers, ``marker_start: prompt`` lets the markers begin
    as the mean embedding of the words "query" and "passage", ``expansion: false`` fills no query
    up with [MASK], ``score_specials: false`` leaves special tokens, markers among them, out of
    MaxSim.
    All but ``marker_start`` make models that colbert-ai's own form cannot hold.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    backbone: str | None = None
    prompts: tuple[str, str] | None = None
    marker_start: Literal["random", "prompt"] = "random"
    expansion: bool = True
    score_specials: bool = True
    dim: int = Field(default=128, gt=0, multiple_of=8)
    projection: Literal["random", "identity"] = "random"
    seed: int = Field(default=42, ge=0)
    mask_punctuation: bool = True
    doc_maxlen: int | None = Field(default=None, gt=3)
    query_maxlen: int | None = Field(default=None, gt=3)
    device: str = "auto"
    precision: Precision = "auto"
    batch_size: int | None = Field(default=None, gt=0)
    revision: str | None = None
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> LateSettings:
        if (self.model is None) == (self.backbone is None):
            raise ValueError("name either a model (a checkpoint) or a backbone to make one of")
        return self

    @property
    def is_light(self) -> bool:
        """Whether it runs without torch and has no tokenizer of its own."""
        return (self.model or "").startswith("hashing:")

    @property
    def label(self) -> str:
        """What to call the model in tables: its name, or that of its backbone, untrained."""
        if self.model is not None:
            return self.model
        return f"ColBERT of {self.backbone}, untrained {self.projection} projection to {self.dim}"
