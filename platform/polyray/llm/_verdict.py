"""Whether a judge found the meaning changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from polyray.llm._answers import ParseError, json_values, members, without_thinking

__all__ = ["parse_verdict"]

_LABELLED = re.compile(
    r"(?<![^\W_])(?<![^\W_][-_])changed\b"
    r"[\"'*_`\s]*+[:=?]?[\"'*_`\s]*+(?P<word>yes|no|true|false)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\b(?:not|never|no|un)|n['’]t)[\s-]*\Z", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    r"[\"'*_`\s]{0,10}(?:[,;/|–—-]|\bor\b)?[\"'*_`\s]{0,10}(?:yes|no|true|false)\b", re.IGNORECASE
)
_BARE = re.compile(r"[\W_]*+(yes|no|true|false)[\W_]*+", re.IGNORECASE)


def parse_verdict(content: str | None) -> bool:
    """Whether the judge found that the meaning changed: JSON ``{"changed": true}`` or a plain
    labelled answer.

    >>> parse_verdict("Changed: yes")
    True

    Raises :class:`ParseError`: ``missing_field``, ``ambiguous``.
    """
    text = without_thinking(content or "").strip()
    values = json_values(text)
    found = {_yes(one) for value in values for one in _given(value)}
    if not found:
        found = set(_spoken(text))
    if not found:
        raise ParseError("missing_field", "changed")
    if len(found) > 1:
        raise ParseError("ambiguous", "both yes and no")
    return found.pop()


def _given(value: Any, depth: int = 3) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    own = [one for name, one in members(value) if name.strip().lower() == "changed"]
    yield from own
    if not own and depth:
        for _, one in members(value):
            yield from _given(one, depth - 1)


def _spoken(text: str) -> Iterator[bool]:
    for match in _LABELLED.finditer(text):
        if _DENIED.search(text[max(0, match.start() - 12) : match.start()]):
            raise ParseError("ambiguous", match.group(0)[:40])
        if _ALTERNATIVE.match(text, match.end()):
            raise ParseError("ambiguous", text[match.start() : match.end() + 20])
        yield _yes(match["word"])
    if (bare := _BARE.fullmatch(text)) is not None:
        yield _yes(bare[1])


def _yes(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str) else ""
    if word in ("yes", "true"):
        return True
    if word in ("no", "false"):
        return False
    raise ParseError("missing_field", f"changed is {value!r:.40}")
