"""The config of a CLSD job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from polyray.config import Settings
from polyray.models.settings import EncoderSettings
from polyray.retrieve.settings import Name, Workers

__all__ = ["ClsdConfig", "ClsdDataset", "ClsdEncoder", "Mode"]

Mode = Literal["direct", "pivot"]
"""``direct``: the sentences as they are. ``pivot``: query and candidates in English translation."""


class ClsdDataset(Settings):
    """A file of sentence pairs with distractors; ``pivot`` holds the same rows in English."""

    name: Name
    path: str
    pivot: str | None = None


class ClsdEncoder(EncoderSettings):
    """A dense encoder under the name that tables give it."""

    name: Name

    @property
    def encoder(self) -> EncoderSettings:
        """The settings without the name."""
        return EncoderSettings(**self.model_dump(include=set(EncoderSettings.model_fields)))


class ClsdConfig(Settings):
    """Every encoder is measured on every data set, in both directions and in every mode."""

    kind: Literal["clsd"] = "clsd"
    name: Name
    datasets: tuple[ClsdDataset, ...] = Field(min_length=1)
    encoders: tuple[ClsdEncoder, ...] = Field(min_length=1)
    modes: tuple[Mode, ...] = Field(default=("direct",), min_length=1)
    output: str = "runs"
    workers: Workers = Workers()
    tracking: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> ClsdConfig:
        _once("data set", (dataset.name for dataset in self.datasets))
        _once("encoder", (encoder.name for encoder in self.encoders))
        _once("mode", self.modes)
        bare = [dataset.name for dataset in self.datasets if dataset.pivot is None]
        if "pivot" in self.modes and bare:
            raise ValueError(f"mode pivot needs a pivot file for {', '.join(bare)}")
        return self


def _once(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the {what} {name!r} stands twice")
        seen.add(name)
