"""Files: text decoding as users' files need it, atomic writing, checksums, path prefixes."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from polyray.errors import ConfigError, InputError, Problem

__all__ = [
    "atomic_path",
    "digests_of",
    "open_binary",
    "open_text",
    "read_json",
    "resolve",
    "sha256_of",
    "sha256_text",
    "write_json",
]

SAMPLE_PREFIX = "sample:"
MAX_LINE = 64 * 1024 * 1024
"""Longest line that is read, in characters: a longer one is no record of a collection."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def resolve(path: str | Path, base: Path | None = None) -> Path:
    """The file that a config or a command line means.

    ``sample:`` stands for the packaged sample, ``${NAME}`` for an environment variable and ``~``
    for the home folder; a relative path counts from ``base`` (default: the working folder).
    Raises :class:`~polyray.errors.ConfigError` for a variable that is not set.
    """
    text = str(path)
    if text.startswith(SAMPLE_PREFIX):
        return Path(__file__).parent / "sample" / text.removeprefix(SAMPLE_PREFIX)

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise ConfigError(f"{text}: the environment variable {match[1]} is not set")
        return value

    found = Path(re.sub(r"\$\{(\w+)\}", variable, text)).expanduser()
    return found if base is None else base / found


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it onto ``path`` when the block succeeds.

    On an error nothing stays behind and an older file at ``path`` is untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any, *, indent: int | None = 1) -> None:
    """Write ``value`` as UTF-8 JSON, atomically; NaN and infinity are refused."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=True, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read one JSON file; raises :class:`~polyray.errors.InputError` naming file and line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(Problem(str(path), None, "no such file")) from None
    except json.JSONDecodeError as error:
        raise InputError(Problem(str(path), error.lineno, f"not JSON: {error.msg}")) from None
    except UnicodeDecodeError as error:
        raise InputError(Problem(str(path), None, f"not UTF-8: {error.reason}")) from None


def sha256_of(path: str | Path) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digests_of(paths: Mapping[str, str | Path]) -> dict[str, str]:
    """SHA-256 of each file by its name in ``paths``.

    Raises :class:`~polyray.errors.InputError` naming every file that is not there.
    """
    lacking = [str(path) for path in paths.values() if not Path(path).is_file()]
    if lacking:
        raise InputError(
            [Problem(path, None, "no such file", "check the path") for path in lacking]
        )
    return {name: sha256_of(path) for name, path in paths.items()}


def sha256_text(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a regular file for reading, unpacking gzip by its first bytes, not by its name."""
    target = Path(path)
    if not target.exists():
        raise InputError(Problem(str(path), None, "no such file", "check the path"))
    if not target.is_file():
        raise InputError(Problem(str(path), None, "not a regular file", "name one file"))
    with target.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            yield raw
            return
        try:
            with gzip.open(raw, "rb") as unpacked:
                yield cast("IO[bytes]", unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = Problem(str(path), None, f"damaged gzip file: {error}", "fetch it again")
            raise InputError(problem) from None


def open_text(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield ``(line number, line)``, counted from 1, the line end (LF or CRLF) taken off.

    Reads UTF-8 with or without a byte order mark, UTF-16 with one, plain or gzip; streams. Raises
    :class:`~polyray.errors.InputError` at the first line that cannot be decoded, for a NUL
    character and for a line longer than 64 million characters.
    """
    with open_binary(path) as handle:
        buffered = io.BufferedReader(cast("io.RawIOBase", handle))
        head = buffered.peek(4)[:4]
        bom, encoding = next(((b, e) for b, e in _BOMS if head.startswith(b)), (b"", "utf-8"))
        buffered.read(len(bom))
        if encoding == "utf-8":
            yield from _utf8_lines(str(path), buffered)
        else:
            yield from _other_lines(str(path), buffered, encoding)


def _utf8_lines(name: str, handle: Any) -> Iterator[tuple[int, str]]:
    number = 0
    while raw := handle.readline(MAX_LINE + 1):
        number += 1
        _check_length(name, number, len(raw))
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"not UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}"
            remedy = "convert the file to UTF-8, for example with iconv"
            raise InputError(Problem(name, number, what, remedy)) from None
        yield number, _finish(name, number, line)


def _other_lines(name: str, handle: Any, encoding: str) -> Iterator[tuple[int, str]]:
    text = io.TextIOWrapper(handle, encoding=encoding, newline="\n")
    number = 0
    while True:
        try:
            line = text.readline(MAX_LINE + 1)
        except UnicodeDecodeError as error:
            what = f"not {encoding.upper()}: {error.reason}"
            raise InputError(Problem(name, number + 1, what, "convert it to UTF-8")) from None
        if not line:
            return
        number += 1
        _check_length(name, number, len(line))
        yield number, _finish(name, number, line)


def _check_length(name: str, number: int, length: int) -> None:
    if length > MAX_LINE:
        raise InputError(Problem(name, number, f"a line of more than {MAX_LINE:,} characters"))


def _finish(name: str, number: int, line: str) -> str:
    if "\0" in line:
        remedy = "the file is binary, or UTF-16 without a byte order mark: convert it to UTF-8"
        raise InputError(Problem(name, number, "a NUL character", remedy))
    return line.removesuffix("\n").removesuffix("\r")
