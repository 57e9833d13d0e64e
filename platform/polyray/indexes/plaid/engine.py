"""The compiled engine under a search: colbert-ai's index in memory, and polyray's candidates.

``python -m polyray.indexes.plaid.engine`` compiles what late interaction needs; the set-up does.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.compiled import extension
from polyray.errors import MissingPrerequisite

if TYPE_CHECKING:
    import torch

__all__ = ["candidates", "ranker"]


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
    (PLAID, Santhanam et al. 2022, sections 4.2 to 4.4). Equal scores go to the higher number.
    """
    near, scores = engine.get_cells(matrix, cells)
    found: torch.Tensor = _native().candidates(
        near,
        engine.ivf.tensor,
        engine.ivf.offsets,
        scores,
        scores.max(-1).values >= threshold,
        engine.embeddings.codes,
        engine.offsets,
        ndocs,
    )
    return found


@cache
def _native() -> Any:
    return extension(Path(__file__).with_name("candidates.cpp"), "late interaction")


def _compile() -> None:
    from polyray.models.colbert_ai import prepare

    prepare()
    _native()


if __name__ == "__main__":
    try:
        _compile()
    except MissingPrerequisite as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
