"""What a user may say about code switching."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from polyray.config import Settings
from polyray.text.parts_of_speech import TaggerName

__all__ = ["RATE", "SEED", "SwitchOptions", "SwitchSettings"]

RATE = 0.5
"""Default probability of replacing a word that the lexicon has."""
SEED = 42
"""Default seed."""


class SwitchOptions(Settings):
    """Variants of the published procedure; the defaults are the procedure itself.

    ``source_language`` is the language of the texts, which is that of the lexicon's headwords.
    ``content_words`` leaves function words alone: those of ``stop_words`` (a file, one word a
    line) or of the packaged list, which is there for English; a ``tagger`` (``any``: the first one
    installed, if there is one) also leaves alone what it tags neither noun, verb, adjective nor
    adverb (English). ``multiword_headwords`` looks for
    headwords of several words first, the longest before all; ``multiword_translations`` allows
    translations with white space in them. ``choice`` by ``weight`` draws translations in
    proportion to their weights, which the lexicon then must carry. ``carry_case`` gives a
    translation the capital letters of the word that it stands for. ``segmenter`` finds the words
    of scripts that put no spaces between them: every character is one, or the longest headwords
    of the ``lexicon``, or the words that ``jieba`` finds (Chinese). ``lemmas`` looks words that
    are no headwords up by their dictionary form (simplemma); the translation is not inflected.
    """

    source_language: str = "en"
    content_words: bool = False
    stop_words: str | None = None
    tagger: TaggerName = "none"
    multiword_headwords: bool = False
    multiword_translations: bool = True
    choice: Literal["uniform", "weight"] = "uniform"
    carry_case: bool = True
    segmenter: Literal["characters", "lexicon", "jieba"] = "characters"
    lemmas: bool = False

    @field_validator("source_language")
    @classmethod
    def _code(cls, name: str) -> str:
        from polyray.errors import ConfigError
        from polyray.languages import language

        try:
            return language(name).code
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _english_tags(self) -> Self:
        if self.tagger == "none":
            return self
        if not self.content_words or self.source_language != "en":
            raise ValueError("a tagger finds content_words of English: set that, or tagger: none")
        return self


class SwitchSettings(SwitchOptions):
    """The options with the two numbers that fix the draws."""

    rate: float = Field(default=RATE, ge=0, le=1)
    seed: int = SEED
