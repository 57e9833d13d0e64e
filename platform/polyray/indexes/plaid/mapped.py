"""Codes and residuals as two plain files that a search maps into memory and never reads whole.

colbert-ai maps an index of a single chunk only, and by the length of a file's head; these files
hold all chunks, one after another, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from polyray.errors import MissingPrerequisite
from polyray.files import atomic_path
from polyray.indexes.plaid.files import chunk_files, load_tensor

__all__ = ["mapped_scorer", "write_mapped"]

CODES, RESIDUALS = "codes.bin", "residuals.bin"
PADDING = 512
"""Rows behind the last token, as colbert-ai adds them."""


def write_mapped(folder: Path, chunks: Iterable[int]) -> None:
    """Write both files from the chunks that lie in the folder, a chunk at a time."""
    import numpy as np

    with ExitStack() as stack:
        paths = [stack.enter_context(atomic_path(folder / name)) for name in (CODES, RESIDUALS)]
        codes, residuals = (stack.enter_context(path.open("wb")) for path in paths)
        width = 0
        for chunk in chunks:
            files = chunk_files(folder, chunk)
            load_tensor(files["codes"], mmap=True).numpy().tofile(codes)
            rows = load_tensor(files["residuals"], mmap=True).numpy()
            width = rows.shape[1]
            rows.tofile(residuals)
        np.zeros(PADDING, np.int32).tofile(codes)
        np.zeros((PADDING, width), np.uint8).tofile(residuals)
        for handle in (codes, residuals):
            handle.flush()
            os.fsync(handle.fileno())


def mapped_scorer(base: Any, folder: Path) -> Any:
    """An ``IndexScorer`` whose codes and residuals are mapped, copy on write.

    Raises :class:`~polyray.errors.MissingPrerequisite` where the index was built without them.
    """
    if not (folder / CODES).is_file():
        raise MissingPrerequisite(f"{folder} was built without memory_map: build it with it")
    import numpy as np
    import torch
    from colbert.indexing.codecs.residual import ResidualCodec

    class Mapped(base):
        """Loads everything but the tokens."""

        def _load_embeddings(self) -> None:
            width = self.codec.dim * self.codec.nbits // 8
            codes: np.ndarray = np.memmap(folder / CODES, np.int32, "c")
            residuals = np.memmap(folder / RESIDUALS, np.uint8, "c").reshape(-1, width)
            self.embeddings = ResidualCodec.Embeddings(
                torch.from_numpy(codes), torch.from_numpy(residuals)
            )

        def set_embeddings_strided(self) -> None:
            self.offsets = torch.cat((torch.zeros(1, dtype=torch.int64), self.doclens.cumsum(0)))

    return Mapped(str(folder), use_gpu=False)
