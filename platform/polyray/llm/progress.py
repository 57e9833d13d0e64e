"""A progress bar for LLM work: items done, rate, cost, what is missing, calls that failed."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from polyray.llm.outcome import Report

__all__ = ["AskProgress"]

_EVERY = 15.0
"""Seconds between lines where standard error is no terminal."""


class AskProgress:
    """Shows reports on standard error; use it as a context manager and hand it to ``ask``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bar: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __call__(self, report: Report) -> None:
        """Show how far the job is."""
        if not sys.stderr.isatty():
            now = time.monotonic()
            if now - self._last >= _EVERY:
                self._last = now
                line = f"{self._name}: {report.done}/{report.total}, {report.line()}\n"
                sys.stderr.write(line)
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=report.total, desc=self._name)
        self._bar.set_postfix_str(report.line(), refresh=False)
        self._bar.update(report.done - self._bar.n)
