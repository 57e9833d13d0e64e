"""Rates and waits: token buckets that hold for all actors, and backoff with jitter.

The driver hands out every call, so one bucket of each kind is shared by all actors without
another process to ask.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from polyray.llm.settings import Limits, Retries

__all__ = ["Bucket", "RateLimits", "backoff"]

MINUTE = 60.0
BURST_S = 1.0
"""Seconds' worth of a rate that may go out at once."""
_MARGIN = 0.99
"""Share of the rate that is used: what travels may arrive closer together than it was sent."""


class Bucket:
    """A token bucket: ``per_minute`` units a minute, never more in any window of a minute.

    At most ``burst`` units go at once, and the level refills so slowly that burst and refill
    together stay within the rate. A single amount larger than the burst goes when the bucket is
    full, and is waited for afterwards. ``now`` is a clock in seconds.
    """

    def __init__(self, per_minute: float, now: Callable[[], float] = time.monotonic) -> None:
        self.burst = max(1.0, per_minute * BURST_S / MINUTE)
        self._refill = _MARGIN * (per_minute - (self.burst - 1.0)) / MINUTE
        self._now = now
        self._level = self.burst
        self._at = now()

    def replay(self, history: Sequence[tuple[float, float]]) -> None:
        """Take what others took before: seconds ago and amounts, oldest first."""
        level, ago = self.burst, 0.0
        for seconds, amount in history:
            level = min(self.burst, level + max(0.0, ago - seconds) * self._refill) - amount
            ago = seconds
        self._level = min(self.burst, level + ago * self._refill)
        self._at = self._now()

    def _fill(self) -> None:
        now = self._now()
        self._level = min(self.burst, self._level + (now - self._at) * self._refill)
        self._at = now

    def wait(self, amount: float) -> float:
        """Seconds until ``amount`` may be taken; 0 when it may be taken now."""
        self._fill()
        short = min(amount, self.burst) - self._level
        # A hair's breadth of rounding is no reason to wait.
        return 0.0 if short <= 1e-9 else short / self._refill

    def take(self, amount: float) -> None:
        """Take ``amount``, which :meth:`wait` has allowed; the level may fall below zero."""
        self._fill()
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Put back what was taken and not used; a negative amount takes more."""
        self._fill()
        self._level = min(self.burst, self._level + amount)


class RateLimits:
    """Requests and tokens a minute, and the pause that a server has asked for."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._requests = _bucket(limits.requests_per_minute, now)
        self._tokens = _bucket(limits.tokens_per_minute, now)
        self._paused_until = 0.0

    @property
    def hold(self) -> bool:
        """Whether there is a rate to keep."""
        return self._requests is not None or self._tokens is not None

    def replay(self, history: Sequence[tuple[float, float]]) -> None:
        """Count calls that went out before this job: seconds ago and tokens, oldest first."""
        if self._requests is not None:
            self._requests.replay([(seconds, 1.0) for seconds, _ in history])
        if self._tokens is not None:
            self._tokens.replay(history)

    def wait(self, tokens: float) -> float:
        """Seconds until a call of at most ``tokens`` tokens may go out."""
        waits = [self._paused_until - self._now()]
        if self._requests is not None:
            waits.append(self._requests.wait(1.0))
        if self._tokens is not None:
            waits.append(self._tokens.wait(tokens))
        return max(0.0, *waits)

    def take(self, tokens: float) -> None:
        """Count a call that goes out."""
        if self._requests is not None:
            self._requests.take(1.0)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def settle(self, reserved: float, used: float) -> None:
        """Put back the tokens that a call had reserved and did not use."""
        if self._tokens is not None:
            self._tokens.give_back(reserved - used)

    def pause(self, seconds: float) -> None:
        """Let nothing go out for so long: the server has said that it is too much."""
        self._paused_until = max(self._paused_until, self._now() + seconds)


def _bucket(per_minute: float | None, now: Callable[[], float]) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, now)


def backoff(retries: Retries, failures: int, asked: float | None, draw: random.Random) -> float:
    """Seconds to wait after the ``failures``-th failed call (from 1) of a request.

    Twofold growth with jitter between half and all of it. What the server asked for is the least,
    with up to a tenth and 50 ms more, so that not all come back at once.
    """
    grown = min(retries.longest_wait_s, retries.first_wait_s * 2.0 ** (min(failures, 60) - 1))
    own = grown * draw.uniform(0.5, 1.0)
    if asked is None:
        return own
    asked = min(asked, retries.longest_retry_after_s)
    return asked + draw.uniform(0.0, 0.1 * asked + 0.05)
