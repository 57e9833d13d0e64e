"""The files of a PLAID index folder: colbert-ai's own, and polyray's beside them.

colbert-ai's: ``centroids.pt``, ``avg_residual.pt``, ``buckets.pt``, ``plan.json``,
``metadata.json``, ``ivf.pid.pt`` and, a chunk, ``N.codes.pt`` (int32 ``[tokens]``),
``N.residuals.pt`` (uint8 ``[tokens, dim * bits / 8]``), ``doclens.N.json``, ``N.metadata.json``.
polyray's: ``ids.parquet`` (a row a passage: document id, window, whether deleted) and
``manifest.json``. While an index is built, what its stages have done lies under ``work/``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.files import read_json, sha256_of

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = [
    "WORK",
    "chunk_files",
    "load_tensor",
    "read_codec",
    "recover",
    "save_array",
    "save_tensor",
    "stage_files",
    "whole",
    "write_codec",
]

WORK = "work"
IDS = "ids.parquet"


def chunk_files(folder: Path, chunk: int) -> dict[str, Path]:
    """A chunk's files that hold its tokens."""
    return {
        "codes": folder / f"{chunk}.codes.pt",
        "residuals": folder / f"{chunk}.residuals.pt",
        "doclens": folder / f"doclens.{chunk}.json",
    }


def recover(folder: Path) -> None:
    """Put back what an update that was killed between its two renames has moved aside."""
    aside = folder.with_name(f".{folder.name}.old")
    if aside.is_dir():
        if folder.is_dir():
            shutil.rmtree(aside)
        else:
            aside.rename(folder)


def stage_files(folder: Path, shard: int) -> dict[str, Path]:
    """A shard's files of the stages; a stage's ``.json`` is written last."""
    stem = folder / WORK / f"{shard:05d}"
    return {
        "passages": stem.with_suffix(".passages.parquet"),
        "split": stem.with_suffix(".split.json"),
        "vectors": stem.with_suffix(".sample.npy"),
        "lengths": stem.with_suffix(".lengths.npy"),
        "sample": stem.with_suffix(".sample.json"),
        "encode": stem.with_suffix(".encode.json"),
    }


def whole(done: Path, **expected: Any) -> bool:
    """Whether a stage's ``.json`` is there, says what is expected, and its files are as written."""
    if not done.is_file():
        return False
    facts = read_json(done)
    if any(facts.get(name) != value for name, value in expected.items()):
        return False
    root = done.parents[1]
    return all(
        (root / name).is_file() and sha256_of(root / name) == sha256
        for name, sha256 in facts["files"].items()
    )


def hashes(folder: Path, *paths: Path) -> dict[str, str]:
    """Path within the index folder -> SHA-256."""
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}


def save_tensor(path: Path, value: Any) -> None:
    """``torch.save`` under the file's own name, then put in its place at once.

    The name goes into the file, so that a temporary one would change its bytes.
    """
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        torch.save(value, str(temporary / path.name))
        with (temporary / path.name).open("rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary / path.name, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load_tensor(path: Path, *, mmap: bool = False) -> Any:
    """What :func:`save_tensor` wrote; nothing but tensors is unpickled."""
    import torch

    return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap or None)


def save_array(path: Path, value: np.ndarray) -> None:
    """``numpy.save``, put in its place at once."""
    import numpy as np

    from polyray.files import atomic_path

    with atomic_path(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, value)


def write_codec(folder: Path, codec: dict[str, torch.Tensor]) -> list[Path]:
    """Write ``centroids`` (as float16), ``cutoffs``, ``weights`` and ``average``."""
    paths = [folder / name for name in ("centroids.pt", "buckets.pt", "avg_residual.pt")]
    save_tensor(paths[0], codec["centroids"].half())
    save_tensor(paths[1], (codec["cutoffs"], codec["weights"]))
    save_tensor(paths[2], codec["average"])
    return paths


def read_codec(folder: Path) -> dict[str, torch.Tensor]:
    """The codec as the compression and the search use it: float32."""
    cutoffs, weights = load_tensor(folder / "buckets.pt")
    return {
        "centroids": load_tensor(folder / "centroids.pt").float(),
        "cutoffs": cutoffs.float(),
        "weights": weights.float(),
        "average": load_tensor(folder / "avg_residual.pt"),
    }
