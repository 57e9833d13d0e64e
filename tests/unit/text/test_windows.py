"""Passage windows. Expected windows: the cases; properties: hypothesis."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyray.errors import ConfigError
from polyray.records import Document, Passage
from polyray.text.tokenizers import WhitespaceTokenizer, WindowTokenizer, WordTokenizer
from polyray.text.windows import SplitCounts, cut, split, windows

MIXED = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "ab ,.\n\t我们。می‌ر\u0301\u0308🤯👨👩👧\u200d\u200c\u200b🏽\ufe0f가e\u3000"
        ),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=80,
)


class ByteTokenizer:
    """A token is a byte of UTF-8, as byte-level tokenizers fall back to; several share a letter.

    Marks carry an empty pair, as where a normaliser takes them out.
    """

    name = "bytes"

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """One pair a byte."""
        return [
            [
                (at, at) if unicodedata.combining(char) else (at, at + 1)
                for at, char in enumerate(text)
                for _ in char.encode()
            ]
            for text in texts
        ]


TOKENIZERS: list[WindowTokenizer] = [WhitespaceTokenizer(), WordTokenizer(), ByteTokenizer()]


def test_windows_of_the_cases(cases: Path) -> None:
    folder = cases / "H23_passage_windows"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    with (folder / "lengths.tsv").open(encoding="utf-8", newline="") as handle:
        lengths = {row["doc"]: int(row["tokens"]) for row in csv.DictReader(handle, delimiter="\t")}
    documents = [Document(n, " ".join(f"w{i}" for i in range(m))) for n, m in lengths.items()]
    for stride in (90, 180):
        right = expected[f"size180_stride{stride}"]
        for name, length in lengths.items():
            assert [list(pair) for pair in windows(length, 180, stride)] == right[name]
        for document, passages in zip(
            documents, cut(documents, WhitespaceTokenizer(), 180, stride), strict=True
        ):
            words = document.contents.split()
            assert [p.text.split() for p in passages] == [
                words[a:b] for a, b in right[document.doc_id]
            ]
            assert [p.tokens for p in passages] == [b - a for a, b in right[document.doc_id]]


@pytest.mark.parametrize(("size", "stride"), [(10, 0), (10, -1), (10, 11), (0, 0), (-5, -5)])
def test_bad_sizes(size: int, stride: int) -> None:
    with pytest.raises(ConfigError, match="stride"):
        windows(5, size, stride)
    with pytest.raises(ConfigError):
        cut([Document("d", "")], WhitespaceTokenizer(), size, stride)


@given(st.integers(0, 600), st.integers(1, 60), st.data())
def test_windows_cover_all_and_none_is_inside_another(
    length: int, size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, size))
    found = windows(length, size, stride)
    assert {t for start, end in found for t in range(start, end)} == set(range(length))
    assert all(0 < end - start <= size for start, end in found)
    for (start, end), (next_start, next_end) in pairwise(found):
        assert next_start - start == stride
        assert next_end > end
        assert end - next_start == size - stride


def _check(contents: str, passages: list[Passage]) -> None:
    for number, passage in enumerate(passages):
        assert passage.index == number
        assert passage.text == contents[passage.start : passage.end]
        assert passage.text == passage.text.strip() != ""
    for one, following in pairwise(passages):
        assert following.start >= one.start
        assert following.end > one.end


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
@given(contents=MIXED, size=st.integers(1, 7), data=st.data())
def test_cuts_are_exact(
    tokenizer: WindowTokenizer, contents: str, size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, size))
    (passages,) = cut([Document("d", contents)], tokenizer, size, stride)
    _check(contents, passages)
    assert all(p.tokens <= size for p in passages)
    # Every character that the tokenizer gives a token lies in some passage.
    covered = {at for p in passages for at in range(p.start, p.end)}
    (offsets,) = tokenizer.offsets([contents])
    wanted = {at for start, end in offsets for at in range(start, end)}
    if passages:
        assert {at for at in wanted if not contents[at].isspace()} <= covered


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_letter_and_its_marks_stay_together(stride: int) -> None:
    contents = "e\u0301a\u0308o\u0302 👨🏽\u200d👩 我e\u0301"
    (passages,) = cut([Document("d", contents)], ByteTokenizer(), 3, stride)
    _check(contents, passages)
    for passage in passages:
        for edge in (passage.start, passage.end):
            if 0 < edge < len(contents):
                assert not unicodedata.combining(contents[edge])
                assert contents[edge] not in "\u200d🏽"


def test_offsets_count_in_title_and_text() -> None:
    document = Document("d", "  one two three ", title=" Head")
    (passages,) = cut([document], WhitespaceTokenizer(), 2, 1)
    assert [p.text for p in passages] == ["Head\n  one", "one two", "two three"]
    _check(document.contents, passages)
    assert [p.passage_id for p in passages] == ["d#0", "d#1", "d#2"]


def test_one_long_word_ends() -> None:
    (passages,) = cut([Document("d", "x" * 5000)], ByteTokenizer(), 180, 90)
    assert passages[0].start == 0
    assert passages[-1].end == 5000
    assert max(len(p.text) for p in passages) == 180


def test_empty_documents_are_skipped_and_counted() -> None:
    texts = ["good", "", "  \t", "\u200b\u200b", "...!?", "fine"]
    counts = SplitCounts()
    documents = [Document(f"e{n}", text) for n, text in enumerate(texts)]
    passages = list(split(documents, WordTokenizer(), counts=counts))
    assert [p.doc_id for p in passages] == ["e0", "e4", "e5"]
    assert counts == SplitCounts(documents=6, skipped_empty=3, passages=3)


def test_many_marks_take_no_square_time() -> None:
    (passages,) = cut([Document("d", "a" + "\u0301" * 20_000)], WordTokenizer(), 180, 90)
    assert len(passages) == 1
    (passages,) = cut([Document("d", "a" + "\u0301" * 20_000)], ByteTokenizer(), 180, 90)
    assert passages[0].start == 0


def test_chinese_is_cut_by_characters() -> None:
    (passages,) = cut([Document("d", "之所以会这样，是因为有计划。")], WordTokenizer(), 6, 3)
    assert [p.text for p in passages] == [
        "之所以会这样",
        "会这样，是因",
        "，是因为有计",
        "为有计划。",
    ]
