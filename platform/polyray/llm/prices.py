"""What calls cost: token counts, upper bounds before sending, and the hard stop at the budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyray.errors import BudgetExceeded, ConfigError
from polyray.llm.request import Request
from polyray.llm.settings import Budget, LlmSettings, Price
from polyray.llm.store import Spent

__all__ = ["Estimate", "Ledger", "check_prices", "cost", "most_tokens"]

_MILLION = 1_000_000
_OUTPUT_GUESS = 1024
"""Tokens of an answer whose length nothing bounds: for rate limits and estimates, not money."""
_PER_MESSAGE, _PER_REQUEST = 16, 16
"""Tokens that chat templates add, at most."""


def most_tokens(request: Request) -> tuple[int, int]:
    """Upper bounds of the input and output tokens of a request.

    No tokenizer makes more tokens than there are UTF-8 bytes; the output is bounded by
    ``max_tokens`` (1024 is taken where it is not set).
    """
    text = sum(len(text.encode("utf-8", "replace")) for _, text in request.messages)
    schema = 0 if request.schema is None else len(repr(request.schema))
    put_in = text + schema + _PER_MESSAGE * len(request.messages) + _PER_REQUEST
    return put_in, request.parameters.max_tokens or _OUTPUT_GUESS


def likely_tokens(request: Request) -> tuple[int, int]:
    """What a request probably takes, for estimates: four letters a token, two of other scripts."""
    letters = sum(len(text) for _, text in request.messages)
    size = sum(len(text.encode("utf-8", "replace")) for _, text in request.messages)
    put_in = letters // 4 + (size - letters) // 4 + 4 * len(request.messages) + 3
    return put_in, request.parameters.max_tokens or _OUTPUT_GUESS


def cost(price: Price | None, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars, or ``None`` without a price."""
    if price is None:
        return None
    return (input_tokens * price.input + output_tokens * price.output) / _MILLION


def check_prices(settings: LlmSettings) -> None:
    """Refuse a budget in dollars that could not be kept.

    Raises :class:`~polyray.errors.ConfigError` where the model has no price or ``max_tokens`` is
    not set.
    """
    if settings.budget.usd is None:
        return
    model = settings.provider.model
    problems = []
    if model not in settings.prices:
        problems.append(f"prices: no price for {model!r}, so budget.usd cannot be kept; add one")
    if settings.parameters.max_tokens is None:
        problems.append("parameters.max_tokens: set it, so that budget.usd can be kept")
    if problems:
        raise ConfigError("\n".join(problems))


class Ledger:
    """Money and calls: spent, reserved by calls under way, and the cap on both.

    A call reserves the most that it can cost before it goes out; so the bill stays within the cap
    however many run at once.
    """

    def __init__(self, budget: Budget, spent: Spent) -> None:
        self._budget = budget
        self.usd = spent.usd
        self.usd_unanswered = spent.usd_unanswered
        self.calls = spent.calls
        self._reserved = 0.0

    def fits(self, usd: float) -> bool:
        """Whether a call that costs at most ``usd`` may go out now."""
        if self._budget.requests is not None and self.calls + 1 > self._budget.requests:
            return False
        return self._budget.usd is None or self._committed + usd <= self._budget.usd + 1e-12

    def could_fit(self, usd: float) -> bool:
        """Whether it may go out later, if calls under way cost less than they have reserved."""
        if self._budget.requests is not None and self.calls + 1 > self._budget.requests:
            return False
        return self._reserved > 0 and self.usd + self.usd_unanswered + usd <= (
            self._budget.usd or 0.0
        )

    @property
    def _committed(self) -> float:
        return self.usd + self.usd_unanswered + self._reserved

    def reserve(self, usd: float) -> None:
        """Count a call that goes out."""
        self.calls += 1
        self._reserved += usd

    def settle(self, reserved: float, *, paid: float | None, perhaps_paid: bool) -> None:
        """A call has ended: ``paid`` by its answer, or ``None`` without one."""
        self._reserved = max(0.0, self._reserved - reserved)
        if paid is not None:
            self.usd += paid
        elif perhaps_paid:
            self.usd_unanswered += reserved

    def exceeded(self) -> BudgetExceeded:
        """The error that says what was spent and what the cap is."""
        cap = self._budget
        limits = []
        if cap.usd is not None:
            limits.append(
                f"${self.usd:.4f} spent and at most ${self.usd_unanswered:.4f} for calls without "
                f"an answer, of budget.usd {cap.usd:g}"
            )
        if cap.requests is not None:
            limits.append(f"{self.calls} calls of budget.requests {cap.requests}")
        return BudgetExceeded(
            f"the budget does not reach for another call: {'; '.join(limits)}. What was answered "
            "is kept; raise the budget and start again for the rest"
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a job would take: ``requests`` to make and ``stored`` answers that cost nothing.

    Tokens and ``usd`` are likely values with every answer at its full length, and ``usd_at_most``
    the bound that a budget counts with; both are ``None`` without a price.
    """

    requests: int
    stored: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    usd_at_most: float | None

    @classmethod
    def of(cls, requests: Iterable[Request], stored: int, price: Price | None) -> Estimate:
        """Sum over the requests that have no answer yet."""
        likely = most = (0, 0)
        count = 0
        for request in requests:
            count += 1
            likely = _add(likely, likely_tokens(request))
            most = _add(most, most_tokens(request))
        return cls(count, stored, *likely, cost(price, *likely), cost(price, *most))


def _add(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0], left[1] + right[1]
