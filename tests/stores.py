"""MLflow stores for tests: MLflow takes seconds to make the tables of one, so one is copied."""

from __future__ import annotations

import logging
import tempfile
from functools import cache
from pathlib import Path


def new_store(folder: Path) -> str:
    """The address of a store of ``folder``'s own; one that is there stays as it is."""
    path = folder / "mlflow.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_empty_store())
    return f"sqlite:///{path}"


@cache
def _empty_store() -> bytes:
    from mlflow import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        MlflowClient(f"sqlite:///{path}").search_experiments()
        return path.read_bytes()
