"""Runs: order, reading and writing, what is refused, fusion."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray import runs
from polyray.errors import ConfigError, InputError
from polyray.records import Hit
from polyray.runs import Run

IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="\ufeff"),
    min_size=1,
    max_size=8,
)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
RANKINGS = st.dictionaries(
    IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=6), min_size=1, max_size=5
)


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "a.run"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_order_is_score_then_document_id_both_descending() -> None:
    """trec_eval's rule; ids compare by code point, so 9 comes before 10."""
    run = Run({"q": [("10", 1.0), ("b", 2.0), Hit("9", 1.0), ("é", 1.0)]})
    assert run["q"] == [Hit("b", 2.0), Hit("é", 1.0), Hit("9", 1.0), Hit("10", 1.0)]
    assert run.rankings == {"q": run["q"]}
    assert list(run) == ["q"]
    assert len(run) == 1
    assert run.size == 4


def test_scores_order_in_double_precision() -> None:
    """Two scores that single precision cannot tell apart."""
    run = Run({"q": [("z", 16777216.0), ("a", 16777216.0 + 2**-28)]})
    assert [hit.doc_id for hit in run["q"]] == ["a", "z"]


def test_refuses_repeats_and_numbers_that_are_none() -> None:
    with pytest.raises(InputError) as error:
        Run({"q": [("a", 1.0), ("a", 0.5)], "r": [("b", float("nan"))], "s": [("c", float("inf"))]})
    assert len(error.value.problems) == 3
    assert "document a stands twice" in str(error.value)


@settings(max_examples=60, deadline=None)
@given(rankings=RANKINGS)
def test_reading_what_was_written_gives_the_same_run(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, dict[str, float]]
) -> None:
    run = Run({topic: list(docs.items()) for topic, docs in rankings.items()}, tag="t")
    path = tmp_path_factory.mktemp("run") / "a.run"
    run.write(path)
    again = Run.read(path)
    assert again == run
    assert list(again) == list(run)
    assert again.tag == "t"


@settings(max_examples=60, deadline=None)
@given(rankings=RANKINGS, size=st.integers(1, 200))
def test_the_fast_reader_agrees_with_the_careful_one(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, dict[str, float]], size: int
) -> None:
    path = tmp_path_factory.mktemp("run") / "a.run"
    Run({topic: list(docs.items()) for topic, docs in rankings.items()}).write(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_BLOCK", size)
        fast = runs._read_blocks(path)
    assert fast is None or fast == runs._read_lines(path, keep_best=False)


def test_the_fast_reader_takes_plain_files_in_any_block_size(tmp_path: Path) -> None:
    rankings = {f"q{i}": [(f"новость_{j}", 50.0 - j) for j in range(50)] for i in range(20)}
    run = Run(rankings)
    run.write(tmp_path / "a.run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_BLOCK", 97)
        assert runs._read_blocks(tmp_path / "a.run") is not None
        assert Run.read(tmp_path / "a.run") == run


def test_lines_in_any_order_give_the_same_run(tmp_path: Path) -> None:
    lines = [f"q{i % 3} Q0 d{i} 1 {i % 7} x" for i in range(60)]
    expected = Run.read(written(tmp_path, *lines))
    random.Random(3).shuffle(lines)
    assert Run.read(written(tmp_path, *lines)) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    text = end.join(("q1\tQ0\tзд 1 2.5 x", "  q1 Q0  b 2 1e1 x", ""))
    for name, data in (("a", text.encode(encoding)), ("b", text.rstrip().encode(encoding))):
        (tmp_path / name).write_bytes(data)
        assert Run.read(tmp_path / name) == Run({"q1": [("b", 10.0), ("зд", 2.5)]})
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        assert Run.read(tmp_path / f"{name}.gz")["q1"][0] == Hit("b", 10.0)


def test_other_spaces_stay_inside_an_id(tmp_path: Path) -> None:
    """trec_eval cuts at ASCII white space only."""
    run = Run.read(written(tmp_path, "q\u00a01 Q0 a\u3000b 1 2.0 x"))
    assert run.rankings == {"q\u00a01": [Hit("a\u3000b", 2.0)]}


def test_every_bad_line_is_named(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "q Q0 a 1 1.0 x",
        "q Q0 b 2 x",
        "q Q0 c 3 nan x",
        "q Q0 d 4 -inf x",
        "q Q0 e 5 1_0 x",
        "q Q0 f 6 five x",
        "q Q0 g 7 0.1 x y",
        "q Q0 h 8 ١ x",
        "q Q0 a 9 0.5 x",
        "q Q0 i 9 1e999 x",
    )
    with pytest.raises(InputError) as error:
        Run.read(path)
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert f"{path}:2: 5 columns instead of six" in str(error.value)


def test_five_and_seven_columns_do_not_make_up_for_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        Run.read(written(tmp_path, "q Q0 a 1 1.0", "q Q0 b 2 0.5 x y"))
    assert [problem.line for problem in error.value.problems] == [1, 2]


def test_case_duplicate_documents(cases: Path) -> None:
    """Refused naming topic, document and both lines; or the best score is kept."""
    path = cases / "H05_duplicate_docs_in_run" / "run.txt"
    with pytest.raises(InputError) as error:
        Run.read(path)
    assert "query 501: document k1 stands twice, in lines 1 and 3" in str(error.value)
    run = Run.read(path, duplicates="best")
    assert [hit.doc_id for hit in run["501"]] == ["k1", "k3", "k2", "k4"]
    assert run["501"][0].score == 9.0


def test_empty_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results"):
        Run.read(written(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        Run.read(tmp_path / "none")


@pytest.mark.parametrize("bad", ["a b", "", "a\tb", "\ufeffa", "\ud800"])
def test_writing_refuses_ids_that_the_format_cannot_hold(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InputError):
        Run({"q": [(bad, 1.0)]}).write(tmp_path / "a.run")
    with pytest.raises(InputError):
        Run({bad: [("d", 1.0)]}).write(tmp_path / "a.run")
    assert not list(tmp_path.iterdir())


def test_topics_without_results_stay_in_memory() -> None:
    run = Run({"q": [], "r": [("a", 1.0)]})
    assert run["q"] == []
    assert "q" in run
    assert Run.fuse([run, run])["q"] == []


def test_top() -> None:
    run = Run({"q": [("a", 1.0), ("b", 2.0), ("c", 3.0)]})
    assert run.top(2) == Run({"q": [("c", 3.0), ("b", 2.0)]})
    assert run.top(9) == run
    with pytest.raises(ConfigError):
        run.top(-1)


def test_fusion_by_hand() -> None:
    """Cormack et al. 2009: the sum of 1 / (60 + rank), ranks from 1."""
    one = Run({"q": [("a", 9.0), ("b", 8.0), ("c", 7.0)]})
    two = Run({"q": [("c", 0.3), ("a", 0.2)], "r": [("z", 1.0)]})
    fused = Run.fuse([one, two])
    assert [hit.doc_id for hit in fused["q"]] == ["a", "c", "b"]
    assert fused["q"][0].score == pytest.approx(1 / 61 + 1 / 62, abs=1e-15)
    assert fused["q"][1].score == pytest.approx(1 / 63 + 1 / 61, abs=1e-15)
    assert fused["r"] == [Hit("z", 1 / 61)]
    assert Run.fuse([two, one]) == fused
    assert [hit.doc_id for hit in Run.fuse([one, two], depth=1)["q"]] == ["c", "a"]
    with pytest.raises(ConfigError):
        Run.fuse([])


def test_real_runs(data_root: Path) -> None:
    """Line counts of the files (their sets' SOURCE.md; no final newline in one of them)."""
    folder = data_root / "dirty"
    assert Run.read(folder / "ir_measures" / "compat.run").size == 1927
    assert Run.read(folder / "ir_measures" / "cwl.run").size == 30
    assert Run.read(folder / "pyterrier" / "two_queries_result").size == 1410
