"""Fixtures that all tests share: the real data, the cases, and one Ray for the session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _data_root() -> Path | None:
    named = os.environ.get("POLYRAY_DATA")
    root = Path(named) if named else ROOT.parent / "shared" / "data"
    return root if root.is_dir() else None


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real evaluation data."""
    root = _data_root()
    if root is None:
        pytest.skip("no evaluation data: set POLYRAY_DATA to its folder")
    return root


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of small inputs with right results, beside the evaluation data."""
    root = _data_root()
    if root is None or not (root.parent / "cases").is_dir():
        pytest.skip("no cases folder beside the evaluation data")
    return root.parent / "cases"


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One local Ray for all tests that need it."""
    from polyray.cluster import started

    with started(num_cpus=2):
        yield
