"""What all parsers of answers share: errors, thoughts, JSON in text, refusals."""

from __future__ import annotations

import json
import re
from typing import Any

from polyray.errors import PolyrayError

__all__ = [
    "INVISIBLE",
    "Pairs",
    "ParseError",
    "is_refusal",
    "is_rule",
    "json_values",
    "members",
    "without_fences",
    "without_thinking",
]

INVISIBLE = "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
"""Marks that show nothing. Joiners, which are a part of Persian words, are none of them."""

_NAMES = r"seed:think|think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad"
_WRAPPED = re.compile(
    rf"<(?P<xml>{_NAMES})(?:\s[^<>]{{0,200}})?>.*?(?:</(?P=xml)\s*>|\Z)"
    r"|\[THINK\].*?(?:\[/THINK\]|\Z)"
    r"|◁think▷.*?(?:◁/think▷|\Z)"
    r"|<\|begin_of_thought\|>.*?(?:<\|end_of_thought\|>|\Z)"
    r"|<\|START_THINKING\|>.*?(?:<\|END_THINKING\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</(?:{_NAMES})\s*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>[ \t]*(?P<name>\w+)[^<]{0,200}<\|message\|>")
_CONTROL = re.compile(r"<\|(?:start|end|return|message|channel|call)\|>")
_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_OPENED = re.compile(r"[\[{]")
_REFUSALS = (
    r"i(?:['’]m| am) (?:sorry|unable|not able)|i (?:can(?:['’]?t|not)|cannot|won['’]t)|sorry|"
    r"as an ai|i must decline|unfortunately,? i|"
    r"(?:es )?tut mir leid|ich kann (?:das|dies|diese\w*|dabei|ihnen|dir)? ?(?:leider )?nicht|"
    r"je suis désolée?|désolée?|je ne peux pas|lo siento|no puedo|mi dispiace|non posso|"
    r"(?:me )?desculpe|não posso|het spijt me|ik kan|anteeksi|en voi|valitettavasti|"
    r"samahani|siwezi|waan ka xumahay|ma awoodo|"
    r"извините|к сожалению|я не могу|прошу прощения|"
    r"对不起|抱歉|很抱歉|我(?:不能|无法)|對不起|我(?:無法)|申し訳|すみません|죄송|"
    r"متأسف|متاسف|نمی[‌ ]?توانم|عذر|آسف|لا (?:أ|ا)ستطيع|لا يمكنني"
)
_REFUSAL = re.compile(rf"^[\W_]*(?:{_REFUSALS})", re.IGNORECASE)
_RULE = re.compile(r"[|:\s-]*")


class ParseError(PolyrayError):
    """An answer that is not what was asked for; ``reason`` is one word."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str]]:
        return (type(self), (self.reason, self.detail))


def is_refusal(text: str) -> bool:
    """Whether a text begins as models begin when they decline, in the languages of this field."""
    return bool(_REFUSAL.match(text))


def without_thinking(text: str) -> str:
    """The text without what a reasoning model thought aloud.

    Tags of DeepSeek, Qwen, Seed, Mistral, Kimi and Cohere models, and the channels of OpenAI's
    Harmony format. A template may open the block, so a lone closing tag ends thoughts, too; what
    is opened and never closed is all thought.
    """
    text = text.lstrip("\ufeff")
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = channels[-1]
        text = text[final.end() :] if final["name"] == "final" else ""
    text = _WRAPPED.sub("", text)
    start = max((match.end() for match in _CLOSE.finditer(text)), default=0)
    return _CONTROL.sub("", text[start:])


def without_fences(text: str) -> str:
    """The text without the lines that open and close Markdown code blocks."""
    return _FENCE.sub("", text)


def is_rule(line: str) -> bool:
    """Whether a line is blank, or rules off the header of a Markdown table."""
    return _RULE.fullmatch(line) is not None


class Pairs(dict[str, Any]):
    """A JSON object that remembers keys given twice."""

    pairs: list[tuple[str, Any]]


def _pairs(pairs: list[tuple[str, Any]]) -> Pairs:
    made = Pairs(pairs)
    made.pairs = pairs
    return made


def members(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of a JSON object, those of repeated names included."""
    return value.pairs if isinstance(value, Pairs) else list(value.items())


def json_values(text: str) -> list[Any]:
    """The JSON objects and arrays that stand in the text, in order, outermost ones only.

    Text with very many brackets, or nested deeper than any answer, is not searched to its end.
    """
    found: list[Any] = []
    decoder = json.JSONDecoder(object_pairs_hook=_pairs)
    at = 0
    tries = 0
    while tries < 50 and (match := _OPENED.search(text, at)):
        try:
            value, at = decoder.raw_decode(text, match.start())
        except RecursionError:
            break
        except ValueError:
            at = match.start() + 1
            tries += 1
            continue
        found.append(value)
    return found
