"""Codecs drawn several times by both trainers, each measured on the same vectors and queries.

k-means begins at random: one draw tells little about ``overlap@10`` or nDCG@20. Encoding takes the
longest, so that the vectors are those of one build, and only the codecs are drawn again.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks._late import BITS, judgments, model, questions

__all__ = ["Collection", "draws"]

K, HITS = 10, 100
CELLS, THRESHOLD, CANDIDATES = 2, 0.45, 1024
"""What colbert-ai's Searcher takes for 100 hits."""
THEIR_ITERATIONS = 4


@dataclass(frozen=True)
class Collection:
    """float16 vectors of all passages, tokens of each, and ids; queries ``[n, tokens, dim]``."""

    vectors: Any
    lengths: Any
    ids: Sequence[str]
    names: Sequence[str]
    queries: Any

    @classmethod
    def read(cls, kept: Path, ids: Sequence[str]) -> Collection:
        """From the sample's files of a build, where the sample was everything."""
        import numpy as np

        from polyray.models.late import load_late

        asked = questions(1000)
        paths = sorted(kept.glob("*.lengths.npy"))
        rows = [np.load(str(path).replace(".lengths.", ".sample.")) for path in paths]
        return cls(
            np.concatenate(rows),
            np.concatenate([np.load(path) for path in paths]),
            ids,
            [query.query_id for query in asked],
            np.stack(load_late(model()).encode_queries([query.text for query in asked])),
        )

    @property
    def offsets(self) -> Any:
        """Where each passage's vectors begin, and the end."""
        import numpy as np

        return np.concatenate(([0], np.cumsum(self.lengths)))

    def exact(self) -> Any:
        """int64 ``[queries, K]``: the passages of the highest MaxSim."""
        import numpy as np

        vectors, starts = self.vectors.astype(np.float32), self.offsets[:-1]
        best = [
            np.argsort(-np.maximum.reduceat(vectors @ query.T, starts).sum(1), kind="stable")[:K]
            for query in self.queries
        ]
        return np.stack(best)


def draws(held: Collection, times: int) -> Iterator[tuple[str, float, float]]:
    """``ours`` or ``theirs``, overlap@10 with exact MaxSim, and nDCG@20 of each draw."""
    exact = held.exact()
    for seed in range(times):
        for name, trained in (("ours", _ours(held, seed)), ("theirs", _theirs(held, seed))):
            yield name, *_measured(held, trained, exact)


def _ours(held: Collection, seed: int) -> dict[str, Any]:
    from polyray.indexes.plaid.codec import train
    from polyray.indexes.plaid.stages import CodecSettings

    how = CodecSettings(bits=BITS, seed=seed)
    codec, _ = train(
        held.vectors, len(held.vectors), bits=BITS, iterations=how.iterations, seed=seed
    )
    return codec


def _theirs(held: Collection, seed: int) -> dict[str, Any]:
    """By ``CollectionIndexer``'s own methods; only the seed of the first centroids is another."""
    import faiss
    import torch

    from polyray.indexes.plaid.codec import centroid_count
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.indexing import collection_indexer as theirs
    from colbert.infra import ColBERTConfig

    torch.manual_seed(seed)
    dim = held.vectors.shape[1]
    indexer = theirs.CollectionIndexer.__new__(theirs.CollectionIndexer)
    indexer.config = ColBERTConfig(nbits=BITS, dim=dim, kmeans_niters=THEIR_ITERATIONS)
    indexer.use_gpu, indexer.verbose, indexer.rank = False, 0, 0
    vectors = torch.from_numpy(held.vectors)[torch.randperm(len(held.vectors))]
    apart = int(min(0.05 * len(vectors), 50_000))
    sample, heldout = vectors.split([len(vectors) - apart, apart])
    indexer.num_partitions = centroid_count(len(vectors), len(sample))
    real = faiss.Kmeans
    try:
        faiss.Kmeans = lambda *given, **named: real(*given, **{**named, "seed": seed})
        with quiet():
            centroids = indexer._train_kmeans(sample, None)
            cutoffs, weights, _ = indexer._compute_avg_residual(centroids, heldout)
    finally:
        faiss.Kmeans = real
    return {"centroids": centroids.half().float(), "cutoffs": cutoffs, "weights": weights}


def _measured(held: Collection, codec: dict[str, Any], exact: Any) -> tuple[float, float]:
    """What a search with colbert-ai's settings finds in an index of this codec."""
    import numpy as np
    import torch

    from polyray.evaluation.measures import evaluate
    from polyray.indexes.plaid.codec import _nearest
    from polyray.indexes.plaid.engine import candidates
    from polyray.indexes.plaid.inverted import inverted_lists
    from polyray.runs import Run

    centroids, offsets = codec["centroids"], held.offsets
    vectors = torch.from_numpy(held.vectors).float()
    codes = _nearest(vectors, centroids)
    buckets = torch.bucketize(vectors - centroids[codes], codec["cutoffs"])
    stored = torch.nn.functional.normalize(centroids[codes] + codec["weights"][buckets], dim=-1)
    lists, sizes = inverted_lists(
        lambda: iter([(codes.int().numpy(), held.lengths)]), len(centroids)
    )

    def cells(matrix: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        scores = centroids @ matrix.T
        near = scores.topk(count, dim=0, sorted=False).indices.flatten().unique()
        return near.contiguous(), scores.contiguous()

    starts = torch.cat((torch.zeros(1, dtype=torch.long), sizes.cumsum(0)))
    engine = SimpleNamespace(
        get_cells=cells,
        ivf=SimpleNamespace(tensor=lists, offsets=starts),
        embeddings=SimpleNamespace(codes=codes.int()),
        offsets=torch.from_numpy(offsets).long(),
    )
    rankings, overlaps = {}, []
    for name, query, best in zip(held.names, held.queries, exact, strict=True):
        matrix = torch.from_numpy(query)
        found = candidates(engine, matrix, CELLS, THRESHOLD, CANDIDATES).numpy()
        rows = np.concatenate([np.arange(offsets[p], offsets[p + 1]) for p in found])
        begins = np.concatenate(([0], np.cumsum(held.lengths[found])))[:-1]
        scores = (stored[torch.from_numpy(rows)] @ matrix.T).numpy()
        sums = np.maximum.reduceat(scores, begins).sum(1)
        order = np.argsort(-sums, kind="stable")[:HITS]
        rankings[name] = [(held.ids[found[place]], float(sums[place])) for place in order]
        overlaps.append(len({*found[order[:K]].tolist()} & {*best.tolist()}) / K)
    measured = evaluate(Run(rankings), judgments(), ["nDCG@20"]).measures["nDCG@20"]
    return statistics.mean(overlaps), measured
