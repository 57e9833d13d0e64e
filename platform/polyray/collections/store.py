"""A collection on disk, cut into shards: what every index is built from.

``shards/00000.parquet`` and so on hold :class:`~polyray.records.Document` rows in reading order;
empty documents are left out and listed in the manifest. The first 64 shards hold 128 documents
each, the later ones 8,192, so that small collections spread over several workers and large ones
do not become a million files. The cut depends on the reading order alone.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyray.errors import IndexDamaged, InputError, Problem
from polyray.files import (
    atomic_path,
    read_json,
    resolve,
    sha256_of,
    sha256_text,
    write_json,
)
from polyray.records import Document

__all__ = ["DocumentStore", "fingerprint"]

SMALL, LARGE, SMALL_SHARDS = 128, 8192, 64
FORMAT = 1


def fingerprint(path: str) -> str:
    """What identifies an input: SHA-256 over the bytes of its files, in the order of their names.

    An ``irds:`` collection, which its own package checks, is identified by its id.
    """
    if path.startswith("irds:"):
        return sha256_text(path)
    target = resolve(path)
    if target.is_dir():
        files = sorted(p for p in target.rglob("*") if p.is_file() and not p.name.startswith("."))
    else:
        files = [target] if target.is_file() else sorted(map(Path, glob.glob(str(target))))
    if not files:
        raise InputError(Problem(path, None, "no such file", "check the path"))
    return sha256_text("\n".join(sha256_of(file) for file in files))


@dataclass(frozen=True)
class DocumentStore:
    """The shards of one collection; ``build`` makes or reuses them, ``open`` needs them whole."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def build(
        cls, folder: Path, documents: Iterable[Document], identity: str, *, small: int = SMALL
    ) -> DocumentStore:
        """Write the shards, unless they lie there whole; memory is bounded by one shard.

        ``identity`` is the fingerprint of the source; a store made from another one is refused.
        """
        done = folder / "manifest.json"
        if done.is_file():
            store = cls.open(folder)
            if store.manifest["identity"] != identity:
                raise IndexDamaged(f"{folder} was made from other documents: remove it")
            return store
        writer = _Writer(folder / "shards", small)
        try:
            for document in documents:
                writer.add(document)
            writer.flush()
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        write_json(
            done,
            {
                "format": FORMAT,
                "identity": identity,
                "documents": writer.documents,
                "skipped_empty": len(writer.empty),
                "skipped_empty_ids": writer.empty[:1000],
                "shards": writer.shards,
            },
        )
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> DocumentStore:
        """Open a whole store; raises :class:`IndexDamaged` naming the file that is not right."""
        manifest = read_json(folder / "manifest.json")
        for shard in manifest["shards"]:
            file = folder / "shards" / shard["file"]
            if not file.is_file() or file.stat().st_size != shard["bytes"]:
                raise IndexDamaged(f"{file} is missing or cut short: remove {folder} and rerun")
        return cls(folder, manifest)

    @property
    def documents(self) -> int:
        """Documents in the store, empty ones not counted."""
        return int(self.manifest["documents"])

    @property
    def skipped_empty(self) -> int:
        """Documents that had nothing to index."""
        return int(self.manifest["skipped_empty"])

    def __len__(self) -> int:
        return len(self.manifest["shards"])

    def read(self, shard: int) -> list[Document]:
        """The documents of one shard, in order; the bytes are checked against the manifest."""
        entry = self.manifest["shards"][shard]
        return read_shard(self.folder / "shards" / entry["file"], entry["sha256"])

    def __iter__(self) -> Iterator[Document]:
        for shard in range(len(self)):
            yield from self.read(shard)


def read_shard(file: Path, sha256: str) -> list[Document]:
    """The documents of one shard file, after checking its SHA-256."""
    import pyarrow.parquet as pq

    if not file.is_file() or sha256_of(file) != sha256:
        raise IndexDamaged(f"{file} is missing or changed: remove its folder and rerun")
    columns = pq.read_table(file).to_pydict()
    rows = zip(columns["doc_id"], columns["text"], columns["title"], strict=True)
    return [Document(doc_id, text, title) for doc_id, text, title in rows]


class _Writer:
    def __init__(self, folder: Path, small: int) -> None:
        self.folder, self._small = folder, small
        self._rows: list[Document] = []
        self.documents = 0
        self.empty: list[str] = []
        self.shards: list[dict[str, Any]] = []

    def add(self, document: Document) -> None:
        from polyray.text.keys import is_blank

        if is_blank(document.contents):
            self.empty.append(document.doc_id)
            return
        self._rows.append(document)
        self.documents += 1
        limit = self._small if len(self.shards) < SMALL_SHARDS else max(LARGE, self._small)
        if len(self._rows) >= limit:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from polyray.records import schema_of

        if not self._rows:
            return
        file = self.folder / f"{len(self.shards):05d}.parquet"
        rows = [{"doc_id": row.doc_id, "text": row.text, "title": row.title} for row in self._rows]
        with atomic_path(file) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema_of(Document)), temporary)
        self.shards.append(
            {
                "file": file.name,
                "documents": len(rows),
                "bytes": file.stat().st_size,
                "sha256": sha256_of(file),
            }
        )
        self._rows = []
