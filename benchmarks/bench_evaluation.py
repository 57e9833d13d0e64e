"""Evaluation of a million-line run: reading with all checks and measuring, against pytrec_eval."""

from __future__ import annotations

import random
import statistics
import tempfile
from pathlib import Path

from benchmarks._measure import Row, interleaved, row, seconds

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


def measure(quick: bool = False) -> list[Row]:
    """Seconds of both; raises where the two evaluations differ."""
    topics = 20 if quick else TOPICS
    with tempfile.TemporaryDirectory() as folder:
        run, qrels = write_input(Path(folder), topics=topics)
        first, second = ours(run, qrels), other(run, qrels)
        difference = max(abs(first[name] - second[name]) for name in second)
        if difference > 1e-6:
            raise AssertionError(f"the two evaluations differ by {difference}")
        pairs = interleaved(
            lambda: seconds(lambda: ours(run, qrels)),
            lambda: seconds(lambda: other(run, qrels)),
            2 if quick else ROUNDS,
            warm_up=False,
        )
    return [
        row(
            "evaluation",
            pairs,
            TARGET,
            other="pytrec_eval, its own reading included",
            lines=topics * DEPTH,
            judgments=topics * JUDGED,
            largest_difference=difference,
        )
    ]
