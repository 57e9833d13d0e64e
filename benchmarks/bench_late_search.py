"""Searching a PLAID index, against colbert-ai's own Searcher over the same folder."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._late import BITS, build_ours, model, passages, questions, searcher
from benchmarks._measure import Pairs, Row, interleaved, row, seconds

PASSAGES, QUESTIONS, ROUNDS = 5359, 100, 5
SEARCH_TARGET, BATCH_TARGET = 1.0, 1.5
K = 10


def measure(quick: bool = False) -> list[Row]:
    """Seconds of a search, the query's encoding included, and of a batch of 100."""
    documents = passages(24 if quick else PASSAGES)
    queries = questions(8 if quick else QUESTIONS)
    facts = {"passages": len(documents), "bits": BITS, "precision": "float32"}
    with tempfile.TemporaryDirectory() as name:
        index = Path(name) / "index"
        build_ours(index, documents)
        return _search(index, documents, queries, 1 if quick else ROUNDS, facts)


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
