"""Bucket cut-offs and weights of the residual codec."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyray.indexes.plaid.codec import buckets_of

NORMAL = torch.from_numpy(np.random.default_rng(1).standard_normal(1_000_000)).float()


def error(values: torch.Tensor, cutoffs: torch.Tensor, weights: torch.Tensor) -> float:
    return float((values - weights[torch.bucketize(values, cutoffs)]).square().mean())


def test_two_bits_of_a_normal_distribution() -> None:
    """Max 1960, table I, four levels: 0.4528 and 1.510, cut at 0 and 0.9816, error 0.1175."""
    cutoffs, weights = buckets_of(NORMAL, 2, "lloyd-max")
    assert cutoffs.tolist() == pytest.approx([-0.9816, 0, 0.9816], abs=0.01)
    assert weights.tolist() == pytest.approx([-1.510, -0.4528, 0.4528, 1.510], abs=0.01)
    assert error(NORMAL, cutoffs, weights) == pytest.approx(0.1175, abs=0.001)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_error_is_below_that_of_equally_frequent_buckets(bits: int) -> None:
    mine = error(NORMAL, *buckets_of(NORMAL, bits, "lloyd-max"))
    theirs = error(NORMAL, *buckets_of(NORMAL, bits, "quantiles"))
    assert mine < 0.97 * theirs


@pytest.mark.parametrize("values", [[0.0], [0.25] * 9, [0.0, 1.0, 1.0]])
def test_fewer_values_than_buckets(values: list[float]) -> None:
    held = torch.tensor(values)
    cutoffs, weights = buckets_of(held, 2, "lloyd-max")
    assert cutoffs.shape == (3,)
    assert weights.shape == (4,)
    assert (cutoffs.diff() >= 0).all()
    assert error(held, cutoffs, weights) == pytest.approx(0.0, abs=1e-12)
