"""Adding documents to a finished PLAID index, and taking some away.

New passages are encoded and compressed with the codec that is there and become new chunks; deleted
ones keep their numbers, leave the inverted lists and are marked in ``ids.parquet``, so that no
search finds them, colbert-ai's own included. The index is changed as a whole: a copy that shares
the unchanged files takes its place when all is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.collections.store import DocumentStore
from polyray.errors import ConfigError, Problems
from polyray.files import atomic_path, sha256_of, sha256_text
from polyray.indexes.actors import map_on_actors
from polyray.indexes.manifest import read_manifest
from polyray.indexes.plaid.build import PlaidSettings, Spread, Stages, colbert_settings, shards_of
from polyray.indexes.plaid.files import IDS, WORK, recover, save_array
from polyray.indexes.plaid.finalize import KIND, close_index, write_ids, write_lists
from polyray.indexes.plaid.mapped import CODES, RESIDUALS, write_mapped
from polyray.indexes.plaid.stages import CodecSettings
from polyray.models.settings import LateSettings
from polyray.records import Document

if TYPE_CHECKING:
    import numpy as np

__all__ = ["settings_of", "update_plaid"]


def settings_of(folder: Path, *, device: str = "auto") -> PlaidSettings:
    """What a job built the index from, as its manifest says; ``device`` encodes what is added.

    Raises :class:`~polyray.errors.ConfigError` where the manifest does not say it, or where the
    model's files are no longer those that the index was built with.
    """
    from polyray.models.late_files import checkpoint_of, fingerprint

    described = read_manifest(folder, KIND)["settings"]
    if lacking := {"encoder", "passages", "codec", "model_sha256"} - set(described):
        named = ", ".join(sorted(lacking))
        raise ConfigError(f"{folder}: its manifest does not say {named}: give the settings")
    encoder = LateSettings.model_validate({**described["encoder"], "device": device})
    if fingerprint(checkpoint_of(encoder), encoder.revision) != described["model_sha256"]:
        raise ConfigError(f"{folder}: its model is not what it was: build the index anew")
    windows = described["passages"]
    return PlaidSettings(
        encoder,
        windows["tokenizer"],
        windows["length"],
        windows["stride"],
        CodecSettings(**described["codec"]),
        described["memory_map"],
    )


def update_plaid(
    folder: Path,
    settings: PlaidSettings | None = None,
    *,
    add: Iterable[Document] = (),
    delete: Iterable[str] = (),
    actors: int | None = None,
    cpus: int | None = None,
    spread: Spread = map_on_actors,
) -> dict[str, Any]:
    """Delete documents by id, then add others; returns the manifest of the changed index.

    A document is changed by deleting and adding it in one call. ``settings`` are those that the
    index was built with; where they are not given, :func:`settings_of` reads them. From then on
    the index stands for other documents than the collection it was built from, and its manifest
    says so. Raises :class:`~polyray.errors.InputError` listing ids to delete that are not there
    and ids to add that are; the index is then as it was.
    """
    recover(folder)
    manifest = read_manifest(folder, KIND)
    settings = settings or settings_of(folder)
    if colbert_settings(settings) != manifest["colbert"]:
        raise ConfigError(f"{folder} was built with other settings of model or codec")
    gone = list(dict.fromkeys(delete))
    copy = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(copy, ignore_errors=True)
    (copy / WORK).mkdir(parents=True)
    try:
        _link(folder, copy, manifest)
        store = DocumentStore.build(copy / WORK / "documents", _checked(folder, add, gone), "added")
        chunks, counts = _add(copy, store, settings, manifest, actors, cpus, spread)
        dropped = _write_ids(folder, copy, set(gone), len(store))
        everything = [*manifest["chunks"], *chunks]
        write_lists(copy, len(everything), manifest["centroids"], dropped=dropped)
        if settings.memory_map:
            write_mapped(copy, range(len(everything)))
        change = {"added": store.documents, "deleted": len(gone), "skipped": store.skipped_empty}
        facts: dict[str, Any] = {
            "centroids": manifest["centroids"],
            "documents": manifest["documents"] - len(gone) + store.documents,
            "without_passages": manifest["without_passages"] + counts["without_passages"],
            "truncated": manifest["truncated"] + counts["truncated"],
            "stages": manifest["stages"],
            "updates": [*manifest.get("updates", []), change],
        }
        described = manifest["settings"] | {
            "documents": sha256_text(manifest["settings"]["documents"] + sha256_of(copy / IDS))
        }
        close_index(copy, everything, manifest["colbert"], described, facts)
        shutil.rmtree(copy / WORK)
        _put_in_place(copy, folder)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return read_manifest(folder, KIND)


def _checked(folder: Path, add: Iterable[Document], gone: list[str]) -> list[Document]:
    """The documents to add, after comparing all ids with those of the index."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(folder / IDS, columns=["doc_id", "deleted"])
    live = set(table.filter(pc.invert(table["deleted"]))["doc_id"].to_pylist())
    problems = Problems(str(folder))
    for doc_id in gone:
        if doc_id not in live:
            problems.add(None, f"document {doc_id} cannot be deleted: it is not in the index")
    live -= set(gone)
    documents = list(add)
    for document in documents:
        if document.doc_id in live:
            what = f"document {document.doc_id} is there already"
            problems.add(None, what, "delete it in the same call")
        live.add(document.doc_id)
    problems.raise_if_any()
    return documents


def _link(folder: Path, copy: Path, manifest: dict[str, Any]) -> None:
    """Share what does not change: chunks and codec."""
    changing = {IDS, "ivf.pid.pt", "metadata.json", "plan.json", CODES, RESIDUALS}
    for name in manifest["files"]:
        if name not in changing and not name.endswith(".metadata.json"):
            os.link(folder / name, copy / name)


def _add(
    copy: Path,
    store: DocumentStore,
    settings: PlaidSettings,
    manifest: dict[str, Any],
    actors: int | None,
    cpus: int | None,
    spread: Spread,
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    import numpy as np

    counts = {"without_passages": 0, "truncated": 0}
    if not len(store):
        return [], counts
    save_array(copy / WORK / "sample.npy", np.zeros(0, np.int64))
    shards = shards_of(copy, store)
    stages = Stages(
        copy.resolve(), shards, settings, spread, lambda stage, done, total: None, actors, cpus
    )
    split = stages.split(manifest["passages"], len(manifest["chunks"]))
    chunks = stages.encode(manifest["files"]["centroids.pt"]["sha256"])
    counts["without_passages"] = sum(fact["without_passages"] for fact in split)
    counts["truncated"] = sum(chunk["truncated"] for chunk in chunks)
    return chunks, counts


def _write_ids(folder: Path, copy: Path, gone: set[str], shards: int) -> np.ndarray:
    """``ids.parquet`` of the changed index; returns bool ``[passages]``, True for deleted ones."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from polyray.indexes.plaid.files import stage_files

    before = copy / WORK / "before.parquet"
    old = pq.ParquetFile(folder / IDS)
    names = pa.array(sorted(gone), pa.string())
    with atomic_path(before) as temporary, pq.ParquetWriter(temporary, old.schema_arrow) as out:
        for batch in old.iter_batches():
            hit = pc.is_in(batch["doc_id"], value_set=names)
            place = batch.schema.get_field_index("deleted")
            columns = list(batch.columns)
            columns[place] = pc.or_(batch["deleted"], hit)
            out.write_batch(pa.record_batch(columns, schema=batch.schema))
    old.close()
    parts = [stage_files(copy, number)["passages"] for number in range(shards)]
    write_ids(copy / IDS, parts, before)
    deleted: np.ndarray = pq.read_table(copy / IDS, columns=["deleted"])["deleted"].to_numpy()
    return deleted


def _put_in_place(copy: Path, folder: Path) -> None:
    aside = folder.with_name(f".{folder.name}.old")
    folder.rename(aside)
    copy.rename(folder)
    shutil.rmtree(aside)
