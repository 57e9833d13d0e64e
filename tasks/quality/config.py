"""The config of the query-quality study."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from polyray.collections.query_sources import Mix, TopicsSource
from polyray.config import Settings
from polyray.languages import check_codes
from polyray.llm.settings import LlmSettings
from polyray.records import Field as TopicField
from polyray.retrieve.settings import Name
from polyray.text.parts_of_speech import TaggerName

__all__ = [
    "FileTags",
    "LinguaTags",
    "LlmRatings",
    "LlmTags",
    "QualityConfig",
    "QualityQueries",
    "TokenSource",
    "Variant",
]

Variant = Literal["native", "mixed", "english"]


class QualityQueries(Settings):
    """One set of queries (title, description, ...) in its three variants.

    ``field`` is the column of the files that is the query.
    """

    name: Name
    english: TopicsSource
    native: TopicsSource
    mixed: Mix
    field: TopicField = "title"


class LinguaTags(Settings):
    """lingua on every word; ``stay``: see :class:`polyray.text.token_languages.LinguaTagger`."""

    kind: Literal["lingua"]
    name: Name = "lingua"
    stay: float = Field(default=0.5, gt=0, lt=1)


class FileTags(Settings):
    """Tags from files; ``{queries}``, ``{language}`` and ``{variant}`` are filled in the path."""

    kind: Literal["file"]
    name: Name = "file"
    path: str

    @field_validator("path")
    @classmethod
    def _fillable(cls, path: str) -> str:
        try:
            path.replace("${", "$").format(queries="", language="", variant="")
        except (KeyError, ValueError, IndexError):
            raise ValueError("only {queries}, {language} and {variant} can be filled in") from None
        return path


class LlmTags(Settings):
    """Tags by an LLM; ``prompt`` is the name of a template or the path of one."""

    kind: Literal["llm"]
    name: Name = "llm"
    engine: LlmSettings
    prompt: str = "token_languages"


TokenSource = Annotated[LinguaTags | FileTags | LlmTags, Field(discriminator="kind")]


class LlmRatings(Settings):
    """Accuracy and fluency of mixed queries by an LLM, against ``original``."""

    engine: LlmSettings
    prompt: str = "ratings"
    original: Literal["native", "english"] = "native"


class QualityConfig(Settings):
    """Which queries are measured, and by what.

    The first of ``token_languages`` is the one that the paper's tables are filled from.
    ``ratings`` and ``preferences`` are CSV files of people's judgments; see
    :mod:`tasks.quality.human`.
    """

    kind: Literal["quality"]
    name: Name
    languages: tuple[str, ...] = Field(min_length=1)
    queries: tuple[QualityQueries, ...] = Field(min_length=1)
    token_languages: tuple[TokenSource, ...] = Field(
        default=(LinguaTags(kind="lingua"),), min_length=1
    )
    llm_ratings: LlmRatings | None = None
    ratings: str | None = None
    preferences: str | None = None
    tagger: TaggerName = "any"
    output: str = "runs"
    answers: str | None = None
    """The SQLite file of LLM answers, on a local disk; else ``<output>/llm/answers.sqlite``."""
    tracking: str | None = None

    @property
    def engines(self) -> list[LlmSettings]:
        """The settings of every LLM that is asked."""
        own = [source.engine for source in self.token_languages if isinstance(source, LlmTags)]
        return own if self.llm_ratings is None else [*own, self.llm_ratings.engine]

    @field_validator("languages")
    @classmethod
    def _known(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        check_codes(codes, english=False)
        return codes

    @model_validator(mode="after")
    def _names(self) -> QualityConfig:
        for what, items in (("query sets", self.queries), ("sources", self.token_languages)):
            names = [item.name for item in items]
            if len(set(names)) != len(names):
                raise ValueError(f"two {what} have one name: {', '.join(names)}")
        return self
