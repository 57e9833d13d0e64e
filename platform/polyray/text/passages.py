"""Passage files: JSON lines, TSV or Parquet, chosen by the name; written as a stream."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO

from polyray.errors import ConfigError
from polyray.files import atomic_path
from polyray.records import Passage

__all__ = ["COLUMNS", "check_passage_path", "write_passages"]

COLUMNS = ("passage_id", "doc_id", "index", "start", "end", "tokens", "text")
"""The columns of a passage file, in order."""

_SUFFIXES = (".jsonl", ".tsv", ".parquet")
_ROWS = 10_000
"""Passages in one row group of a Parquet file."""
_ONE_LINE = str.maketrans("\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", " " * 11)


def check_passage_path(path: str | Path) -> str:
    """The format that a name asks for: ``.jsonl`` or ``.tsv`` (also with ``.gz``), ``.parquet``.

    Raises :class:`~polyray.errors.ConfigError` for any other name.
    """
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix not in _SUFFIXES or (suffix == ".parquet" and plain != name):
        known = ".jsonl, .tsv (each also with .gz) or .parquet"
        raise ConfigError(f"{path}: passages are written as {known}; name the file so")
    return suffix


def write_passages(path: str | Path, passages: Iterable[Passage]) -> int:
    """Write passages as they come, atomically; returns how many.

    A TSV file begins with a header, and a tab or line break in a text becomes one space there, so
    that the offsets still hold; the other formats keep the text to the letter.
    """
    suffix = check_passage_path(path)
    with atomic_path(path) as temporary:
        if suffix == ".parquet":
            return _write_parquet(temporary, passages)
        with _text_file(temporary, packed=str(path).lower().endswith(".gz")) as handle:
            write = _write_jsonl if suffix == ".jsonl" else _write_tsv
            return write(handle, passages)


@contextmanager
def _text_file(path: Path, *, packed: bool) -> Iterator[TextIO]:
    if not packed:
        with path.open("w", encoding="utf-8", newline="\n") as handle:
            yield handle
        return
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        io.TextIOWrapper(zipped, encoding="utf-8", newline="\n") as text,
    ):
        yield text


def _row(passage: Passage) -> tuple[str, str, int, int, int, int, str]:
    return (
        passage.passage_id,
        passage.doc_id,
        passage.index,
        passage.start,
        passage.end,
        passage.tokens,
        passage.text,
    )


def _write_jsonl(handle: TextIO, passages: Iterable[Passage]) -> int:
    count = 0
    for passage in passages:
        row = dict(zip(COLUMNS, _row(passage), strict=True))
        handle.write(json.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


def _write_tsv(handle: TextIO, passages: Iterable[Passage]) -> int:
    handle.write("\t".join(COLUMNS) + "\n")
    count = 0
    for passage in passages:
        *fields, text = _row(passage)
        handle.write("\t".join(map(str, fields)) + "\t" + text.translate(_ONE_LINE) + "\n")
        count += 1
    return count


def _write_parquet(path: Path, passages: Iterable[Passage]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    string, whole = pa.string(), pa.int64()
    types = (string, string, whole, whole, whole, whole, string)
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    rows = map(_row, passages)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rows, _ROWS)):
            columns = zip(zip(*group, strict=True), types, strict=True)
            arrays = [pa.array(column, kind) for column, kind in columns]
            writer.write_table(pa.table(arrays, schema=schema))
            count += len(group)
    return count
