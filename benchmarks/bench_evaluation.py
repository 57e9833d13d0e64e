"""Evaluation of a million-line run: reading with all checks and measuring, against pytrec_eval."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOPICS = 1000
DEPTH = 1000
JUDGED = 100
ROUNDS = 5
TARGET = 0.5


def write_input(folder: Path, topics: int = TOPICS, depth: int = DEPTH) -> tuple[Path, Path]:
    """Write a run with ties and its judgments; the same files at every call."""
    draw = random.Random(20240)
    run, qrels = folder / "run.trec", folder / "qrels.txt"
    with run.open("w") as run_out, qrels.open("w") as qrels_out:
        for topic in range(topics):
            docs = draw.sample(range(10_000_000), depth + JUDGED // 2)
            # Scores of two decimals: about a third of the documents share theirs with another.
            scores = sorted((round(draw.gauss(20, 6), 2) for _ in range(depth)), reverse=True)
            for rank, (doc, score) in enumerate(zip(docs, scores, strict=False), 1):
                run_out.write(f"t{topic} Q0 LA{doc:07d} {rank} {score:.6f} bench\n")
            for doc in draw.sample(docs[: depth // 4], JUDGED // 2) + docs[depth:]:
                qrels_out.write(f"t{topic} 0 LA{doc:07d} {max(0, draw.randrange(-3, 4))}\n")
    return run, qrels


def ours(run: Path, qrels: Path) -> dict[str, float]:
    """Read with all checks and evaluate; measure -> mean over all judged topics."""
    from polyray.collections.qrels import read_qrels
    from polyray.evaluation import DEFAULT_MEASURES, evaluate
    from polyray.runs import Run

    result = evaluate(Run.read(run), read_qrels(str(qrels)), DEFAULT_MEASURES)
    return result.measures_all_judged


def other(run: Path, qrels: Path) -> dict[str, float]:
    """The same with pytrec_eval's own parsers and evaluator."""
    import pytrec_eval

    names = {"map_cut_100": "AP@100", "ndcg_cut_20": "nDCG@20", "P_1": "P@1", "recall_100": "R@100"}
    with run.open() as run_in, qrels.open() as qrels_in:
        scores = pytrec_eval.parse_run(run_in)
        judged = pytrec_eval.parse_qrel(qrels_in)
    found = pytrec_eval.RelevanceEvaluator(judged, set(names)).evaluate(scores)
    return {
        name: statistics.fmean(values[raw] for values in found.values())
        for raw, name in names.items()
    }


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure() -> list[dict[str, Any]]:
    """Seconds of both, medians of interleaved rounds; ``ratio`` is their time over ours."""
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = write_input(Path(folder))
        first, second = ours(run, qrels), other(run, qrels)
        difference = max(abs(first[name] - second[name]) for name in second)
        if difference > 1e-6:
            raise AssertionError(f"the two evaluations differ by {difference}")
        times = [
            (_seconds(lambda: ours(run, qrels)), _seconds(lambda: other(run, qrels)))
            for _ in range(ROUNDS)
        ]
    mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = theirs / mine
    return [
        {
            "stage": "evaluation",
            "ours": round(mine, 3),
            "other": round(theirs, 3),
            "ratio": round(ratio, 3),
            "target": TARGET,
            "met": ratio >= TARGET,
            "settings": {
                "unit": "seconds",
                "other": "pytrec_eval",
                "lines": TOPICS * DEPTH,
                "judgments": TOPICS * JUDGED,
                "rounds": ROUNDS,
                "largest_difference": difference,
                "ours_all": [round(pair[0], 3) for pair in times],
                "other_all": [round(pair[1], 3) for pair in times],
            },
        }
    ]


if __name__ == "__main__":
    print(measure())
