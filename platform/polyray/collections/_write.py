"""Writing documents as JSONL, TSV or Parquet."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Literal, cast

from polyray.collections._lines import encodable, id_problem
from polyray.errors import ConfigError, InputError, Problem
from polyray.files import atomic_path
from polyray.records import Document, schema_of


def write_documents(
    path: str | Path,
    documents: Iterable[Document],
    format: Literal["jsonl", "tsv", "parquet"] | None = None,
) -> None:
    """Write documents, atomically and streaming; the format comes from the name if not given.

    JSONL has the keys ``id``, ``title`` (where there is one) and ``text``; Parquet the columns
    of :class:`~polyray.records.Document`; TSV ``id TAB text``, or ``id TAB title TAB text`` where
    the first document has a title. A name that ends in ``.gz`` is packed (not Parquet). Raises
    :class:`~polyray.errors.InputError` for what a TSV cannot hold and for ids used twice.
    """
    name = Path(path).name.lower()
    if format is None:
        known = {".tsv": "tsv", ".parquet": "parquet"}
        format = known.get(Path(name.removesuffix(".gz")).suffix, "jsonl")  # type: ignore[assignment]
    checked = _checked(str(path), documents)
    with atomic_path(path) as temporary:
        if format == "parquet":
            _parquet(temporary, checked)
        elif format in ("jsonl", "tsv"):
            lines = _tsv(str(path), checked) if format == "tsv" else map(_json, checked)
            with temporary.open("wb") as raw:
                if name.endswith(".gz"):
                    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                        _write(cast("IO[bytes]", packed), lines)
                else:
                    _write(raw, lines)
        else:
            raise ConfigError(f"document format {format!r}; allowed: jsonl, tsv, parquet")


def _write(target: IO[bytes], lines: Iterator[str]) -> None:
    text = io.TextIOWrapper(target, encoding="utf-8", newline="\n")
    text.writelines(lines)
    text.flush()
    text.detach()


def _checked(path: str, documents: Iterable[Document]) -> Iterator[Document]:
    seen: set[str] = set()
    for number, document in enumerate(documents, 1):
        what = id_problem(document.doc_id)
        if not what and document.doc_id in seen:
            what = f"the document id {document.doc_id!r} is used a second time"
        if not what and not (encodable(document.text) and encodable(document.title)):
            what = f"document {document.doc_id}: not valid Unicode"
        if what:
            raise InputError(Problem(path, number, what))
        seen.add(document.doc_id)
        yield document


def _json(document: Document) -> str:
    record = {"id": document.doc_id, "title": document.title, "text": document.text}
    if not document.title:
        del record["title"]
    return json.dumps(record, ensure_ascii=False) + "\n"


def _tsv(path: str, documents: Iterator[Document]) -> Iterator[str]:
    titles: bool | None = None
    for number, document in enumerate(documents, 1):
        titles = bool(document.title) if titles is None else titles
        what = ""
        if any(bad in document.text + document.title for bad in "\t\n\r\0"):
            what = f"document {document.doc_id}: a tab, line end or NUL, which TSV cannot hold"
        elif document.title and not titles:
            what = f"document {document.doc_id} has a title, the first document has none"
        if what:
            raise InputError(Problem(path, number, what, "write JSONL instead"))
        middle = f"{document.title}\t" if titles else ""
        yield f"{document.doc_id}\t{middle}{document.text}\n"


def _parquet(path: Path, documents: Iterator[Document]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema_of(Document)
    with pq.ParquetWriter(path, schema) as writer:
        while rows := list(islice(documents, 1000)):
            columns = {name: [getattr(row, name) for row in rows] for name in schema.names}
            writer.write_batch(pa.record_batch(columns, schema=schema))
