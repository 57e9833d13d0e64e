"""The config of the mixed-query study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from polyray.collections.query_sources import Mix, TopicsSource
from polyray.config import Settings
from polyray.languages import check_codes
from polyray.records import Field as TopicField
from polyray.retrieve.settings import FusionSystem, System, Workers

__all__ = ["DocumentsSource", "MqirConfig", "QrelsSource"]


class DocumentsSource(Settings):
    """Documents in one or several languages.

    In every path ``{language}`` stands for the ISO 639-1 code, ``{LANGUAGE}`` for the same in
    capitals, ``{iso3}`` for the ISO 639-3 code.
    """

    path: str
    format: str | None = None


class QrelsSource(Settings):
    """Judgments; a language in the path is that of the documents."""

    path: str


class Queries(Settings):
    """Where the three variants of each topic come from, and which field is the query."""

    english: TopicsSource
    native: TopicsSource
    mixed: Mix | None = None
    field: TopicField = "title+description"


class MqirConfig(Settings):
    """Which documents, queries and systems; see the README for an example.

    ``targets``: ``english`` searches English documents with native, mixed and English queries;
    ``native`` searches the documents of each language with queries in it, mixed and in English.
    ``groups`` names systems that differ in their seed alone: a table of means and spread, and
    paired tests between groups.
    """

    kind: Literal["mqir"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    languages: tuple[str, ...] = Field(min_length=1)
    targets: tuple[Literal["english", "native"], ...] = Field(default=("english",), min_length=1)
    native_documents: tuple[str, ...] | None = None
    """Languages whose documents there are; all of ``languages`` where not given."""
    documents: DocumentsSource
    qrels: QrelsSource
    queries: Queries
    systems: tuple[System, ...] = Field(min_length=1)
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    measures: tuple[str, ...] = Field(default=("AP@100", "nDCG@20", "P@1", "R@100"), min_length=1)
    hits: int = Field(default=100, gt=0)
    workers: Workers = Workers()
    output: str = "runs"
    tracking: str | None = None

    @field_validator("languages", "native_documents")
    @classmethod
    def _known(cls, codes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        check_codes(codes or (), english=False)
        return codes

    @field_validator("measures")
    @classmethod
    def _measures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from polyray.errors import ConfigError
        from polyray.evaluation.measures import parse_measures

        try:
            return tuple(str(measure) for measure in parse_measures(names))
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _systems(self) -> MqirConfig:
        seen: list[str] = []
        for system in self.systems:
            if system.name in seen:
                raise ValueError(f"two systems are named {system.name!r}")
            if isinstance(system, FusionSystem):
                for part in system.of:
                    if part not in seen:
                        raise ValueError(f"system {system.name!r}: {part!r} is not named before it")
            seen.append(system.name)
        for group, members in self.groups.items():
            if not members:
                raise ValueError(f"group {group!r} has no systems")
            for name in members:
                if name not in seen:
                    raise ValueError(f"group {group!r}: there is no system {name!r}")
        return self
