"""What a job gets back for each item, and the figures of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from polyray.errors import PolyrayError
from polyray.llm.request import Item
from polyray.llm.store import Answer, Usage

__all__ = ["JobStopped", "Outcome", "Parse", "Report", "judged", "plain_text"]

Parse = Callable[[Item, Answer], Any]
"""Makes a value of an answer, or raises :class:`~polyray.llm.parsing.ParseError`."""


class JobStopped(PolyrayError):
    """The server refuses the whole job: spent quota, wrong key, unknown model."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one item: ``ok`` with what the parser made, or ``missing`` with the reason.

    ``reason`` begins with one word: ``truncated``, ``refusal``, ``filtered``, ``empty``, what the
    parser said, or what the last call met (``timeout``, ``rate_limited``, ``server_error``,
    ``connection``, ``bad_response``, ``too_long``, ``bad_request`` or the server's own code).
    ``raw`` is the text of the last answer, where there was one. ``calls`` counts the calls made
    for it in all runs; ``stored`` says that this run made none.
    """

    status: Literal["ok", "missing"]
    parsed: Any = None
    raw: str | None = None
    reason: str = ""
    detail: str = ""
    finish_reason: str | None = None
    key: str = ""
    calls: int = 0
    stored: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == "ok"


@dataclass(slots=True)
class Report:
    """The figures of a job so far; ``calls`` and ``failures`` are those of this run.

    ``usd`` and ``usd_unanswered`` (at most, for calls that may have been billed without an
    answer) are those of the store, earlier runs included. ``usage``, once the job has ended, is
    what its questions have taken in all runs.
    """

    total: int = 0
    done: int = 0
    ok: int = 0
    stored: int = 0
    calls: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    usd_unanswered: float = 0.0
    priced: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_estimated: int = 0
    usage: Usage = field(default_factory=Usage)
    missing: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds if self.seconds else 0.0

    def line(self) -> str:
        """One line for a progress bar: rate, cost, missing items and failed calls."""
        parts = [f"{self.rate:.1f} calls/s"]
        if self.priced:
            parts.append(f"${self.usd:.4f}")
        if missing := sum(self.missing.values()):
            parts.append(f"{missing} missing")
        if failed := sum(self.failures.values()):
            parts.append(f"{failed} calls failed")
        return ", ".join(parts)


def plain_text(item: Item, answer: Answer) -> str:
    """The parser that takes every answer's text as it is."""
    return answer.content or ""


def judged(item: Item, answer: Answer, parse: Parse) -> Outcome:
    """The outcome that an answer makes for an item. Cut, refused and empty ones never parse."""
    from polyray.llm.parsing import ParseError

    reason, detail, parsed = "", "", None
    if answer.refusal or answer.finish_reason == "content_filter":
        reason = "refusal" if answer.refusal else "filtered"
        detail = answer.refusal or ""
    elif answer.finish_reason == "length":
        reason = "truncated"
    elif not (answer.content or "").strip():
        reason = "empty"
    else:
        try:
            parsed = parse(item, answer)
        except ParseError as error:
            reason, detail = error.reason, str(error)
    return Outcome(
        "missing" if reason else "ok",
        parsed,
        answer.content if answer.content is not None else answer.refusal,
        reason,
        detail,
        answer.finish_reason,
        answer.key,
    )
