"""The three data recipes of the study: one schedule, three ways of making the query text.

MiLQ's models (section 4.1) differ in their training data alone. Here all recipes see the same
(example, language) pairs in the same order with the same passages and scores
(:class:`Schedule`, which knows no recipe); :meth:`Recipe.query_language` and
:class:`QueryTexts` are all that sets them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator

from polyray.config import Settings
from polyray.errors import ConfigError
from polyray.files import resolve
from polyray.languages import check_codes
from polyray.languages import language as language_row
from polyray.text.switch_settings import RATE, SEED, SwitchOptions, SwitchSettings

__all__ = ["QueryTexts", "Recipe", "Schedule", "in_language"]

if TYPE_CHECKING:
    from polyray.text.switching import Switcher

SCHEDULED = "{language}"
"""As ``passage_language``: passages in the language that the schedule gives an example."""


class Recipe(Settings):
    """How the query of an example is made; ``query_languages`` are the languages of the schedule.

    * ``mono``: the query in the passages' own language, whatever the schedule says;
    * ``cross``: the query in the other language of the pair: the scheduled one where passages are
      in a fixed language, the ``pivot`` where passages are in the scheduled one (``{language}``);
    * ``mixed``: the pivot's query, switched word by word into the scheduled language through
      ``lexicon`` (pivot word to translation); with ``switched: native`` the scheduled language's
      own query, switched into the pivot through the same lexicon turned round. ``options`` are
      the variants of switching; the source language is known from the recipe.
    """

    kind: Literal["mono", "cross", "mixed"]
    query_languages: tuple[str, ...] = Field(min_length=1)
    passage_language: str = "en"
    pivot: str = "en"
    lexicon: str | None = None
    rate: float = Field(default=RATE, ge=0, le=1)
    seed: int = SEED
    switched: Literal["pivot", "native"] = "pivot"
    options: SwitchOptions = SwitchOptions()

    @field_validator("query_languages", "passage_language", "pivot")
    @classmethod
    def _known(cls, given: str | tuple[str, ...]) -> str | tuple[str, ...]:
        check_codes([given] if isinstance(given, str) else given, also=SCHEDULED)
        return given

    @model_validator(mode="after")
    def _sound(self) -> Recipe:
        if SCHEDULED in (*self.query_languages, self.pivot):
            raise ValueError(f"only passage_language may be {SCHEDULED}")
        if (self.kind == "mixed") != (self.lexicon is not None):
            raise ValueError("a lexicon belongs to the kind mixed, and that needs one")
        if self.options != SwitchOptions() and self.kind != "mixed":
            raise ValueError("options of switching belong to the kind mixed")
        if self.options.choice == "weight" and self.switched == "native":
            raise ValueError("a lexicon turned round has no weights to choose by")
        for language in self.query_languages:
            if self.kind == "mixed" and language == self.pivot:
                raise ValueError(f"mixed: {language} is the pivot, nothing to switch between")
            if self.kind == "cross" and self.query_language(language) == self.passages_in(language):
                raise ValueError(f"cross: query and passages would both be in {language}")
        return self

    def located(self) -> Recipe:
        """The same with the lexicon's whole path: workers have other folders and variables."""
        if self.lexicon is None:
            return self
        return self.model_copy(update={"lexicon": str(resolve(self.lexicon).absolute())})

    def passages_in(self, language: str) -> str:
        """Language of the passages of an example that the schedule gives ``language``."""
        return language if self.passage_language == SCHEDULED else self.passage_language

    def query_language(self, language: str) -> str:
        """Language whose query file the text of such an example is read from."""
        passages = self.passages_in(language)
        if self.kind == "mono":
            return passages
        if self.kind == "cross":
            return self.pivot if self.passage_language == SCHEDULED else language
        return self.pivot if self.switched == "pivot" else language

    @property
    def query_files(self) -> tuple[str, ...]:
        """Languages whose query files are read."""
        return tuple(dict.fromkeys(map(self.query_language, self.query_languages)))

    @property
    def passage_files(self) -> tuple[str, ...]:
        """Languages whose passages are read."""
        return tuple(dict.fromkeys(map(self.passages_in, self.query_languages)))


class QueryTexts:
    """Makes the query of an example out of the text in the query file; sent to workers empty."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._switchers: dict[str, Switcher] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_recipe": self._recipe, "_switchers": {}}

    def make(self, query_id: str, text: str, language: str) -> str:
        """The text as it stands, or switched: as ``polyray switch`` switches it with that seed."""
        lexicon = self._recipe.lexicon
        if lexicon is None:
            return text
        if language not in self._switchers:
            self._switchers[language] = self._switcher(lexicon, language)
        return self._switchers[language](text, f"{query_id}\0title").text

    def _switcher(self, path: str, language: str) -> Switcher:
        from polyray.collections.lexicon import (
            read_lexicon,
            read_weighted_lexicon,
            reversed_lexicon,
        )
        from polyray.text.switching import Switcher

        recipe = self._recipe
        own = {"source_language": recipe.query_language(language)}
        numbers = {"rate": recipe.rate, "seed": recipe.seed}
        settings = SwitchSettings(**{**recipe.options.model_dump(), **own, **numbers})
        file = resolve(in_language(path, language))
        if settings.choice == "weight":
            return Switcher(read_weighted_lexicon(file), settings)
        lexicon = read_lexicon(file)
        return Switcher(
            reversed_lexicon(lexicon) if recipe.switched == "native" else lexicon, settings
        )


def in_language(pattern: str, language: str) -> str:
    """A path for one language: ``{language}`` de, ``{iso3}`` deu, ``{name}`` german.

    >>> in_language("google/queries/train/{name}_queries.train.tsv", "de")
    'google/queries/train/german_queries.train.tsv'
    """
    row = language_row(language)
    names = {"{language}": row.code, "{iso3}": row.iso3, "{name}": row.name.lower()}
    for name, value in names.items():
        pattern = pattern.replace(name, value)
    return pattern


class Schedule:
    """Which line and which language each example has; the same for all recipes.

    In one pass every line comes once in each language, in an order that ``seed`` and the pass
    fix. Nothing is held in memory: the order is computed place by place.
    """

    def __init__(self, lines: int, languages: Sequence[str], seed: int) -> None:
        if lines < 1 or not languages:
            raise ConfigError("a schedule needs at least one line and one language")
        self._languages, self._seed = tuple(languages), seed
        self._length = lines * len(self._languages)

    def __len__(self) -> int:
        """Examples in one pass."""
        return self._length

    def __getitem__(self, i: int) -> tuple[int, str]:
        """Line (from 0) and language of the example ``i``; the passes follow one another."""
        turn, place = divmod(i, self._length)
        number = _permuted(place, self._length, f"{self._seed}\0{turn}")
        line, at = divmod(number, len(self._languages))
        return line, self._languages[at]


def _permuted(place: int, length: int, key: str) -> int:
    """``place`` under a permutation of ``range(length)`` that ``key`` fixes.

    A Feistel network of six rounds over the next even number of bits, walked until it comes to a
    number below ``length`` (Black and Rogaway, CT-RSA 2002).
    """
    half = max(1, ((length - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = place >> half, place & mask
        for constant in _rounds(key):
            left, right = right, left ^ (_mixed(right + constant) & mask)
        place = left << half | right
        if place < length:
            return place


@lru_cache(maxsize=64)
def _rounds(key: str) -> tuple[int, ...]:
    digest = hashlib.sha512(key.encode()).digest()
    return tuple(int.from_bytes(digest[at : at + 8]) for at in range(0, 48, 8))


def _mixed(value: int) -> int:
    """The finishing step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 31)
