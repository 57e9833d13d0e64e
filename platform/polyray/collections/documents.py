"""Documents: TSV, JSONL (NeuCLIR's too), Parquet, TREC and CLEF SGML, ir_datasets; streaming."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from polyray.collections._json import objects_of, text_value
from polyray.collections._lines import full_lines, id_problem, lines_of
from polyray.collections._write import write_documents
from polyray.collections.sgml import read_sgml
from polyray.errors import ConfigError, InputError, Problem, Problems
from polyray.files import open_binary
from polyray.records import Document

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "read_documents", "write_documents"]

FORMATS = ("tsv", "jsonl", "neuclir", "parquet", "trec", "irds")
"""What ``read_documents`` reads."""

ID_KEYS = ("id", "docid", "doc_id", "_id")
TEXT_KEYS = ("text", "contents", "body")
TITLE_KEYS = ("title", "headline")

_BY_SUFFIX = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".trec": "trec",
    ".sgml": "trec",
    ".sgm": "trec",
    ".xml": "trec",
}

_Numbered = Iterator[tuple[int, Document]]


def read_documents(path: str, *, format: str | None = None) -> Iterator[Document]:
    """Yield the documents of a file, of all files of a folder or glob (sorted), or of ``irds:ID``.

    Memory does not grow with the collection, but for 16 bytes of hash a document that find an id
    used twice. A document without text is yielded with ``text == ""``. The format comes from the
    file's name, else from its first characters; :class:`~polyray.errors.ConfigError` asks for it
    where both are silent. Whatever is wrong with the files is collected while reading goes on and
    raised at the end as one :class:`~polyray.errors.InputError`: what was yielded before then
    must not be used.
    """
    if format is not None and format not in FORMATS:
        raise ConfigError(f"document format {format!r}; allowed: {', '.join(FORMATS)}")
    if str(path).startswith("irds:") or format == "irds":
        from polyray.collections.irds import irds_documents

        yield from irds_documents(str(path))
        return
    found: list[Problem] = []
    seen: set[bytes] = set()
    for file in _files(str(path)):
        problems = Problems(str(file))
        count = 0
        for line, document in _numbered(file, format or _guess(file), problems):
            count += 1
            if what := id_problem(document.doc_id):
                problems.add(line, what, "give every document an id of its own")
                continue
            digest = hashlib.blake2b(document.doc_id.encode(), digest_size=16).digest()
            if digest in seen:
                what = f"the document id {document.doc_id!r} is used a second time"
                problems.add(line, what, "ids must be unique in a collection")
                continue
            seen.add(digest)
            yield document
        if not count and not problems:
            problems.add(None, "no documents in the file", "give a file with documents")
        found += problems.all()
    if found:
        raise InputError(found)


def _files(path: str) -> list[Path]:
    target = Path(path)
    if target.is_dir():
        inside = sorted(target.rglob("*"))
        files = [f for f in inside if f.is_file() and not _hidden(f.relative_to(target))]
    elif not target.exists() and glob.has_magic(path):
        files = [Path(name) for name in sorted(glob.glob(path, recursive=True))]
        files = [file for file in files if file.is_file()]
    else:
        files = [target]
    if not files:
        raise InputError(Problem(path, None, "no files there", "check the path"))
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _guess(file: Path) -> str:
    with open_binary(file) as handle:
        head = handle.read(4096)
    if not head:
        raise InputError(Problem(str(file), None, "the file is empty", "fetch or write it again"))
    if head[257:262] == b"ustar":
        what = "the file is a tar archive"
        raise InputError(Problem(str(file), None, what, "unpack it and name the folder"))
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if head.startswith(b"PAR1"):
        return "parquet"
    problems = Problems(str(file))
    first = next((line for _, line in lines_of(file, problems) if line.strip()), "").lstrip(" ")
    problems.raise_if_any()
    if first.startswith(("{", "[")):
        return "jsonl"
    if first.startswith("<"):
        return "trec"
    if "\t" in first:
        return "tsv"
    raise ConfigError(
        f"{file}: the document format cannot be told from name or content; "
        f"give one of: {', '.join(FORMATS)}"
    )


def _numbered(file: Path, format: str, problems: Problems) -> _Numbered:
    readers: dict[str, Callable[[str, Problems], _Numbered]] = {
        "tsv": _tsv,
        "jsonl": _jsonl,
        "neuclir": _jsonl,
        "parquet": _parquet,
        "trec": read_sgml,
    }
    return readers[format](str(file), problems)


def _tsv(path: str, problems: Problems) -> _Numbered:
    width = 0
    for number, line in full_lines(path, problems):
        columns = line.split("\t")
        width = width or len(columns)
        if len(columns) == 1:
            problems.add(number, "no tab between id and text", "write: id TAB text")
            width = 0
        elif len(columns) > 3:
            problems.add(
                number, f"{len(columns)} columns", "write: id TAB text, or id TAB title TAB text"
            )
        elif len(columns) != width:
            what = f"{len(columns)} columns where the lines before have {width}"
            problems.add(number, what, "write the same columns in every line")
        else:
            title = columns[1] if width == 3 else ""
            yield number, Document(columns[0].strip(), columns[-1], title)


def _jsonl(path: str, problems: Problems) -> _Numbered:
    with_text = count = 0
    for number, record in objects_of(path, problems):
        before = len(problems.found)
        identifier = text_value(record, ID_KEYS, number, problems, numbers=True)
        text = text_value(record, TEXT_KEYS, number, problems)
        title = text_value(record, TITLE_KEYS, number, problems)
        if identifier is None:
            names = ", ".join(ID_KEYS)
            problems.add(number, "the document has no id", f"one of these keys: {names}")
        if len(problems.found) > before or identifier is None or problems.left_out:
            continue
        count += 1
        with_text += text is not None or any(key in record for key in TEXT_KEYS) or bool(title)
        yield number, Document(identifier, text or "", title or "")
    if count and not with_text:
        names = ", ".join(TEXT_KEYS)
        problems.add(None, "no document has a text", f"it is read from one of these keys: {names}")


def _parquet(path: str, problems: Problems) -> _Numbered:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            chosen: list[str | None] = []
            for keys in (ID_KEYS, TEXT_KEYS, TITLE_KEYS):
                chosen.append(next((key for key in keys if key in file.schema_arrow.names), None))
            columns = [name for name in chosen if name]
            _parquet_columns(chosen, file.schema_arrow, problems)
            if problems:
                return
            row = 0
            for batch in file.iter_batches(batch_size=512, columns=columns):
                values = [
                    batch.column(name).to_pylist() if name else [None] * len(batch)
                    for name in chosen
                ]
                for identifier, text, title in zip(*values, strict=True):
                    row += 1
                    if identifier is None:
                        problems.add(row, "the row has no id", "give every document an id")
                        continue
                    yield row, Document(str(identifier), text or "", title or "")
    except (pa.ArrowException, OSError) as error:
        problems.add(None, f"not a readable Parquet file: {error}", "write or fetch it again")


def _parquet_columns(chosen: list[str | None], schema: pa.Schema, problems: Problems) -> None:
    import pyarrow.types as types

    there = f"the columns are: {', '.join(schema.names)}"
    for name, keys, what in zip(chosen, (ID_KEYS, TEXT_KEYS), ("id", "text"), strict=False):
        if name is None:
            problems.add(None, f"no {what} column: none of {', '.join(keys)}", there)
    for place, name in enumerate(chosen):
        if name is None:
            continue
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        good = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        if not good and not (place == 0 and types.is_integer(kind)) and not types.is_null(kind):
            problems.add(None, f"column {name} is of type {kind}", "write it as a string")
