"""Building a PLAID index and searching it, against colbert-ai's own Indexer and Searcher."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._late import (
    BITS,
    build_ours,
    build_theirs,
    model,
    passages,
    questions,
    searcher,
)
from benchmarks._measure import Pairs, Row, interleaved, row, seconds

PASSAGES, ROUNDS = 300, 3
EVERYTHING, DRAWS = 5359, 3
BUILD_TARGET, SEARCH_TARGET, BATCH_TARGET = 1 / 0.6, 1.0, 1.5
K = 10


def measure(quick: bool = False) -> list[Row]:
    """Seconds of a build and of a search; with ``POLYRAY_BENCH_FULL`` of all 5,359 passages, once.

    Then the quality of both codecs, too: overlap with exact MaxSim, nDCG@20, three draws of each.
    """
    full = bool(os.environ.get("POLYRAY_BENCH_FULL")) and not quick
    count, rounds = (24, 1) if quick else (EVERYTHING, 1) if full else (PASSAGES, ROUNDS)
    documents, queries = passages(count), questions(8 if quick else 100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = folder / "vectors"
        ours = partial(seconds, partial(build_ours, folder / "ours", documents, kept))
        theirs = partial(seconds, partial(build_theirs, folder / "theirs", documents))
        pairs = interleaved(ours, theirs, rounds, warm_up=not full)
        facts: dict[str, Any] = {"passages": len(documents), "bits": BITS, "precision": "float32"}
        label = f"late index, {len(documents)} passages"
        rows = [row(label, pairs, BUILD_TARGET, other="colbert-ai's Indexer", **facts)]
        rows += _search(folder / "ours", documents, queries, 1 if quick else 5, facts)
        if full:
            rows += _quality(kept, documents, facts)
    return rows


def _search(
    index: Path,
    documents: Sequence[Any],
    queries: Sequence[Any],
    rounds: int,
    facts: dict[str, Any],
) -> list[Row]:
    """Both search the same folder, polyray's, for the same passages."""
    from polyray.indexes.plaid.search import PlaidIndex, PlaidSearch
    from polyray.models.late import load_late

    texts = [query.text for query in queries]
    encoder, opened, theirs = load_late(model()), PlaidIndex(index), searcher(index, documents)
    how = PlaidSearch()

    def one(text: str) -> list[int]:
        return opened.passages(encoder.encode_queries([text]), K, how)[0][0]

    def all_of_them() -> list[list[int]]:
        return [found[0] for found in opened.passages(encoder.encode_queries(texts), K, how)]

    def theirs_all() -> list[list[int]]:
        ranking = theirs.search_all(dict(enumerate(texts)), k=K).todict()
        return [[pid for pid, *_ in ranking[number]] for number in range(len(texts))]

    same = statistics.mean(
        len({*mine} & {*other}) / len(other)
        for mine, other in zip(all_of_them(), theirs_all(), strict=True)
    )
    facts = {**facts, "queries": len(texts), "k": K, "same_passages": round(same, 4)}
    mine: list[list[float]] = []
    others: list[list[float]] = []
    for _ in range(rounds):
        mine.append([seconds(partial(one, text)) for text in texts])
        others.append([seconds(partial(theirs.search, text, k=K)) for text in texts])
    rows = []
    for name, place in (("p50", 0.5), ("p95", 0.95)):
        at = int(place * (len(texts) - 1))
        pairs = Pairs(
            tuple(sorted(times)[at] for times in mine), tuple(sorted(times)[at] for times in others)
        )
        stage = f"late search, {name}"
        rows.append(row(stage, pairs, SEARCH_TARGET, other="colbert-ai's Searcher.search", **facts))
    batch = interleaved(partial(seconds, all_of_them), partial(seconds, theirs_all), rounds)
    other = "colbert-ai's Searcher.search_all"
    rows.append(row("late search, a batch", batch, BATCH_TARGET, other=other, **facts))
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
