"""An item of a list without what models put around it, and the forms in which it is compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from polyray.llm._answers import INVISIBLE
from polyray.text.distractors.similarity import edit_similarity
from polyray.text.keys import compiled, matching_key

__all__ = ["bare_item", "comparable", "likeness", "same_as_original"]

_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "«": "»",
    "»": "«",
    "‹": "›",
    "‘": "’",
    "‚": "‘",
    "「": "」",
    "『": "』",
    "”": "”",
    "`": "`",
}
_CLOSINGS = {"„": "“”", "‚": "‘’"}
_LABEL = re.compile(r"^(?:\*\*|__)[^*_:：]{1,40}(?:[:：](?:\*\*|__)|(?:\*\*|__)[ \t]*[:：])[ \t]*")
_EMPHASIS = re.compile(r"(?<![*\w])(\*{1,3})(?=[^\s*])([^*]{0,2000})(?<=[^\s*])\1(?!\*)")
_UNDERLINED = re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])([^_]{0,2000})(?<=[^\s_])\1(?!\w)")
_CODE = re.compile(r"`([^`]{1,2000})`")
_TAG = re.compile(r"</?[a-zA-Z][\w:-]{0,20}(?:\s[^<>]{0,100})?/?>")
_ARROW = re.compile(r"\s*(?:→|⇒|⟶|➔|➜|(?<=\s)(?:->|=>|-->|==>)(?=\s))\s*")
_SENTENCE = r"^(?P<sentence>.*[.!?。！？؟۔।…][\"”“»」]?|[\"“„«「].*[\"”“»」])"
_FINAL_NOTE = re.compile(_SENTENCE + r"\s*[(（\[][^()（）\[\]]{1,400}[)）\]]$")
_FINAL_DASH = re.compile(_SENTENCE + r"\s+[—–-]{1,2}\s+[^.!?。！？]{1,200}[.。]?$")
_DASH_INSIDE = re.compile(r"[.!?\"”“»」]\s+[—–-]")
_FINAL_GROUP = re.compile(r"\s*[(（\[][^()（）\[\]]{1,400}[)）\]]\W*$")
_PREFIX = re.compile(r"^[^:：]{1,60}(?::\s+|：\s*)(?=\S)")
_STRAY = re.compile(r"^(?:[-*•–—+][ \t]+|[)\].:][ \t]+)")
_ENDS = ".!?。！？؟۔।…"


def likeness(items: Sequence[str], original: str) -> float:
    """How alike the first items are to the original on average, in 0..1 (InDel ratio)."""
    cap = 2 * len(original) + 100
    some = [item[:cap] for item in items[:8]]
    own = original.strip()
    return sum(edit_similarity(one, own) for one in some) / len(some) if some else 0.0


def comparable(text: str) -> str:
    """Matching key (NFKC, case-folded) without punctuation, except between digits."""
    key = matching_key(text)
    key = compiled(r"(?<!\d)\p{P}|\p{P}(?!\d)").sub(" ", key)
    return " ".join(compiled(r"^[^\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+$").sub("", key).split())


def same_as_original(item: str, original: str) -> bool:
    """Whether an item is the original, but for a note behind it or a label before it."""
    own = comparable(original)
    forms = {item, _FINAL_GROUP.sub("", item), _ARROW.split(item, maxsplit=1)[0]}
    forms |= {_PREFIX.sub("", form) for form in forms}
    return own in {comparable(form) for form in forms}


def bare_item(item: str, original: str) -> str:
    """The item without marks, Markdown, labels, comments and quotation marks around all of it.

    What the original has, too, is no mark-up and stays.
    """
    text = re.sub(rf"^[\s{INVISIBLE}]+|[\s{INVISIBLE}]+$", "", " ".join(item.split()))
    if not _STRAY.match(original.strip()):
        text = _STRAY.sub("", text)
    if "<" not in original:
        text = " ".join(_TAG.sub("", text).split())
    text = _LABEL.sub("", text)
    text = _without_emphasis(text, original)
    text = _without_comment(text, original)
    return _unquoted(text, original)


def _without_emphasis(text: str, original: str) -> str:
    if "*" not in original:
        text = _EMPHASIS.sub(r"\2", text)
        for mark in ("***", "**", "*"):
            if text.endswith(mark) and text.count("*") == len(mark):
                text = text.removesuffix(mark).rstrip()
            if text.startswith(mark) and text.count("*") == len(mark):
                text = text.removeprefix(mark).lstrip()
    if "_" not in original:
        text = _UNDERLINED.sub(r"\2", text)
    return text if "`" in original else _CODE.sub(r"\1", text)


def _without_comment(text: str, original: str) -> str:
    """Cut what is surely said about the sentence and is no part of it."""
    if not _ARROW.search(original) and (arrow := _ARROW.search(text)) is not None:
        text = _around_arrow(text, arrow, original)
    if not _FINAL_GROUP.search(original):
        text = _FINAL_NOTE.sub(r"\g<sentence>", text)
    if not _DASH_INSIDE.search(original):
        text = _FINAL_DASH.sub(r"\g<sentence>", text)
    prefix = _PREFIX.match(text)
    if prefix is not None and not re.search("[:：]", original):
        rest = text[prefix.end() :]
        said = set(comparable(prefix.group(0)).split())
        if likeness([rest], original) >= 0.75 and not said & set(comparable(original).split()):
            return rest
    return text


def _around_arrow(text: str, arrow: re.Match[str], original: str) -> str:
    before, after = text[: arrow.start()], text[arrow.end() :]
    if comparable(before) == comparable(original):
        return after if likeness([after], original) >= 0.6 else before
    label = _PREFIX.match(text)
    if label is not None and label.end() > arrow.end() and 2 * len(before) < len(original):
        rest = text[label.end() :]
        return rest if likeness([rest], original) >= 0.6 else text
    return before if 2 * len(before) >= len(original) else text


def _unquoted(text: str, original: str) -> str:
    if original.strip()[:1] in _QUOTES:
        return text
    closing = _CLOSINGS.get(text[:1], _QUOTES.get(text[:1], ""))
    if not closing or len(text) < 3:
        return text
    body = text.rstrip(",;，、")
    stop = body[-1:] if body[-1:] in (".", "。", "۔") else ""
    body = body[: len(body) - len(stop)]
    if len(body) > 2 and body[-1] in closing:
        inner = body[1:-1]
        if text[0] not in inner and body[-1] not in inner:
            inner = inner.strip()
            return inner + stop if not inner.endswith(tuple(_ENDS)) else inner
    return text
