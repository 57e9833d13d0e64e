"""What makes two strings the same word: the matching key, blank texts, and Unicode words.

Keys are for comparing only (BM25 analysis, lexicon look-up, duplicates); stored and shown text is
never changed by them.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

__all__ = ["WORD", "compiled", "is_blank", "matching_key", "word_spans", "words"]

_ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_TATWEEL = 0x0640
_LETTERS = {
    "\u0643": "\u06a9",  # Arabic kaf -> keheh
    "\u064a": "\u06cc",  # Arabic yeh -> Persian yeh
    "\u0649": "\u06cc",  # alef maksura -> Persian yeh
    "\u06d2": "\u06cc",  # yeh barree -> Persian yeh
    "\u06c1": "\u0647",  # heh goal -> heh
    "\u06be": "\u0647",  # heh doachashmee -> heh
    "\u06d5": "\u0647",  # ae -> heh
}


class _Ignored(dict[int, int | None]):
    """``str.translate`` table without characters that show nothing; filled as they are met."""

    def __missing__(self, code: int) -> int | None:
        kept = None if compiled(r"[\p{DI}\p{Cf}]").match(chr(code)) else code
        self[code] = kept
        return kept


class _Unified(dict[int, int | str | None]):
    """``str.translate`` table of one form a letter and ASCII digits; filled as they are met."""

    def __missing__(self, code: int) -> int | str | None:
        char = chr(code)
        digit = unicodedata.decimal(char, None)
        form: int | str | None
        if code == _TATWEEL:
            form = None
        elif digit is not None:
            form = str(digit)
        else:
            form = _LETTERS.get(char, code)
        self[code] = form
        return form


_ignored = _Ignored()
_unified = _Unified()


def matching_key(text: str) -> str:
    """The form in which two texts are compared; ``matching_key`` of a key is the key itself.

    Unicode NFKC and case folding (``ß`` = ``ss``, ``İ`` = ``i``), characters that show nothing
    taken out (zero-width, bidirectional marks, soft hyphen, variation selectors, tatweel),
    Arabic and Persian forms of one letter made one, decimal digits of every script made ASCII.
    Accents, scripts, and traditional and simplified characters stay apart.

    >>> matching_key("Straße"), matching_key("schön") == matching_key("schon")
    ('strasse', False)
    """
    if text.isascii():
        return text.lower()
    key = _folded(text)
    while not key.isascii() and (again := _folded(key)) != key:
        key = again
    return key.lower() if key.isascii() else key


def _folded(text: str) -> str:
    # Hidden characters go first, so that marks behind them compose; letters are made one last,
    # because the Arabic yeh composes with a hamza and the Persian one does not.
    text = unicodedata.normalize("NFKC", text.translate(_ignored)).casefold()
    text = unicodedata.normalize("NFKC", text.replace("i\u0307", "i"))
    return text.translate(_unified)


def is_blank(text: str) -> bool:
    """True when nothing but whitespace and characters that show nothing is left.

    >>> is_blank(" \\u200b\\t"), is_blank("...!?")
    (True, False)
    """
    text = text.strip()
    if not text:
        return True
    if "!" <= text[0] <= "~":
        return False
    return compiled(r"[\s\p{DI}\p{Cf}\p{Cc}]*").fullmatch(text) is not None


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every word of ``text``, in order.

    A word is a run of letters, marks and digits; apostrophes and zero-width joiners inside it
    belong to it, hyphens do not. In scripts that put no spaces between words (Han, Hiragana,
    Katakana, Thai, Lao, Khmer, Myanmar) every character with its marks is a word.
    """
    return [match.span() for match in compiled(WORD).finditer(text)]


def words(text: str) -> list[str]:
    """The words of ``text`` as they stand in it; see :func:`word_spans`.

    >>> words("Don't re-open 我们!")
    ["Don't", 're', 'open', '我', '们']
    """
    found: list[str] = compiled(WORD).findall(text)
    return found


_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
WORD = (
    rf"[[{_UNSPACED}]&&[\p{{L}}\p{{N}}]][\p{{M}}{_ZERO_WIDTH}]*"
    rf"|{_LETTER}+(?:['\u2019\u02bc{_ZERO_WIDTH}]+{_LETTER}+)*"
)
"""Pattern of one word, for the ``regex`` package."""


@cache
def compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern of the ``regex`` package (set operations, Unicode properties), compiled once."""
    import regex

    return regex.compile(pattern, regex.VERSION1)
