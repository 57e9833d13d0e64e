"""One row a language. A new language is one row.

Codes: ISO 639-1 and 639-3, NLLB-200 (Costa-jussa et al. 2022) and M2M-100 (Fan et al. 2021).
``analyzer`` is the name that Anserini knows; where Lucene has none for a language it is
``"lowercase"``: Unicode words, lower-cased, neither stemmed nor stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from polyray.errors import ConfigError

__all__ = ["LANGUAGES", "SCRIPT_LETTERS", "Language", "check_codes", "language"]


@dataclass(frozen=True, slots=True)
class Language:
    """What polyray knows of one language."""

    code: str
    iso3: str
    nllb: str
    m2m: str
    name: str
    script: Literal["Latn", "Hans", "Arab", "Cyrl"]
    analyzer: str
    spaces: bool = True
    """False where words are written without spaces between them."""
    aliases: tuple[str, ...] = ()


_ROWS = (
    Language("en", "eng", "eng_Latn", "en", "English", "Latn", "en"),
    Language("sw", "swa", "swh_Latn", "sw", "Swahili", "Latn", "lowercase", aliases=("swh",)),
    Language("so", "som", "som_Latn", "so", "Somali", "Latn", "lowercase"),
    Language("fi", "fin", "fin_Latn", "fi", "Finnish", "Latn", "fi"),
    Language("de", "deu", "deu_Latn", "de", "German", "Latn", "de", aliases=("ger",)),
    Language("fr", "fra", "fra_Latn", "fr", "French", "Latn", "fr", aliases=("fre",)),
    Language("zh", "zho", "zho_Hans", "zh", "Chinese", "Hans", "zh", False, ("chi", "cmn")),
    Language("fa", "fas", "pes_Arab", "fa", "Persian", "Arab", "fa", aliases=("per", "pes")),
    Language("ru", "rus", "rus_Cyrl", "ru", "Russian", "Cyrl", "ru"),
)

LANGUAGES: dict[str, Language] = {row.code: row for row in _ROWS}
"""ISO 639-1 code -> row, English first."""

SCRIPT_LETTERS = {
    "Latn": r"\p{Latin}",
    "Hans": r"\p{Han}",
    "Arab": r"\p{Arabic}",
    "Cyrl": r"\p{Cyrillic}",
}
"""Script of a :class:`Language` -> pattern of one of its letters, for the module ``regex``."""

_BY_ANY = {
    name.lower(): row
    for row in _ROWS
    for name in (row.code, row.iso3, row.nllb, row.name, *row.aliases)
}


def check_codes(codes: Iterable[str], *, english: bool = True, also: str = "") -> None:
    """For settings: each code is one of ``LANGUAGES`` (with English or not) and stands once.

    ``also`` is a further word that is allowed. Raises ValueError.
    """
    given = list(codes)
    allowed = [code for code in LANGUAGES if english or code != "en"]
    for code in given:
        if code not in allowed and code != also:
            raise ValueError(f"{code!r} is not one of: {', '.join(sorted(allowed))}")
    if len(set(given)) != len(given):
        raise ValueError("a language stands twice")


def language(code: str) -> Language:
    """The row of a language by any of its codes or its English name.

    >>> language("zho").code, language("swh_Latn").analyzer
    ('zh', 'lowercase')

    Raises :class:`~polyray.errors.ConfigError` for a language that has no row.
    """
    found = _BY_ANY.get(code.lower())
    if found is None:
        raise ConfigError(f"language {code!r} is not known; known are: {', '.join(LANGUAGES)}")
    return found
