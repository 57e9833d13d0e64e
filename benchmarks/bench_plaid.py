"""The end of a PLAID build against colbert-ai's, and the memory of the driver of a build."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks._measure import Pairs, Row, interleaved, row, seconds

TOKENS, LENGTH, CENTROIDS, CHUNK = 10_000_000, 130, 32_768, 25_000
ROUNDS = 5
LISTS_TARGET = 5.0
SMALL, LARGE = 2_000, 50_000
MEMORY_TARGET = 1 / 1.1

DRIVER = """
import re, sys
from pathlib import Path
from polyray.cluster import started
from polyray.collections.store import DocumentStore
from polyray.indexes.plaid.build import PlaidSettings, build_plaid
from polyray.models.settings import LateSettings
from polyray.records import Document

root, count = Path(sys.argv[1]), int(sys.argv[2])
encoder = LateSettings(model="hashing:16", device="cpu", precision="float32")
rows = (Document(f"d{n}", " ".join(f"w{(n * 7 + k * k) % 5000}" for k in range(12)))
        for n in range(count))
store = DocumentStore.build(root / "documents", rows, "benchmark")
with started(num_cpus=2):
    build_plaid(root / "index", store, PlaidSettings(encoder, "words"), {}, actors=2, cpus=1)
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def measure(quick: bool = False) -> list[Row]:
    """Seconds of the inverted lists of synthetic codes; MiB of a build's driver."""
    return [_lists(quick), _memory(quick)]


def _lists(quick: bool) -> Row:
    """Codes drawn as k-means leaves them: some clusters are large, a passage meets one often."""
    import numpy as np
    import torch

    from polyray.files import sha256_of, write_json
    from polyray.indexes.plaid.files import chunk_files, save_tensor
    from polyray.indexes.plaid.finalize import write_lists
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.indexing.codecs.residual import ResidualCodec
    from colbert.indexing.utils import optimize_ivf

    tokens, centroids = (100_000, 1024) if quick else (TOKENS, CENTROIDS)
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        per_chunk = CHUNK * LENGTH
        starts = range(0, tokens, per_chunk)
        for chunk, start in enumerate(starts):
            size = min(per_chunk, tokens - start) // LENGTH * LENGTH
            codes = (centroids * random.beta(1, 2, size)).astype(np.int32)
            files = chunk_files(folder, chunk)
            save_tensor(files["codes"], torch.from_numpy(codes))
            write_json(files["doclens"], [LENGTH] * (size // LENGTH), indent=None)

        def theirs() -> None:
            """What ``CollectionIndexer._build_ivf`` does, its messages left out."""
            parts = [ResidualCodec.Embeddings.load_codes(name, n) for n in range(len(starts))]
            ordered = torch.cat(parts).long().sort()
            lengths = torch.bincount(ordered.values, minlength=centroids)
            with quiet():
                optimize_ivf(ordered.indices, lengths, name)

        ours = partial(write_lists, folder, len(starts), centroids)
        ours()
        mine = sha256_of(folder / "ivf.pid.pt")
        theirs()
        same = mine == sha256_of(folder / "ivf.pid.pt")
        pairs = interleaved(
            partial(seconds, ours), partial(seconds, theirs), 2 if quick else ROUNDS
        )
    return row(
        "late index, inverted lists",
        pairs,
        LISTS_TARGET,
        other="colbert-ai's sort and optimize_ivf",
        tokens=tokens,
        centroids=centroids,
        identical_file=same,
    )


def _memory(quick: bool) -> Row:
    """Peak memory of the driver's process: of a small collection over that of a large one."""
    small, large = (200, 400) if quick else (SMALL, LARGE)
    path = os.pathsep.join([p for p in sys.path if p])
    peaks = []
    for count in (small, large):
        with tempfile.TemporaryDirectory() as name:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", DRIVER, name, str(count)],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=True,
            )
            peaks.append(float(done.stdout.split()[-1]) / 1024)
    return row(
        f"late index, driver's memory, {large:,} passages",
        Pairs((peaks[1],), (peaks[0],)),
        MEMORY_TARGET,
        other=f"the same for {small:,} passages",
        unit="MiB",
    )
