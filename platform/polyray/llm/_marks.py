"""Marks that models put before the items of a list: numbers, letters, bullets, in any script."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Literal, NamedTuple

from polyray.llm._answers import INVISIBLE

__all__ = [
    "Mark",
    "Marker",
    "alphabets",
    "bare_line",
    "bullet",
    "inline_marks",
    "number",
    "roman",
    "spaced_number",
]


Kind = Literal["strong", "weak", "loose"]


class Mark(NamedTuple):
    """A line's mark and what follows it.

    ``kind``: ``strong`` can stand alone, ``weak`` (``1-``, ``1,``, ``Satz 1.``, ``1.10:30``) only
    counts in a list that counts up from 1, ``loose`` (``2.2018``) beside strong ones, too.
    """

    number: int
    rest: str
    kind: Kind = "strong"
    label: str = ""


Marker = Callable[[str], Mark | None]

_HAN = "〇一二三四五六七八九十"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_NAMES = (
    r"satz|sätze|sentence|sent|distractor|distraktor|distracteur|variante?|variant|version|option|"
    r"phrase|item|nr|no|alternative|beispiel|example|exemple|предложение|вариант|пример|"
    r"дистрактор|جمله|گزینه|نمونه|句子|例句|选项|干扰句|干扰项|变体|版本|第|lause|virke|sentensi|weedh"
)
_KNOWN = re.compile(_NAMES, re.IGNORECASE)
_START = r"(?P<head>\#{1,6}[ \t]+)?(?P<lead>[*_`]{1,3})?[ \t]*(?:[-*•+][ \t]+)?"
_CLOSE = r"(?(lead)(?P<close>[*_`]{1,3})?)"
_NUMBER = re.compile(
    _START + r"(?:"
    rf"(?P<circled>[{_CIRCLED}])[.、:：)]?"
    r"|(?P<keycap>\d)\ufe0f?\u20e3[.):]?"
    rf"|[(\[（【](?P<inside>\d{{1,3}}|[{_HAN}]{{1,3}})(?:/\d{{1,3}})?[)\]）】][.:：]?"
    rf"|(?P<han>[{_HAN}]{{1,3}})[、．.:：)）]"
    rf"|第(?P<place>\d{{1,3}}|[{_HAN}]{{1,3}})(?:个|条|項|项)?(?:句子?话?)?[:：、.]"
    rf"|(?P<hanlabel>[\u4e00-\u9fff]{{1,5}}?)[ \t]?(?P<hannumber>\d{{1,3}}|[{_HAN}]{{1,3}})[:：]"
    r"|(?P<label>[^\W\d_]{1,25})\.?[ \t]?(?:\#|№|n[or]\.?[ \t]?)?(?P<labelled>\d{1,3})"
    r"(?:[ \t]*(?P<colon>[:：])(?!\d)|(?P<point>[.)](?=\s)|[ \t]*[-–—](?=\s))"
    r"|(?P<heading>[ \t]*[*_]{0,3}$))"
    r"|(?:\#|№[ \t]?|n[or°]\.?[ \t]?)?(?P<plain>\d{1,3})(?:"
    r"\\?(?:[.．][)\-–:：]|[.．])(?P<time>(?=\d{1,2}[:：]\d\d))"
    r"|(?P<strong>\\?(?:[.．][)\-–:：](?!\d)|[.．\]、。۔।](?!\d)|[)）]|[ \t]*[:：](?!\d)"
    r"|[ \t]+[.)\]）．、。۔।](?!\d)|[ \t]+[-–—](?=[ \t])|(?=\t)))"
    r"|[.．](?P<loose>(?=\d))"
    r"|(?P<weak>/\d{1,3}[ \t]*[:：.)]|[-–—/](?=[ \t])|[,،](?=[ \t])|，|[ºª°]\.?(?=[ \t])))"
    r")" + _CLOSE + r"[ \t]*",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?:[№#][ \t]?)?(?P<number>\d{1,3})[ \t\u3000]+(?=[^\W\d_]|[\"'“„«(])")
_ALPHABETS = (
    [*"abcdefghijklmnopqrstuvwxyz"],
    [*"абвгдежзик"],
    [*"абвгдеёжзи"],
    ["الف", "ب", "ج", "د", "ه", "و"],
    ["الف", "ب", "پ", "ت", "ث", "ج"],
    [*"أبجدهو"],
    [*"甲乙丙丁戊己庚"],
)
_LETTER = re.compile(
    _START + rf"(?:(?:(?P<label>{_NAMES})[ \t]*(?P<labelled>[a-zа-я])(?:[:：.)]|[ \t][-–—](?=\s)))"
    r"|[(（]?(?P<letter>[a-zа-яё]|الف|[بپتثجدهوأ])[.)）:](?=[*_\s])"
    r"|[(（]?(?P<stem>[甲乙丙丁戊己庚])[.、)）:：])" + _CLOSE + r"[ \t]*(?=\S)",
    re.IGNORECASE,
)
_ROMAN = re.compile(_START + r"[(]?(?P<roman>[ivx]{1,5}|[Ⅰ-Ⅻⅰ-ⅻ])[.):][ \t]+(?=\S)", re.IGNORECASE)
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_BULLET = re.compile(r"(?:[-*+][ \t]+\[[ xX]?\]|[-–—•·◦▪‣●○*+])[ \t]+(?=\S)")
_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace()) + INVISIBLE
_INLINE = re.compile(
    r"(?:(?<=\s)|(?<=[。！？；.!?;،؛:：]))[*_(（]{0,3}(?P<number>\d{1,3})"
    r"(?:[.):]+[*_]{0,3}\s+|[．、）](?!\d)[*_]{0,3}\s*)(?=\S)"
    r"|(?<=[^\W\d])(?P<han>\d{1,3})、(?=\S)"
    rf"|(?P<circled>[{_CIRCLED}])[.、:：)]?\s*(?=\S)"
)


def bare_line(line: str) -> str:
    """A line without spaces, marks that show nothing and quotation arrows around it."""
    return line.lstrip(_SPACE + ">").rstrip(_SPACE)


def number(line: str) -> Mark | None:
    """A number before an item, with its point, bracket, label or heading."""
    match = _NUMBER.match(line)
    if match is None:
        return None
    label = (match["label"] or match["hanlabel"] or "").casefold()
    weak = match["weak"] is not None or match["time"] is not None
    known = bool(label) and _KNOWN.fullmatch(label) is not None
    if match["heading"] is not None and not (known or match["head"] or match["lead"]):
        return None
    if not known and (match["point"] is not None or match["hanlabel"]):
        weak = True
    kind: Kind = "weak" if weak else "loose" if match["loose"] is not None else "strong"
    return Mark(_value(match), _rest(line, match), kind, label)


def _rest(line: str, match: re.Match[str]) -> str:
    """What follows the mark; emphasis that was opened before it and is still open stays."""
    rest = line[match.end() :].strip(_SPACE)
    if not match["lead"] or match.groupdict().get("close") or not rest:
        return rest
    return rest if rest.strip("*_`") == "" else match["lead"] + rest


def _value(match: re.Match[str]) -> int:
    if match["circled"]:
        return _CIRCLED.index(match["circled"]) + 1
    names = ("keycap", "inside", "han", "place", "hannumber", "labelled", "plain")
    text = next(match[name] for name in names if match[name])
    return _han(text) if text[0] in _HAN else int(text)


def _han(text: str) -> int:
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _HAN.find(text[-1])
    return 10 * (_HAN.find(tens) if tens else 1) + (_HAN.find(ones) if ones else 0)


def spaced_number(line: str) -> Mark | None:
    """A number and a space."""
    match = _SPACED.match(line)
    return None if match is None else Mark(int(match["number"]), line[match.end() :], "weak")


def alphabets(lines: list[str]) -> list[Marker]:
    """A marker for each alphabet of which letters stand before lines."""
    found = [_LETTER.match(line) for line in lines]
    letters = {_letter(match) for match in found if match is not None}
    return [_by_letter(alphabet) for alphabet in _ALPHABETS if {*alphabet[:2]} <= letters]


def _letter(match: re.Match[str]) -> str:
    return str(match["letter"] or match["labelled"] or match["stem"]).lower()


def _by_letter(alphabet: list[str]) -> Marker:
    places = {one: at for at, one in enumerate(alphabet, 1)}

    def marker(line: str) -> Mark | None:
        match = _LETTER.match(line)
        if match is None or _letter(match) not in places:
            return None
        return Mark(places[_letter(match)], _rest(line, match), "weak", match["label"] or "")

    return marker


def roman(line: str) -> Mark | None:
    """A Roman number before an item."""
    match = _ROMAN.match(line)
    if match is None:
        return None
    text = match["roman"].lower()
    if "ⅰ" <= text <= "ⅻ":
        return Mark(ord(text) - ord("ⅰ") + 1, _rest(line, match), "weak")
    return Mark(_ROMANS.index(text) + 1, _rest(line, match), "weak") if text in _ROMANS else None


def bullet(line: str) -> Mark | None:
    """A bullet, dash or check box before an item."""
    match = _BULLET.match(line)
    return None if match is None else Mark(1, line[match.end() :])


def inline_marks(text: str) -> list[tuple[int, int, int]]:
    """Number, start and end of what could be marks in the middle of a line, the first 400."""
    return [
        (
            _CIRCLED.index(match["circled"]) + 1
            if match["circled"]
            else int(match["number"] or match["han"]),
            match.start(),
            match.end(),
        )
        for match in islice(_INLINE.finditer(text), 400)
    ]
