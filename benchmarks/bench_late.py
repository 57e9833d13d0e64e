"""Building a PLAID index, against colbert-ai's own Indexer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._late import (
    BITS,
    build_ours,
    build_theirs,
    passages,
)
from benchmarks._measure import Pairs, Row, interleaved, row, seconds

PASSAGES, ROUNDS = 300, 3
EVERYTHING, DRAWS = 5359, 3
BUILD_TARGET = 1 / 0.6


def measure(quick: bool = False) -> list[Row]:
    """Seconds of a build; with ``POLYRAY_BENCH_FULL`` of all 5,359 passages, once.

    Then the quality of both codecs, too: overlap with exact MaxSim, nDCG@20, three draws of each.
    """
    full = bool(os.environ.get("POLYRAY_BENCH_FULL")) and not quick
    count, rounds = (24, 1) if quick else (EVERYTHING, 1) if full else (PASSAGES, ROUNDS)
    documents = passages(count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = folder / "vectors"
        ours = partial(seconds, partial(build_ours, folder / "ours", documents, kept))
        theirs = partial(seconds, partial(build_theirs, folder / "theirs", documents))
        pairs = interleaved(ours, theirs, rounds, warm_up=not full)
        facts: dict[str, Any] = {"passages": len(documents), "bits": BITS, "precision": "float32"}
        label = f"late index, {len(documents)} passages"
        rows = [row(label, pairs, BUILD_TARGET, other="colbert-ai's Indexer", **facts)]
        if full:
            rows += _quality(kept, documents, facts)
    return rows


def _quality(kept: Path, documents: Sequence[Any], facts: dict[str, Any]) -> list[Row]:
    """Codecs of both trainers on the same vectors, against exact MaxSim."""
    from benchmarks._late_codecs import Collection, draws

    held = Collection.read(kept, [document.doc_id for document in documents])
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for name, overlap, ndcg in draws(held, DRAWS):
        found[name].append((overlap, ndcg))
    made = []
    for place, stage in enumerate(
        ("late index, overlap with exact MaxSim@10", "late index, nDCG@20")
    ):
        ours, theirs = (tuple(draw[place] for draw in found[name]) for name in found)
        other = "colbert-ai's codec of the same vectors"
        pairs = Pairs(ours, theirs)
        made.append(row(stage, pairs, None, other=other, unit="share", **facts, draws=DRAWS))
    return made
