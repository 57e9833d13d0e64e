"""Indexes of one collection, by any system: ``python -m jobs.index configs/index/afriqa_sw.yaml``.

The same indexes that the studies make and search, so that a study started later finds them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from jobs._common import job_main
from polyray.config import Settings
from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import resolve
from polyray.languages import check_codes
from polyray.models.device import precision_notes
from polyray.progress import Progress
from polyray.retrieve.build import Built, open_store
from polyray.retrieve.builder import Builder
from polyray.retrieve.settings import Bm25System, DenseSystem, LateSystem, Workers

System = Annotated[Bm25System | DenseSystem | LateSystem, Field(discriminator="kind")]


class Documents(Settings):
    """Documents in one language; ``path`` is a file, a folder, a pattern or an ``irds:`` id."""

    path: str
    format: str | None = None
    language: str = "en"

    @field_validator("language")
    @classmethod
    def _known(cls, code: str) -> str:
        check_codes([code])
        return code


class IndexConfig(Settings):
    """Which documents, and which systems to index them for."""

    kind: Literal["index"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    documents: Documents
    systems: tuple[System, ...] = Field(min_length=1)
    workers: Workers = Workers()
    output: str = "runs"
    tracking: str | None = None

    @field_validator("systems")
    @classmethod
    def _distinct(cls, systems: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [system.name for system in systems]
        if len(set(names)) != len(names):
            raise ValueError("two systems have the same name")
        return systems


@dataclass(frozen=True, slots=True)
class Indexed:
    """The table that the job prints, and the experiment's folder."""

    tables: list[Table]
    folder: Path
    notes: list[str]


def run_index(config: IndexConfig) -> Indexed:
    """Build the index of every system that is not there yet; print what each holds."""
    from polyray.collections.documents import read_documents
    from polyray.collections.store import fingerprint
    from polyray.files import write_json

    given = config.documents.path
    path = given if given.startswith("irds:") else str(resolve(given))
    identity = fingerprint(path)
    experiment = Experiment(
        config.name, config, {"documents": identity}, Path(config.output).absolute()
    )
    experiment.open()
    builder = Builder(experiment, config.workers)
    rows, facts, notes = [], {}, []
    with Progress(config.name) as progress:
        documents = read_documents(path, format=config.documents.format)
        store = open_store(experiment.indexes, documents, identity, config.workers)
        if store.skipped_empty:
            some = ", ".join(store.manifest["skipped_empty_ids"][:10])
            notes.append(f"documents: {store.skipped_empty} empty, skipped: {some}")
        for system in config.systems:
            start = time.perf_counter()
            built = builder.build(
                system, store, config.documents.language, identity, progress.update
            )
            seconds = round(time.perf_counter() - start, 3)
            rows.append(_row(system.name, system.kind, built, seconds))
            facts[system.name] = {**built.retriever.describe(), **built.facts}
            if cut := built.facts.get("index.truncated"):
                notes.append(f"{system.name}: {cut} passages longer than the model reads, cut")
    notes += precision_notes(facts.items())
    columns = ["system", "kind", "documents", "passages", "vectors", "seconds", "folder"]
    table = Table(columns, rows, f"{config.name}: indexes", ids=("folder",))
    table.write(experiment.folder / "tables", "indexes")
    write_json(
        experiment.folder / "results.json",
        {"documents": store.documents, "skipped_empty": store.skipped_empty, "systems": facts},
    )
    _track(config, experiment, facts)
    return Indexed([table], experiment.folder, notes)


def _row(name: str, kind: str, built: Built, seconds: float) -> list[Any]:
    facts = built.facts
    passages = facts.get("index.passages", facts.get("index.rows"))
    vectors = facts.get("index.embeddings", passages if kind == "dense" else None)
    folder = ", ".join(folder.name for folder in built.folders)
    return [name, kind, facts["index.documents"], passages, vectors, seconds, folder]


def _track(config: IndexConfig, experiment: Experiment, facts: dict[str, dict[str, Any]]) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "index"}
    run = f"{config.name}-{experiment.hash}"
    with Tracker(config.name, run, tags, config.tracking) as tracker:
        tracker.log_params({"config": experiment.text, **_flat(experiment.inputs)})
        for name, described in facts.items():
            counts = {k: float(v) for k, v in described.items() if k.startswith("index.")}
            params = {k: v for k, v in described.items() if not k.startswith("index.")}
            tracker.child(name, {"system": name, **params}, counts, {"polyray.system": name})
        tracker.log_artifacts(experiment.folder)


def _flat(inputs: Any) -> dict[str, str]:
    return {f"inputs.{name}": value for name, value in inputs.items()}


if __name__ == "__main__":
    job_main(IndexConfig, run_index)
