"""A progress bar for long work: on a terminal a bar, otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]

_EVERY = 15.0
"""Seconds between lines where standard error is no terminal."""


class Progress:
    """Shows ``done`` of ``total`` of the step at hand on standard error."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bar: Any = None
        self._step = ""
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def update(self, step: str, done: int, total: int, status: str = "") -> None:
        """Show that ``done`` of ``total`` units of ``step`` are finished, and how it stands."""
        if not sys.stderr.isatty():
            self._line(step, done, total, status)
            return
        from tqdm import tqdm

        if step != self._step:
            self._close()
            self._bar, self._step = tqdm(total=total, desc=f"{self._name}: {step}"), step
        self._bar.set_postfix_str(status, refresh=False)
        self._bar.update(done - self._bar.n)

    def _line(self, step: str, done: int, total: int, status: str) -> None:
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            sys.stderr.write(f"{self._name}: {step} {done}/{total}{status and ', '}{status}\n")

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
