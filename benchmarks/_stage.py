"""One stage in a process of its own."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from benchmarks._measure import Row, pin_threads, threads

__all__ = ["run_stage"]


def run_stage(name: str, quick: bool) -> list[Row]:
    """The rows of one stage, with what the machine is in each one's settings."""
    pin_threads()
    rows: list[Row] = import_module(f"benchmarks.bench_{name}").measure(quick=quick)
    facts = _machine()
    for row in rows:
        row["settings"] |= facts
    return rows


def _machine() -> dict[str, Any]:
    from polyray.environment import environment

    found = environment()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "threads": threads(),
        "cpu": found["cpu"]["model"],
        "python": found["python"],
        "versions": found["packages"],
        "date": datetime.now(UTC).date().isoformat(),
        "load_average_after": None if load is None else round(load, 2),
    }
