"""What models write, made into values by pure functions: distractors, ratings, token languages.

Nothing is guessed: what does not parse is a :class:`ParseError` with the reason, or left out and
counted; never padded, never shifted, never a default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from polyray.languages import LANGUAGES, SCRIPT_LETTERS
from polyray.llm._answers import ParseError, is_refusal, without_thinking
from polyray.llm._items import bare_item, comparable, likeness, same_as_original
from polyray.llm._lists import listed
from polyray.llm._ratings import parse_ratings
from polyray.llm._tags import parse_tags
from polyray.llm._verdict import parse_verdict
from polyray.text.keys import compiled

__all__ = [
    "Distractors",
    "ParseError",
    "is_refusal",
    "parse_distractors",
    "parse_ratings",
    "parse_tags",
    "parse_verdict",
]

_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Finish reasons of a cut answer: OpenAI and vLLM, Anthropic and Gemini, Responses, Mistral."""

_NEAR = 0.6
"""From this likeness on, an item is a sentence made from the original, whatever it begins with."""


@dataclass(frozen=True, slots=True)
class Distractors:
    """At most the asked number of ``items``, what was over as ``spare``, and counted rejects.

    ``status``: ``ok`` (as many as asked), ``short``, ``truncated`` (cut before there were enough),
    ``refusal``, ``empty``, ``filtered``, ``unparsable``. Reasons in ``rejected``:
    ``equals_original``, ``duplicate``, ``empty``, ``wrong_script``, ``refusal``.
    """

    items: list[str]
    status: str
    rejected: dict[str, int] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)


def parse_distractors(
    content: str | None,
    *,
    n: int,
    original: str,
    lang: str | None = None,
    finish_reason: str | None = "stop",
) -> Distractors:
    """The distractors in an answer, of which ``n`` were asked for.

    Reads JSON, numbers and bullets of all kinds and plain lines, in any script. An item that is
    the original or a sibling again (case, width, punctuation apart) is rejected, and so is one
    without a letter of the script of ``lang``. What follows the last whole item of a cut answer
    is never accepted. Fewer than ``n`` are never padded.

    >>> parse_distractors("1. Ein Hund.\\n2) Eine Kuh.", n=2, original="Eine Katze.").items
    ['Ein Hund.', 'Eine Kuh.']
    """
    cut = (finish_reason or "").lower() in _CUT
    if finish_reason == "content_filter":
        return Distractors([], "filtered")
    text = without_thinking(content or "").strip()
    if not text:
        return Distractors([], "truncated" if cut else "empty")
    found = listed(text, n, original)
    written = found.items[: 10 * n + 100]
    if cut and found.open_end and len(written) == len(found.items):
        written = written[:-1]
    said = [bare_item(one, original) for one in written]
    near = sum(likeness([one], original) >= _NEAR for one in said)
    declines = is_refusal(text) and (found.kind == "lines" or not is_refusal(original))
    if (declines or (said and _declines(said[0], original))) and near < n:
        return Distractors([], "refusal")
    rejected: Counter[str] = Counter()
    items = _checked(said, original, lang, rejected)
    status = "ok" if len(items) >= n else "truncated" if cut else "short"
    if not items and not rejected:
        status = "truncated" if cut else "refusal" if is_refusal(text) else "unparsable"
    return Distractors(items[:n], status, dict(rejected), items[n:])


def _declines(item: str, original: str) -> bool:
    return is_refusal(item) and likeness([item], original) < _NEAR


def _checked(
    said: Sequence[str], original: str, lang: str | None, rejected: Counter[str]
) -> list[str]:
    seen: set[str] = set()
    items: list[str] = []
    row = LANGUAGES.get(lang or "")
    script = compiled(SCRIPT_LETTERS[row.script]) if row is not None else None
    for item in said:
        key = comparable(item)
        if not any(char.isalnum() for char in item):
            rejected["empty"] += 1
        elif same_as_original(item, original):
            rejected["equals_original"] += 1
        elif key in seen:
            rejected["duplicate"] += 1
        elif script is not None and not script.search(item):
            rejected["wrong_script"] += 1
        elif _declines(item, original):
            rejected["refusal"] += 1
        else:
            seen.add(key)
            items.append(item)
    return items
