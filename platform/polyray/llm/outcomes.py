"""What came of one call, told from the server's status, headers and body by pure functions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

__all__ = ["Call", "Kind", "Reply", "of_body", "of_status", "retry_after"]

Kind = Literal["answer", "again", "failed", "stop"]
"""An answer; to be tried again; of no use for this request; the end of the whole job."""

_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_KEY = {"invalid_api_key", "invalid_authentication", "account_deactivated"}
_MODEL = {"model_not_found", "invalid_model"}
_FILTER = {"content_filter", "content_policy_violation"}
_LONGEST_MESSAGE = 300


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
    code, message = _error(body)
    told: dict[str, Any] = {"status": status, "message": message or f"HTTP {status}"}
    if status == 402 or (code in _QUOTA and status in (403, 429)):
        return Reply("stop", reason="quota", **told)
    if code in _KEY or status == 401:
        return Reply("stop", reason="key", **told)
    if code in _FILTER:
        return Reply("failed", reason="filtered", **told)
    if status == 403:
        return Reply("stop", reason="key", **told)
    if status == 404 or code in _MODEL:
        return Reply("stop", reason="model", **told)
    if 300 <= status < 400:
        return Reply("stop", reason="redirect", **told)
    if status == 429:
        return Reply("again", reason="rate_limited", wait_s=retry_after(headers), **told)
    if status in (408, 409, 425) or status >= 500:
        return Reply("again", reason="server_error", wait_s=retry_after(headers), **told)
    return Reply("failed", reason=code or "bad_request", **told)


def of_body(body: bytes | str) -> Reply:
    """The reply that the body of a 2xx response makes."""
    broken: dict[str, Any] = {"reason": "bad_response", "status": 200, "perhaps_paid": True}
    loaded = _json(body)
    if not isinstance(loaded, dict):
        return Reply("again", message="the answer is not a JSON object", **broken)
    if loaded.get("error"):
        code, message = _error(body)
        if code in _QUOTA:
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
        finish_reason=finish if isinstance(finish, str) else None,
        refusal=refusal if isinstance(refusal, str) and refusal else None,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        perhaps_paid=True,
    )


def _json(body: bytes | str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error(body: bytes | str) -> tuple[str, str]:
    """Code and message of an error body, in the ways that servers write them."""
    loaded = _json(body)
    error = loaded.get("error", loaded) if isinstance(loaded, dict) else None
    if isinstance(error, str):
        return "", error[:_LONGEST_MESSAGE]
    if not isinstance(error, dict):
        return "", ""
    code = next((error[k] for k in ("code", "type") if isinstance(error.get(k), str)), "")
    message = error.get("message") or error.get("detail") or ""
    text = message if isinstance(message, str) else json.dumps(message)
    return code, " ".join(text.split())[:_LONGEST_MESSAGE]


def _text(content: Any) -> str | None:
    """A message's text; some servers send a list of parts."""
    if isinstance(content, str) or content is None:
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return None


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None
