"""Passage files: each form read back by another library."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyray.errors import ConfigError
from polyray.records import Passage
from polyray.text.passages import COLUMNS, write_passages

PASSAGES = [
    Passage("007", 0, 0, 9, 3, 'a "b"\tc\nd'),
    Passage("007", 1, 5, 11, 2, "我们 می‌روم"),
]


def test_jsonl(tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    assert write_passages(out, PASSAGES) == 2
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == [p.text for p in PASSAGES]
    assert rows[1]["passage_id"] == "007#1"
    assert tuple(rows[0]) == COLUMNS


def test_gzip_is_the_same_every_time(tmp_path: Path) -> None:
    made = [tmp_path / f"{n}.jsonl.gz" for n in range(2)]
    for out in made:
        write_passages(out, PASSAGES)
    assert made[0].read_bytes() == made[1].read_bytes()
    assert len(gzip.decompress(made[0].read_bytes()).splitlines()) == 2


def test_tsv_keeps_a_passage_on_its_line(tmp_path: Path) -> None:
    out = tmp_path / "p.tsv"
    write_passages(out, PASSAGES)
    with out.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["text"] for row in rows] == ['a "b" c d', "我们 می‌روم"]
    assert len(rows[0]["text"]) == len(PASSAGES[0].text)


def test_parquet(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "p.parquet"
    assert write_passages(out, PASSAGES * 6000) == 12_000
    table = pq.read_table(out)
    assert tuple(table.column_names) == COLUMNS
    assert table.num_rows == 12_000
    assert table.slice(1, 1).to_pylist()[0]["text"] == PASSAGES[1].text
    assert write_passages(out, []) == 0
    assert pq.read_table(out).num_rows == 0


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    def failing() -> Iterator[Passage]:
        yield PASSAGES[0]
        raise RuntimeError

    for name in ("p.jsonl", "p.tsv.gz", "p.parquet"):
        out = tmp_path / name
        out.write_text("old", encoding="utf-8")
        with pytest.raises(RuntimeError):
            write_passages(out, failing())
        assert out.read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.jsonl", "p.parquet", "p.tsv.gz"]


@pytest.mark.parametrize("name", ["p", "p.txt", "p.parquet.gz", "p.gz"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="parquet"):
        write_passages(tmp_path / name, PASSAGES)
