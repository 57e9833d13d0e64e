"""Systems as a config names them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from polyray.config import Settings
from polyray.indexes.plaid.codec import Buckets
from polyray.indexes.plaid.search import PlaidSearch
from polyray.models.settings import EncoderSettings, LateSettings

__all__ = [
    "Bm25System",
    "DenseSystem",
    "FusionSystem",
    "LateSystem",
    "System",
    "Windows",
    "Workers",
]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]


class Windows(Settings):
    """Passage windows in tokens; the tokenizer is the encoder's own unless one is named."""

    length: int = Field(default=180, gt=0)
    stride: int = Field(default=90, gt=0)
    tokenizer: str | None = None

    @model_validator(mode="after")
    def _overlap(self) -> Windows:
        if self.stride > self.length:
            raise ValueError(f"stride {self.stride} is longer than length {self.length}")
        return self


class Bm25System(Settings):
    """BM25 on Anserini; whole documents unless ``passages`` is given."""

    kind: Literal["bm25"]
    name: Name = "bm25"
    k1: float = Field(default=0.9, ge=0)
    b: float = Field(default=0.4, ge=0, le=1)
    passages: Windows | None = None


class DenseSystem(EncoderSettings):
    """A dense bi-encoder over passages."""

    kind: Literal["dense"]
    name: Name
    passages: Windows = Windows()


class LateSystem(LateSettings):
    """Late interaction (ColBERT) over a PLAID index of passages.

    ``bits`` a dimension, ``kmeans_iterations`` and ``buckets`` are the codec's (``quantiles`` is
    colbert-ai's way to cut them), ``index_seed`` the seed of its sample; ``parts`` splits the
    collection into as many indexes, each searched by an actor.
    """

    kind: Literal["late"]
    name: Name
    passages: Windows = Windows()
    bits: Literal[1, 2, 4, 8] = 2
    kmeans_iterations: int = Field(default=4, gt=0)
    buckets: Buckets = "lloyd-max"
    index_seed: int = Field(default=42, ge=0)
    search: PlaidSearch = PlaidSearch()
    parts: int = Field(default=1, gt=0)
    memory_map: bool = False


class FusionSystem(Settings):
    """Reciprocal-rank fusion of systems named before it."""

    kind: Literal["fusion"]
    name: Name
    of: tuple[str, ...] = Field(min_length=2)
    k: int = Field(default=60, gt=0)


System = Annotated[
    Bm25System | DenseSystem | LateSystem | FusionSystem, Field(discriminator="kind")
]


class Workers(Settings):
    """How encoding is spread: actors and CPUs of each; chosen from the cluster where not given."""

    actors: int | None = Field(default=None, gt=0)
    cpus: int | None = Field(default=None, gt=0)
    address: str | None = None
    shard_documents: int = Field(default=128, gt=0)
