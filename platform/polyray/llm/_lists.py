"""Lists in free text, in the ways that models write them: JSON, numbers, bullets, plain lines."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

__all__ = ["Listed", "json_values", "listed", "without_thinking"]

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_HAN = "〇一二三四五六七八九十"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_NUMBERED = re.compile(
    r"^[ \t>]*(?:[*_#]{0,6}[ \t]*)"
    r"(?:"
    rf"(?P<circled>[{_CIRCLED}])[.、:]?"
    rf"|(?P<han>[{_HAN}]{{1,3}})[、．.:：)）]"
    r"|[(\[（【](?P<inside>\d{1,3})[)\]）】][.:]?"
    r"|(?:(?:[^\W\d_][\w'’-]{0,24}[ \t]+)?(?:\#|no?\.?[ \t]?|№[ \t]?)?"
    r"(?P<labelled>\d{1,3})[ \t]*[:：](?!\d))"
    r"|\#?(?P<plain>\d{1,3})(?:[ \t]*[.)\]）．、。۔।](?!\d)|[ \t]+[-–—](?=[ \t])|(?=\t))"
    r")"
    r"[*_]{0,3}(?:[ \t]+|$|(?=\S))"
)
_LETTERED = re.compile(r"^[ \t>]*[*_]{0,3}[(]?(?P<letter>[a-zA-Z])[.)][*_]{0,3}[ \t]+(?=\S)")
_BULLET = re.compile(r"^[ \t>]*(?:[-*+][ \t]+\[[ xX]?\]|[-–—•·◦▪‣●○*+])[ \t]+(?=\S)")
_INLINE = r"(?<=\s)[*_(]{0,3}%s[.):）．][*_]{0,3}\s+(?=\S)"
_ENDS = tuple(".!?。！？؟۔।…\"'”’»)」』")
_REMARK = re.compile(
    r"^[ \t]*(?:[(\[→⇒*_]|->|=>|[-–—•][ \t]|(?:note|explanation|reason|change[sd]?)\b)",
    re.IGNORECASE,
)


class Listed(NamedTuple):
    """The items as written, and whether the last of them stands at the text's very end.

    ``kind`` is ``json``, ``marked`` (numbers, letters, bullets) or ``lines``.
    """

    items: list[str]
    kind: str
    open_end: bool


def without_thinking(text: str) -> str:
    """The text without what a reasoning model thought aloud."""
    return _THINKING.sub("", text)


def json_values(text: str) -> list[Any]:
    """The JSON objects and arrays that stand in the text, in order, outermost ones only."""
    found: list[Any] = []
    decoder = json.JSONDecoder(object_pairs_hook=_pairs)
    at = 0
    tries = 0
    while tries < 50 and (match := re.compile(r"[\[{]").search(text, at)):
        tries += 1
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.start() + 1
            continue
        found.append(value)
    return found


class Pairs(dict[str, Any]):
    """A JSON object that remembers keys given twice."""

    pairs: list[tuple[str, Any]]


def _pairs(pairs: list[tuple[str, Any]]) -> Pairs:
    made = Pairs(pairs)
    made.pairs = pairs
    return made


def listed(text: str, wanted: int) -> Listed:
    """The items of the list in ``text``, of which ``wanted`` are expected."""
    plain = _FENCE.sub("", text)
    looks_json = plain.lstrip()[:1] in ("[", "{") or "```" in text
    if looks_json and (items := _from_json(plain)) is not None:
        return items
    lines = plain.splitlines()
    for marker in (_number, _letter, _bullet):
        items = _marked(lines, marker)
        if items.items:
            if len(items.items) == 1 and wanted > 1 and marker is _number:
                items = Listed(_split_inline(items.items[0]), "marked", items.open_end)
            return items
    if (items := _from_json(plain)) is not None:
        return items
    return _lines(lines, wanted)


def _from_json(text: str) -> Listed | None:
    for value in json_values(text):
        if (strings := _strings(value)) is not None:
            return Listed(strings, "json", False)
    # Cut JSON: the strings that are whole, of an array that was opened.
    opened = re.search(r"\[\s*\"", text)
    if opened is None or text.lstrip()[:1] not in ("[", "{"):
        return None
    decoder, at, whole = json.JSONDecoder(), opened.end() - 1, []
    while at < len(text) and text[at] == '"':
        try:
            string, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        whole.append(string)
        step = re.compile(r"\s*,\s*").match(text, at)
        if step is None:
            break
        at = step.end()
    # Nothing unfinished is among them: the open end has been left off already.
    return Listed(whole, "json", False) if whole else None


def _strings(value: Any) -> list[str] | None:
    """The list of strings that a JSON answer holds, however it is wrapped."""
    if isinstance(value, list):
        strings = [_string(one) for one in value]
        return [one for one in strings if one is not None] if any(strings) else None
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, list) and (strings_ := _strings(inner)) is not None:
                return strings_
        texts = [inner for inner in value.values() if isinstance(inner, str)]
        if texts and len(texts) == len(value):
            return texts
    return None


def _string(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in ("distractor", "sentence", "text", "content", "answer"):
            if isinstance(value.get(name), str):
                return str(value[name])
        texts = [inner for inner in value.values() if isinstance(inner, str)]
        return texts[0] if len(texts) == 1 else None
    return None


def _number(line: str) -> tuple[int, str] | None:
    match = _NUMBERED.match(line)
    if match is None:
        return None
    if match["circled"]:
        number = _CIRCLED.index(match["circled"]) + 1
    elif match["han"]:
        number = _han(match["han"])
    else:
        number = int(match["inside"] or match["labelled"] or match["plain"])
    return number, line[match.end() :]


def _han(text: str) -> int:
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _HAN.find(text[-1])
    return 10 * (_HAN.find(tens) if tens else 1) + (_HAN.find(ones) if ones else 0)


def _letter(line: str) -> tuple[int, str] | None:
    match = _LETTERED.match(line)
    return None if match is None else (ord(match["letter"].lower()) - 96, line[match.end() :])


def _bullet(line: str) -> tuple[int, str] | None:
    match = _BULLET.match(line)
    return None if match is None else (1, line[match.end() :])


def _marked(lines: list[str], marker: Any) -> Listed:
    items: list[str] = []
    last = 0
    joined = False
    end = -1
    for at, line in enumerate(lines):
        found = marker(line)
        if found is not None and (not items or found[0] == 1 or last < found[0] <= last + 5):
            items.append(found[1].strip())
            last, joined, end = found[0], True, at
        elif not line.strip():
            joined = joined and not items[-1]
        elif joined and _goes_on(items[-1], line):
            items[-1] = f"{items[-1]} {line.strip()}".strip()
            end = at
        else:
            joined = False
    if marker is _letter and (len(items) < 2 or last != len(items)):
        return Listed([], "marked", False)
    return Listed(items, "marked", not any(line.strip() for line in lines[end + 1 :]))


def _goes_on(item: str, line: str) -> bool:
    """Whether a line without a marker belongs to the item before it."""
    return not item or not (item.endswith(_ENDS) or _REMARK.match(line))


def _split_inline(item: str) -> list[str]:
    """Cut ``a 2. b 3. c`` where the numbers go on without a gap."""
    pieces, rest, number = [], item, 2
    while (match := re.search(_INLINE % number, rest)) is not None:
        pieces.append(rest[: match.start()].strip())
        rest, number = rest[match.end() :], number + 1
    return [*pieces, rest.strip()]


def _lines(lines: list[str], wanted: int) -> Listed:
    full = [line.strip() for line in lines if line.strip()]
    if len(full) > 1 and full[0].endswith((":", "：")):
        full = full[1:]
    elif len(full) < 2 and wanted > 1:
        full = []
    return Listed(full, "lines", bool(full))
