"""What came of one call, told from the server's status, headers and body by pure functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

__all__ = ["Call", "Kind", "Reply", "of_body", "of_status", "retry_after", "storable"]

Kind = Literal["answer", "again", "failed", "stop"]
"""An answer; to be tried again; of no use for this request; the end of the whole job."""

_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_KEY = {"invalid_api_key", "invalid_authentication", "account_deactivated"}
_MODEL = {"model_not_found", "invalid_model"}
_FILTER = {"content_filter", "content_policy_violation", "moderation_blocked"}
# Servers that give no code, or one of their own, say it in words.
_SAID = (
    ("quota", re.compile(r"credit balance is too low|exceeded your (?:current )?quota", re.I)),
    ("key", re.compile(r"\b(?:api|access) key\b.{0,20}\b(?:not valid|invalid|incorrect)", re.I)),
    ("key", re.compile(r"\b(?:invalid|incorrect)\b.{0,20}\b(?:api|access) key\b", re.I)),
    ("model", re.compile(r"\bmodel\b.{0,80}\b(?:does not exist|not found|is unknown)", re.I)),
)
_FLAGGED = re.compile(r"\bflagged\b|\bmoderation\b|content (?:filter|policy)", re.I)
_CUT = {"length", "max_tokens", "model_length", "max_output_tokens"}
_FILTERED = {"content_filter", "content_filtered", "safety"}
_LONGEST_MESSAGE = 300
_MOST_TOKENS = 1 << 40
"""A larger count is no count."""
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Call:
    """One sending of a request. ``turn`` counts the calls made before for the same question."""

    key: str
    body: Mapping[str, Any]
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call.

    ``reason`` is one word for everything that is no answer. ``wait_s`` is what a Retry-After asks
    for. ``perhaps_paid``: the request went out and nothing says that it was not billed.
    Token counts are ``None`` where the server gave none.
    """

    kind: Kind
    key: str = ""
    reason: str = ""
    status: int | None = None
    message: str = ""
    wait_s: float | None = None
    content: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    perhaps_paid: bool = False


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the headers ask to wait: ``retry-after-ms``, or Retry-After as number or date.

    >>> retry_after({"retry-after": "2"})
    2.0
    """
    if (exact := _number(headers.get("retry-after-ms"))) is not None:
        return max(0.0, exact / 1000)
    given = headers.get("retry-after")
    if given is None:
        return None
    if (seconds := _number(given)) is not None:
        return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(given)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def of_status(status: int, headers: Mapping[str, str], body: bytes | str) -> Reply:
    """The reply that an HTTP status other than 2xx makes; ``headers`` by lower-case name."""
    codes, message = _error(body)
    told: dict[str, Any] = {"status": status, "message": message or f"HTTP {status}"}
    said = next((why for why, pattern in _SAID if pattern.search(message)), "")
    if status == 402 or (_QUOTA & codes and status in (403, 429)):
        return Reply("stop", reason="quota", **told)
    if _KEY & codes or status == 401:
        return Reply("stop", reason="key", **told)
    if _FILTER & codes or (status in (400, 403) and _FLAGGED.search(message)):
        # An answer like any other refusal: kept, and asked for again as often as one of those.
        told |= {"content": message, "input_tokens": 0, "output_tokens": 0}
        return Reply("answer", finish_reason="content_filter", **told)
    if status == 400 and said:
        return Reply("stop", reason=said, **told)
    if status == 403:
        return Reply("stop", reason="key", **told)
    if status == 404 or _MODEL & codes:
        return Reply("stop", reason="model", **told)
    if 300 <= status < 400:
        return Reply("stop", reason="redirect", **told)
    if status == 429:
        return Reply("again", reason="rate_limited", wait_s=retry_after(headers), **told)
    if status in (408, 409, 425) or status >= 500:
        return Reply("again", reason="server_error", wait_s=retry_after(headers), **told)
    return Reply("failed", reason=_word(codes) or "bad_request", **told)


def of_body(body: bytes | str) -> Reply:
    """The reply that the body of a 2xx response makes."""
    broken: dict[str, Any] = {"reason": "bad_response", "status": 200, "perhaps_paid": True}
    loaded = _json(body)
    if not isinstance(loaded, dict):
        return Reply("again", message="the answer is not a JSON object", **broken)
    if loaded.get("error"):
        codes, message = _error(body)
        if _QUOTA & codes:
            return Reply("stop", reason="quota", status=200, message=message)
        return Reply("again", message=message or "an error in place of an answer", **broken)
    choices = loaded.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message_ = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message_, dict):
        return Reply("again", message="the answer has no choices", **broken)
    usage = loaded.get("usage") if isinstance(loaded.get("usage"), dict) else {}
    finish = first.get("finish_reason")
    refusal = message_.get("refusal")
    return Reply(
        "answer",
        status=200,
        content=_text(message_.get("content")),
        finish_reason=_finish(finish) if isinstance(finish, str) else None,
        refusal=storable(refusal) if isinstance(refusal, str) and refusal else None,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        perhaps_paid=True,
    )


def _json(body: bytes | str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error(body: bytes | str) -> tuple[frozenset[str], str]:
    """Codes and message of an error body, in the ways that servers write them."""
    loaded = _json(body)
    error = loaded.get("error", loaded) if isinstance(loaded, dict) else None
    if isinstance(error, str):
        return frozenset(), storable(error)[:_LONGEST_MESSAGE]
    if not isinstance(error, dict):
        return frozenset(), ""
    codes = frozenset(error[k] for k in ("code", "type") if isinstance(error.get(k), str))
    message = error.get("message") or error.get("detail") or ""
    text = message if isinstance(message, str) else json.dumps(message)
    return codes, " ".join(storable(text).split())[:_LONGEST_MESSAGE]


def _word(codes: frozenset[str]) -> str:
    """The most telling of the codes: letters, not a status number, and no general type."""
    named = sorted(code for code in codes if not code.isdigit())
    special = [code for code in named if not code.endswith("_error")]
    return storable((special or named or [""])[0])


def _finish(reason: str) -> str:
    """A server's own word for a cut or filtered answer, as OpenAI writes it."""
    small = reason.lower()
    if small in _CUT:
        return "length"
    return "content_filter" if small in _FILTERED else storable(reason)


def storable(text: str) -> str:
    """Half surrogate pairs, which no UTF-8 can hold, become U+FFFD."""
    return _HALF.sub("\ufffd", text)


def _text(content: Any) -> str | None:
    """A message's text; some servers send a list of parts."""
    if content is None:
        return None
    if isinstance(content, str):
        return storable(content)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return storable("".join(part for part in parts if isinstance(part, str)))
    return None


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _MOST_TOKENS else None
