"""The residual codec of ColBERTv2 (Santhanam et al. 2022, section 3.3): train it, compress with it.

A token's vector becomes the number of its nearest centroid and, a dimension, which of
``2 ** bits`` buckets the difference falls into. :func:`compress` gives what colbert-ai's own codec
gives for the same vectors and centroids, byte for byte, in blocks that stay in the cache.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from polyray.errors import PolyrayError

if TYPE_CHECKING:
    import numpy as np
    import torch

__all__ = ["Buckets", "buckets_of", "centroid_count", "compress", "sample_size", "train"]

TYPICAL_TOKENS = 120
"""Tokens of a passage that colbert-ai's sampling rule reckons with, whatever ``doc_maxlen`` is."""
HELD_OUT, HELD_OUT_MOST = 0.05, 50_000
HOLD_OUT_FROM = 20_000
"""Vectors of a sample from which on a twentieth of it is held out."""
QUANTILE_MOST = 1 << 24
"""Numbers that ``torch.quantile`` takes."""
POINTS_A_CENTROID = 256
"""Training vectors of a cluster beyond which FAISS itself would draw a sample."""
BLOCK = 2048
"""Tokens compressed at once."""
LLOYD_ROUNDS = 50

Buckets = Literal["lloyd-max", "quantiles"]


def sample_size(passages: int) -> int:
    """How many passages train the codec: ``1 + 16 * sqrt(120 * passages)``, all if fewer.

    >>> sample_size(5359), sample_size(1_000_000)
    (5359, 175272)
    """
    return min(1 + int(16 * math.sqrt(TYPICAL_TOKENS * passages)), passages)


def centroid_count(tokens: float, training: int) -> int:
    """``2 ** floor(log2(16 * sqrt(tokens)))`` clusters, and never more than training vectors.

    >>> centroid_count(669_000, 600_000), centroid_count(30, 20)
    (8192, 20)
    """
    return min(2 ** math.floor(math.log2(16 * math.sqrt(tokens))), training)


def train(
    vectors: np.ndarray,
    tokens: float,
    *,
    bits: int,
    iterations: int,
    seed: int,
    buckets: Buckets = "lloyd-max",
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Codec and facts from float16 sample vectors ``[n, dim]`` of a collection of ``tokens``.

    k-means by FAISS (on a GPU where FAISS sees one), then the buckets' cut-offs and weights from
    residuals by :func:`buckets_of`. A twentieth of the sample is held out for these, as in
    colbert-ai; nothing is where the sample is a small collection as a whole: what is stored is
    then what was trained on, and a few held-out vectors would tell the wrong residuals. Works for
    one vector and for equal ones, too. Raises :class:`~polyray.errors.PolyrayError` for an empty
    sample.
    """
    import numpy as np
    import torch

    if not len(vectors):
        raise PolyrayError("there is nothing to train a codec from: no passage has a token")
    most = min(HELD_OUT_MOST, QUANTILE_MOST // vectors.shape[1])
    order = np.random.default_rng(seed).permutation(len(vectors))
    apart = len(vectors) >= HOLD_OUT_FROM
    held = order[: int(min(HELD_OUT * len(vectors), most))] if apart else order[:most]
    rest = order[len(held) :] if apart else order
    count = centroid_count(tokens, len(rest))
    training = np.sort(rest[: POINTS_A_CENTROID * count])
    centroids = _clusters(vectors[training].astype(np.float32), count, iterations, seed)
    centroids = torch.nn.functional.normalize(centroids, dim=-1).half().float()  # as it is stored
    heldout = torch.from_numpy(vectors[np.sort(held)]).float()
    residuals = heldout - centroids[_nearest(heldout, centroids)]
    cutoffs, weights = buckets_of(residuals, bits, buckets)
    codec = {
        "centroids": centroids,
        "cutoffs": cutoffs,
        "weights": weights,
        "average": residuals.abs().mean(dim=0).mean(),
    }
    facts = {
        "centroids": count,
        "training_vectors": len(training),
        "residuals_from": len(heldout),
        "held_out": apart,
        "average_residual": float(codec["average"]),
        "buckets": buckets,
    }
    return codec, facts


def buckets_of(
    residuals: torch.Tensor, bits: int, how: Buckets
) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 cut-offs ``[2 ** bits - 1]`` and weights ``[2 ** bits]`` for numbers of any shape.

    ``quantiles`` makes all buckets equally frequent, as colbert-ai does. ``lloyd-max`` begins there
    and moves each weight to its bucket's mean and each cut-off half way between two weights, which
    lowers the squared error at every round (Max 1960; Lloyd 1982): the tails, which decide inner
    products, come nearer to what they were.
    """
    import numpy as np
    import torch

    options = 2**bits
    quantiles = torch.arange(options) / options
    weights = residuals.quantile(quantiles + 0.5 / options)
    if how == "quantiles":
        return residuals.quantile(quantiles[1:]), weights
    ordered = np.sort(residuals.numpy(), axis=None).astype(np.float64)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    levels = weights.numpy().astype(np.float64)
    for _ in range(LLOYD_ROUNDS):
        inner = np.searchsorted(ordered, (levels[1:] + levels[:-1]) / 2)
        ends = np.concatenate(([0], inner, [len(ordered)]))
        counts = np.diff(ends)
        means = np.diff(sums[ends]) / np.maximum(counts, 1)
        levels = np.where(counts > 0, means, levels)
    cutoffs = torch.from_numpy((levels[1:] + levels[:-1]) / 2).float()
    return cutoffs, torch.from_numpy(levels).float()


def _clusters(training: np.ndarray, count: int, iterations: int, seed: int) -> torch.Tensor:
    import faiss
    import torch

    on_gpu = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0
    kmeans = faiss.Kmeans(
        training.shape[1],
        count,
        niter=iterations,
        gpu=on_gpu,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=POINTS_A_CENTROID,
    )
    kmeans.train(training)
    return torch.from_numpy(kmeans.centroids)


def _nearest(vectors: torch.Tensor, centroids: torch.Tensor) -> torch.Tensor:
    """int64 ``[n]``: the centroid of the largest inner product, the first of equals."""
    import torch

    if not len(vectors):
        return torch.zeros(0, dtype=torch.long)
    blocks = vectors.split(BLOCK)
    return torch.cat([(centroids @ block.T).max(dim=0).indices for block in blocks])


def compress(
    vectors: torch.Tensor, codec: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 codes ``[n]`` and uint8 residuals ``[n, dim * bits / 8]`` of float16 vectors.

    ``codec`` is what :func:`~polyray.indexes.plaid.files.read_codec` gives.
    """
    import torch

    dim = vectors.shape[1]
    bits = int(math.log2(len(codec["weights"])))
    codes = torch.empty(len(vectors), dtype=torch.int32)
    residuals = torch.empty(len(vectors), dim * bits // 8, dtype=torch.uint8)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        nearest = _nearest(block.float(), codec["centroids"])
        buckets = torch.bucketize(block - codec["centroids"][nearest], codec["cutoffs"])
        codes[start : start + BLOCK] = nearest
        residuals[start : start + BLOCK] = _packed(buckets.to(torch.uint8), bits)
    return codes, residuals


def _packed(buckets: torch.Tensor, bits: int) -> torch.Tensor:
    """Bucket numbers ``[n, dim]`` as bytes, the lowest bit of the first dimension foremost."""
    import numpy as np
    import torch

    spread = (buckets.unsqueeze(-1) >> torch.arange(bits, dtype=torch.uint8)) & 1
    flat = np.packbits(spread.reshape(len(buckets), -1).numpy(), axis=1)
    return torch.from_numpy(flat)
