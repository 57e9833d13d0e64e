"""How good a student is while it trains: nDCG@10 of queries that rank a pool of passages each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyray.models.late import TorchLateEncoder
    from polyray.training.loop import Example

__all__ = ["Validation"]

DEPTH = 10


@dataclass(frozen=True)
class Validation:
    """Held-out examples; of each the first passage is relevant and the others are not."""

    examples: Sequence[Example]

    def ndcg(self, encoder: TorchLateEncoder) -> float:
        """Mean nDCG@10; the gain is 1 for the positive alone, ties count against it."""
        import numpy as np

        from polyray.models.maxsim import max_sim

        texts = sorted({text for example in self.examples for text in example.passages})
        places = {text: place for place, text in enumerate(texts)}
        passages = encoder.encode_passages(texts)
        queries = encoder.encode_queries([example.query for example in self.examples])
        gains = []
        for example, query in zip(self.examples, queries, strict=True):
            pool = [passages[places[text]] for text in example.passages]
            scores = max_sim([query], pool)[0]
            rank = int((scores[1:] >= scores[0]).sum())
            gains.append(1 / np.log2(rank + 2) if rank < DEPTH else 0.0)
        return float(np.mean(gains))

    def evaluator(self, encoder: TorchLateEncoder, name: str) -> Any:
        """The same as sentence-transformers' trainer calls it, under the given name."""
        from sentence_transformers.base.evaluation import BaseEvaluator

        measure = self.ndcg

        class Pool(BaseEvaluator):
            """See :class:`Validation`."""

            primary_metric = name

            def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
                was = model.training
                model.eval()
                try:
                    return {name: measure(encoder)}
                finally:
                    model.train(was)

        return Pool()
