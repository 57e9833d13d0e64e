"""Judgments: forms, what is refused, round trips."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray.collections import read_qrels, write_qrels
from polyray.errors import InputError
from polyray.records import Qrel

IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="\ufeff"),
    min_size=1,
)


def read(tmp_path: Path, text: str) -> list[Qrel]:
    path = tmp_path / "qrels"
    path.write_bytes(text.encode())
    return read_qrels(str(path))


def test_forms(tmp_path: Path) -> None:
    text = "003 0 002 1\r\n3\tQ0\t2 \t -1\r\n\n 3 0 a#b 2"
    assert read(tmp_path, text) == [
        Qrel("003", "002", 1),
        Qrel("3", "2", -1),
        Qrel("3", "a#b", 2),
    ]
    beir = "query-id\tcorpus-id\tscore\nq\td\t1\n"
    assert read(tmp_path, beir) == [Qrel("q", "d", 1)]


def test_all_bad_lines_are_named(tmp_path: Path) -> None:
    text = "q 0 a 1\nq 0 b 0.5\nq 0 c\nq 0 d 1.0\nq 0 e x\nq 0 a 1\nq 0 a 0\nq 0 f 1 2\nq 0 g ١\n"
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert "document a is already judged in line 1" in str(error.value)


def test_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no judgments"):
        read(tmp_path, "\n")


@settings(max_examples=60, deadline=None)
@given(
    judged=st.dictionaries(st.tuples(IDS, IDS), st.integers(-(10**9) + 1, 10**9 - 1), min_size=1)
)
def test_reading_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[tuple[str, str], int]
) -> None:
    qrels = [Qrel(query, document, grade) for (query, document), grade in judged.items()]
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    write_qrels(path, qrels)
    assert read_qrels(str(path)) == qrels


def test_writing_refuses(tmp_path: Path) -> None:
    for bad in ([Qrel("a b", "d", 1)], [Qrel("q", "d", 1), Qrel("q", "d", 0)]):
        with pytest.raises(InputError):
            write_qrels(tmp_path / "qrels", bad)
    assert not list(tmp_path.iterdir())


def test_real_files(data_root: Path) -> None:
    """Line counts as the sets' SOURCE.md states them; CRLF does not reach the grade."""
    neuclir = data_root / "hc4_neuclir" / "neuclir22"
    for code, count in (("fa", 34_174), ("ru", 33_006), ("zh", 36_575)):
        qrels = read_qrels(str(neuclir / f"qrels.neuclir22-{code}.txt.gz"))
        assert len(qrels) == count
        assert {qrel.grade for qrel in qrels} == {0, 1, 3}
    crlf = data_root / "dirty" / "anserini-tools" / "qrels.msmarco-doc.dev.crlf.head200.txt"
    assert {qrel.grade for qrel in read_qrels(str(crlf))} == {1}
    assert len(read_qrels(str(data_root / "vaswani" / "qrels"))) == 2_083
