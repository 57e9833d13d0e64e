"""Decoding, atomic writing and path prefixes."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pytest

from polyray.errors import ConfigError, InputError
from polyray.files import atomic_path, open_text, read_json, resolve, write_json

TEXT = "Zürich\tа\n二\n"
LINES = [(1, "Zürich\tа"), (2, "二")]


@pytest.mark.parametrize(
    "raw",
    [
        TEXT.encode(),
        TEXT.rstrip("\n").encode(),
        TEXT.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.replace("\n", "\r\n").encode("utf-16-be"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), mtime=0),
    ],
)
def test_every_encoding_gives_the_same_lines(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "odd.name"
    path.write_bytes(raw)
    assert list(open_text(path)) == LINES


@pytest.mark.parametrize(
    ("raw", "line", "word"),
    [
        (b"ok\n\xe9t\xe9\n", 2, "not UTF-8"),
        (b"a\0b\n", 1, "NUL"),
        ("a\n".encode("utf-16-le"), 1, "NUL"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], None, "damaged gzip"),
        (codecs.BOM_UTF16_LE + b"a\0\n\0\0\xd8", 2, "UTF-16"),
    ],
)
def test_undecodable_files_are_refused_with_the_line(
    tmp_path: Path, raw: bytes, line: int | None, word: str
) -> None:
    path = tmp_path / "bad"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=word) as caught:
        list(open_text(path))
    assert caught.value.problems[0].line == line
    assert str(path) in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(open_text(tmp_path / "none"))
    with pytest.raises(InputError, match="not a regular file"):
        list(open_text(tmp_path))


def test_real_utf16_file_reads_like_its_utf8_copy(data_root: Path) -> None:
    """The French swap annotations: UTF-16LE with a mark, and the copy re-encoded to UTF-8."""
    folder = data_root / "clsd"
    ours = [line for _, line in open_text(folder / "FR_wmt1921_swaps_ner_pos.tsv")]
    theirs = [line for _, line in open_text(folder / "FR_wmt1921_swaps_ner_pos.utf8.tsv")]
    assert ours == theirs
    assert len(ours) == 1 + 364  # a header and the rows that SOURCE.md counts


def test_atomic_path_leaves_nothing_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fail() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_round_trip_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"ä": [1, 0.1]})
    assert read_json(path) == {"ä": [1, 0.1]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"x": float("nan")})
    path.write_text("{\n 1}")
    with pytest.raises(InputError, match=r"a\.json:2"):
        read_json(path)


def test_resolve_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_ROOT", "/data")
    assert resolve("${SOME_ROOT}/x") == Path("/data/x")
    assert resolve("sample:docs/en_docs.tsv").is_file()
    monkeypatch.delenv("SOME_ROOT")
    with pytest.raises(ConfigError, match="SOME_ROOT is not set"):
        resolve("${SOME_ROOT}/x")
