"""Building a PLAID index, against colbert-ai's own Indexer."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._late import BITS, build_ours, build_theirs, passages
from benchmarks._measure import Row, interleaved, row, seconds

PASSAGES, ROUNDS = 300, 3
EVERYTHING = 5359
BUILD_TARGET = 1 / 0.6


def measure(quick: bool = False) -> list[Row]:
    """Seconds of a build; with ``POLYRAY_BENCH_FULL`` of all 5,359 passages, once."""
    full = bool(os.environ.get("POLYRAY_BENCH_FULL")) and not quick
    count, rounds = (24, 1) if quick else (EVERYTHING, 1) if full else (PASSAGES, ROUNDS)
    documents = passages(count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = partial(seconds, partial(build_ours, folder / "ours", documents))
        theirs = partial(seconds, partial(build_theirs, folder / "theirs", documents))
        pairs = interleaved(ours, theirs, rounds, warm_up=not full)
        facts: dict[str, Any] = {"passages": len(documents), "bits": BITS, "precision": "float32"}
        label = f"late index, {len(documents)} passages"
        return [row(label, pairs, BUILD_TARGET, other="colbert-ai's Indexer", **facts)]
