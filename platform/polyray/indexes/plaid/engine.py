"""The compiled engine: colbert-ai's index in memory, and polyray's inner loops (``plaid.cpp``).

``python -m polyray.indexes.plaid.engine`` compiles what late interaction needs; the set-up does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.compiled import extension
from polyray.errors import MissingPrerequisite

if TYPE_CHECKING:
    import torch

__all__ = ["candidates", "native", "packed_max_sim", "ranker"]


def ranker(folder: Path, memory_map: bool) -> Any:
    """colbert-ai's ``IndexScorer`` over the folder, on the processor."""
    from polyray.indexes.plaid.mapped import mapped_scorer
    from polyray.models.colbert_ai import on_processor, prepare, quiet

    prepare()
    from colbert.search.index_storage import IndexScorer

    with quiet(), on_processor():
        if memory_map:
            return mapped_scorer(IndexScorer, folder)
        return IndexScorer(str(folder), use_gpu=False)


def candidates(
    engine: Any, matrix: torch.Tensor, cells: int, threshold: float, ndocs: int
) -> torch.Tensor:
    """int32 passage numbers, ascending, that pass both filters: those of colbert-ai's CPU search.

    ``matrix`` is float32 ``[tokens, dim]``. Passages in the lists of each token's ``cells`` nearest
    centroids are scored by their tokens' centroids alone: the best ``ndocs`` with only the
    centroids that reach ``threshold`` for some token, then the best ``ndocs // 4`` of them with all
    (PLAID, Santhanam et al. 2022, sections 4.2 to 4.4). Of equal scores the lower centroids and the
    higher passage numbers stay.
    """
    found: torch.Tensor = native().candidates(
        engine.codec.centroids @ matrix.T,
        cells,
        threshold,
        ndocs,
        engine.ivf.tensor,
        engine.ivf.offsets,
        engine.embeddings.codes,
        engine.offsets,
    )
    return found


def packed_max_sim(
    engine: Any, queries: Sequence[torch.Tensor], numbers: torch.Tensor
) -> torch.Tensor:
    """float32 ``[passages, queries]``: MaxSim of decompressed passages, the int32 ``numbers``.

    ``queries`` are float32 ``[tokens, dim]`` each. The largest similarity of a token counts also
    where all are negative (the C++ of colbert-ai starts from zero). Rows are of unit length, as
    colbert-ai's, and sums may differ from its by rounding.
    """
    import torch

    starts = torch.tensor([0, *[len(matrix) for matrix in queries]]).cumsum(0)
    found: torch.Tensor = native().max_sim(
        torch.cat(list(queries)),
        starts,
        numbers,
        engine.offsets,
        engine.embeddings.codes,
        engine.embeddings.residuals,
        engine.codec.centroids,
        _packed_values(engine.codec),
    )
    return found


def _packed_values(codec: Any) -> torch.Tensor:
    """float32 ``[256, values of a byte]``: the bucket weights that each packed byte stands for."""
    buckets = codec.decompression_lookup_table[codec.reversed_bit_map.long()]
    values: torch.Tensor = codec.bucket_weights[buckets.long()].contiguous()
    return values


@cache
def native() -> Any:
    """The compiled module, which the set-up leaves ready."""
    return extension(Path(__file__).with_name("plaid.cpp"), "late interaction")


def _compile() -> None:
    from polyray.models.colbert_ai import prepare

    prepare()
    native()


if __name__ == "__main__":
    try:
        _compile()
    except MissingPrerequisite as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
