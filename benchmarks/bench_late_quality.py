"""What a search finds in the index of either tool, opened by the same untouched Searcher.

Every passage is encoded once; then both builders write whole indexes of these vectors, several
times with other seeds, since k-means begins at random and one draw tells little.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks._late import (
    BITS,
    build_ours,
    build_theirs,
    judgments,
    model,
    passages,
    questions,
    searcher,
)
from benchmarks._measure import Pairs, Row, row

EVERYTHING, DRAWS = 5359, 3
K, HITS = 10, 100
MEASURES = (f"overlap with exact MaxSim@{K}", "nDCG@20")


def measure(quick: bool = False) -> list[Row]:
    """overlap@10 with exact MaxSim and nDCG@20 of both indexes, three draws of each.

    polyray's index has Lloyd-Max buckets, its default, and then colbert-ai's own, quantiles.
    """
    documents = passages(24 if quick else EVERYTHING)
    asked = questions(8 if quick else 1000)
    texts = [document.contents for document in documents]
    held = Held.encoded(texts)
    draws = 1 if quick else DRAWS
    with tempfile.TemporaryDirectory() as name:
        measured = _Measured(documents, asked, held.exact(texts, [query.text for query in asked]))
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(draws):
            for kind, folder in _built(Path(name), documents, held, seed):
                found.setdefault(kind, []).append(measured(folder))
    facts = {"passages": len(documents), "bits": BITS, "precision": "float32", "draws": draws}
    rows = []
    for kind, label in (("ours", ""), ("quantiles", ", buckets: quantiles")):
        for place, stage in enumerate(MEASURES):
            ours, theirs = (tuple(draw[place] for draw in found[side]) for side in (kind, "theirs"))
            other = "colbert-ai's index of the same vectors, the same Searcher"
            pairs, title = Pairs(ours, theirs), f"late index, {stage}{label}"
            rows.append(row(title, pairs, None, other=other, unit="share", **facts))
    return rows


@dataclass
class Held:
    """An encoder whose passages were encoded before: ``vectors`` has the float32 rows of each."""

    encoder: Any
    vectors: dict[str, Any]

    @classmethod
    def encoded(cls, texts: Sequence[str]) -> Held:
        """Encode the texts with the model of these benchmarks."""
        from polyray.models.late import load_late

        encoder = load_late(model())
        return cls(encoder, dict(zip(texts, encoder.encode_passages(texts), strict=True)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode_passages(self, texts: Sequence[str]) -> list[Any]:
        """The rows that each text got."""
        return [self.vectors[text] for text in texts]

    def exact(self, texts: Sequence[str], asked: Sequence[str]) -> list[set[int]]:
        """For each query, the numbers of the ``K`` texts of the highest MaxSim, uncompressed."""
        import numpy as np

        rows = self.encode_passages(texts)
        stacked = np.concatenate(rows)
        starts = np.concatenate(([0], np.cumsum([len(part) for part in rows])))[:-1]
        best = []
        for query in self.encoder.encode_queries(asked):
            scores = np.maximum.reduceat(stacked @ query.T, starts).sum(1)
            best.append({*np.argsort(-scores, kind="stable")[:K].tolist()})
        return best


def _built(
    root: Path, documents: Sequence[Any], held: Held, seed: int
) -> Iterator[tuple[str, Path]]:
    """The three indexes of one draw, each as its own builder writes it."""
    with patch("polyray.models.late.load_late", lambda _: held):
        for kind, buckets in (("ours", "lloyd-max"), ("quantiles", "quantiles")):
            build_ours(root / kind, documents, seed=seed, buckets=buckets)
            yield kind, root / kind
    with _seeded(seed), _known(held):
        yield "theirs", build_theirs(root / "theirs", documents)


@contextmanager
def _known(held: Held) -> Iterator[None]:
    """colbert-ai's encoder gives the vectors that are there."""
    import numpy as np
    import torch

    from polyray.models.colbert_ai import prepare

    prepare()
    from colbert.indexing.collection_encoder import CollectionEncoder

    def encode(_: Any, texts: Sequence[str]) -> tuple[Any, list[int]]:
        rows = held.encode_passages(texts)
        return torch.from_numpy(np.concatenate(rows)), [len(part) for part in rows]

    with patch.object(CollectionEncoder, "encode_passages", encode):
        yield


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """colbert-ai's k-means begins elsewhere for each seed, and so does what it shuffles."""
    import faiss
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    real = faiss.Kmeans
    with patch("faiss.Kmeans", lambda *given, **named: real(*given, **{**named, "seed": seed})):
        yield


class _Measured:
    """Opens an index with the Searcher and gives both measures."""

    def __init__(
        self, documents: Sequence[Any], asked: Sequence[Any], exact: Sequence[set[int]]
    ) -> None:
        self._documents, self._asked, self._exact = documents, asked, exact

    def __call__(self, folder: Path) -> tuple[float, float]:
        from polyray.evaluation.measures import evaluate
        from polyray.models.colbert_ai import quiet
        from polyray.runs import Run

        opened = searcher(folder, self._documents)
        with quiet():
            texts = {str(place): query.text for place, query in enumerate(self._asked)}
            ranking = opened.search_all(texts, k=HITS).todict()
        rankings, overlaps = {}, []
        for place, (query, best) in enumerate(zip(self._asked, self._exact, strict=True)):
            hits = ranking[str(place)]
            overlaps.append(len({number for number, *_ in hits[:K]} & best) / len(best))
            rankings[query.query_id] = [
                (self._documents[number].doc_id, float(score)) for number, _, score in hits
            ]
        figures = evaluate(Run(rankings), judgments(), ["nDCG@20"]).measures
        return statistics.mean(overlaps), figures["nDCG@20"]
