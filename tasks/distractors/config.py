"""The config of a distractor job."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from polyray.config import Settings
from polyray.languages import check_codes
from polyray.llm.settings import LlmSettings
from polyray.models.nli import NliSettings
from polyray.retrieve.settings import Name
from polyray.text.distractors.checks import DistractorLimits
from polyray.text.distractors.edits import RULES

__all__ = [
    "ColumnPairs",
    "DistractorsConfig",
    "JudgeSettings",
    "LinePairs",
    "LlmGenerator",
    "RulesGenerator",
    "TablePairs",
]


class TablePairs(Settings):
    """A CSV with a header, or a TSV where the name ends in ``.tsv``.

    Sentences stand under the languages' English names or codes, ids under ``Index`` or ``id``
    (else the record's number counts); other columns are not read. A published CLSD file is one.
    """

    kind: Literal["table"]
    path: str


class ColumnPairs(Settings):
    """A TSV without a header; ``columns``: language code -> number of its column from 1."""

    kind: Literal["columns"]
    path: str
    columns: dict[str, Annotated[int, Field(ge=1)]]

    @field_validator("columns")
    @classmethod
    def _distinct(cls, columns: dict[str, int]) -> dict[str, int]:
        if len(set(columns.values())) < len(columns):
            raise ValueError("two languages have one column")
        return columns


class LinePairs(Settings):
    """One file a language, a sentence a line; ``{language}`` is filled in the path."""

    kind: Literal["lines"]
    path: str

    @field_validator("path")
    @classmethod
    def _by_language(cls, path: str) -> str:
        if "{language}" not in path:
            raise ValueError("{language} has to stand in it: there is one file a language")
        return path


class RulesGenerator(Settings):
    """Distractors by rule; ``lexicon`` is from English to ``{language}``."""

    kind: Literal["rules"]
    rules: tuple[str, ...] = Field(default=RULES, min_length=1)
    lexicon: str | None = None
    seed: int = 42

    @field_validator("rules")
    @classmethod
    def _known(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [rule for rule in rules if rule not in RULES]:
            raise ValueError(f"{', '.join(unknown)}: there are {', '.join(RULES)}")
        return rules


class LlmGenerator(Settings):
    """Distractors by an LLM; sentences that got too few are asked for again, ``rounds`` in all."""

    kind: Literal["llm"]
    engine: LlmSettings
    prompt: str = "distractors"
    rounds: int = Field(default=3, ge=1)


class JudgeSettings(Settings):
    """Who says whether the meaning really changed: an LLM or an NLI model.

    A distractor that the LLM denies, or that entails its original and is entailed by it, is taken
    out.
    """

    engine: LlmSettings | None = None
    prompt: str = "meaning_changed"
    nli: NliSettings | None = None

    @model_validator(mode="after")
    def _one(self) -> JudgeSettings:
        if (self.engine is None) == (self.nli is None):
            raise ValueError("give either an engine (an LLM) or nli (a model)")
        return self


class DistractorsConfig(Settings):
    """Which sentences get distractors, from what, and what is asked of them.

    ``languages`` are the two of the pairs, ``targets`` those that get distractors (both where not
    given), ``limit`` takes the first pairs only.
    """

    kind: Literal["distractors"]
    name: Name
    pairs: Annotated[TablePairs | ColumnPairs | LinePairs, Field(discriminator="kind")]
    languages: tuple[str, str]
    targets: tuple[str, ...] | None = None
    n: int = Field(default=4, ge=1, le=20)
    limit: int | None = Field(default=None, ge=1)
    generator: Annotated[RulesGenerator | LlmGenerator, Field(discriminator="kind")]
    checks: DistractorLimits = DistractorLimits()
    judge: JudgeSettings | None = None
    output: str = "runs"
    answers: str | None = None
    """The SQLite file of LLM answers, on a local disk; else ``<output>/llm/answers.sqlite``."""
    tracking: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> DistractorsConfig:
        check_codes(self.languages)
        for code in self.targets or ():
            if code not in self.languages:
                raise ValueError(f"target {code!r} is none of {', '.join(self.languages)}")
        if isinstance(self.pairs, ColumnPairs) and set(self.pairs.columns) != set(self.languages):
            raise ValueError("pairs.columns: give the number of each language's column, no others")
        return self

    @property
    def engines(self) -> list[LlmSettings]:
        """The settings of every LLM that is asked."""
        own = [self.generator.engine] if self.generator.kind == "llm" else []
        judge = self.judge.engine if self.judge is not None else None
        return own if judge is None else [*own, judge]

    @property
    def wanted(self) -> tuple[str, ...]:
        """The languages that get distractors."""
        return self.languages if self.targets is None else self.targets

    def other(self, code: str) -> str:
        """The pair's other language."""
        return self.languages[1] if code == self.languages[0] else self.languages[0]
