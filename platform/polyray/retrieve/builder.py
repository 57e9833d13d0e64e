"""Builds any system that has an index; what is chosen for a machine is kept in the experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from polyray.collections.store import DocumentStore
from polyray.experiment import Experiment
from polyray.models.dense import resolved
from polyray.models.late import resolved_late
from polyray.models.settings import EncoderSettings, LateSettings
from polyray.retrieve.build import (
    Built,
    Encoders,
    Setting,
    build_bm25,
    build_dense,
    build_late,
    encoder_settings,
    late_settings,
)
from polyray.retrieve.settings import Bm25System, DenseSystem, LateSystem, Workers

__all__ = ["Builder", "Report"]

Chosen = TypeVar("Chosen", EncoderSettings, LateSettings)
Report = Callable[[str, int, int], None]
"""Told the step at hand, how much of it is done, and out of how much."""


class Builder:
    """Systems of one experiment, with the encoders of this process."""

    def __init__(self, experiment: Experiment, workers: Workers) -> None:
        self._experiment, self._workers = experiment, workers
        self._encoders = Encoders()

    def build(
        self,
        system: Bm25System | DenseSystem | LateSystem,
        store: DocumentStore,
        code: str,
        identity: str,
        report: Report,
    ) -> Built:
        """One system over the documents of ``store``, in the language ``code``.

        ``identity`` is the fingerprint of the documents' source.
        """
        indexes = self._experiment.indexes
        if isinstance(system, Bm25System):
            return build_bm25(system, store, code, indexes, identity)

        def shards(name: str, done: int, total: int) -> None:
            report(f"{code} documents, {name}: shards", done, total)

        setting = Setting(store, indexes, identity, self._workers, self._encoders, shards)
        if isinstance(system, LateSystem):
            late = late_settings(system)
            return build_late(system, self._kept(system.name, late, resolved_late(late)), setting)
        dense = encoder_settings(system)
        return build_dense(system, self._kept(system.name, dense, resolved(dense)), setting)

    def _kept(self, name: str, wanted: Chosen, chosen: Chosen) -> Chosen:
        """Device, precision and batch size: chosen once for this experiment, then kept."""
        choices = chosen.model_dump(include={"device", "precision", "batch_size"})
        return wanted.model_copy(update=self._experiment.keep(f"{name}.encoder", choices))
