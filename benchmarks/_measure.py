"""Interleaved measuring of two ways of doing the same, and the row that reports it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Pairs", "Row", "interleaved", "pin_threads", "row", "seconds", "threads"]

Row = dict[str, Any]
LESS_IS_BETTER = ("seconds", "MiB")

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """One value of each side a repeat, in the order in which they were taken."""

    ours: tuple[float, ...]
    other: tuple[float, ...]


def threads() -> int:
    """The threads that both sides get: all cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pin_threads() -> int:
    """Fix the thread counts of the libraries that are loaded after this; returns the count."""
    count = threads()
    for name in _THREAD_VARIABLES:
        os.environ[name] = str(count)
    return count


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(
    ours: Callable[[], float], other: Callable[[], float], repeats: int, *, warm_up: bool = True
) -> Pairs:
    """Take the value of both in turn; which one goes first alternates, so that drift cancels."""
    if warm_up:
        ours()
        other()
    pairs = []
    for repeat in range(repeats):
        if repeat % 2:
            second = other()
            pairs.append((ours(), second))
        else:
            pairs.append((ours(), other()))
    mine, theirs = zip(*pairs, strict=True)
    return Pairs(mine, theirs)


def row(
    stage: str,
    pairs: Pairs,
    target: float | None,
    *,
    other: str,
    unit: str = "seconds",
    **settings: Any,
) -> Row:
    """Medians and their ratio, above 1 where ours is the faster one.

    ``unit`` is ``seconds`` or ``MiB``, where less is better, or a rate, where more is; ``spread``
    in the settings is the smallest and the largest ratio of a repeat.
    """
    ratios = list(_ratios(pairs, unit))
    mine, theirs = statistics.median(pairs.ours), statistics.median(pairs.other)
    ratio = theirs / mine if unit in LESS_IS_BETTER else mine / theirs
    return {
        "stage": stage,
        "ours": _short(mine),
        "other": _short(theirs),
        "ratio": round(ratio, 3),
        "target": target,
        "met": None if target is None else ratio >= target,
        "settings": {
            "unit": unit,
            "other": other,
            "repeats": len(pairs.ours),
            "spread": [round(min(ratios), 3), round(max(ratios), 3)],
            "ours_all": [_short(value) for value in pairs.ours],
            "other_all": [_short(value) for value in pairs.other],
            **settings,
        },
    }


def _ratios(pairs: Pairs, unit: str) -> Iterable[float]:
    for mine, theirs in zip(pairs.ours, pairs.other, strict=True):
        yield theirs / mine if unit in LESS_IS_BETTER else mine / theirs


def _short(value: float) -> float:
    return float(f"{value:.4g}")
