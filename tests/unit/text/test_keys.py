"""The matching key, blank texts and words. Expected values: the Unicode pairs of the cases."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyray.text.keys import is_blank, matching_key, word_spans, words


def test_pairs_of_the_cases(cases: Path) -> None:
    folder = cases / "H19_unicode_pairs"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    with (folder / "pairs.tsv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    same = [row["id"] for row in rows if matching_key(row["a"]) == matching_key(row["b"])]
    assert same == expected["true_pairs"]
    assert sorted({row["id"] for row in rows} - set(same)) == expected["false_pairs"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", ""),
        ("HeLLo W", "hello w"),
        ("İstanbul", "istanbul"),
        ("i\u0307stanbul", "istanbul"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("ＡＢＣ１２", "abc12"),
        ("سـلام", "سلام"),
        ("٣٤", "34"),
        ("e\u200d\u0301", "é"),
    ],
)
def test_keys_by_hand(text: str, key: str) -> None:
    assert matching_key(text) == key


def test_arabic_yeh_with_hamza_is_kept() -> None:
    # Canonical composition U+064A U+0654 -> U+0626 (Unicode): letters are unified only after it.
    assert matching_key("\u064a\u0654") == matching_key("\u0626") == "\u0626"


@given(st.text())
def test_the_key_of_a_key_is_itself(text: str) -> None:
    assert matching_key(matching_key(text)) == matching_key(text)


def test_the_key_of_every_character_is_stable() -> None:
    for code in range(0, sys.maxunicode + 1, 7):
        key = matching_key(chr(code))
        assert matching_key(key) == key


def test_the_key_is_quick_on_persian() -> None:
    text = "می‌روم به خانهٔ علي ۱۲۳ " * 10_000
    started = time.perf_counter()
    matching_key(text)
    assert time.perf_counter() - started < 3  # 0.15 s on a free core


@pytest.mark.parametrize(
    "text", ["", "   \t", "\u200b\u200b", " \u200c\ufeff\n", "\u00ad", "\u3000", "\u2066\u2069"]
)
def test_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["...!?", "a", "我", "\u200ba", "。", "\u200b\u0301"])
def test_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_empty_documents_of_the_cases(cases: Path) -> None:
    folder = cases / "H07_empty_passages"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    lines = (folder / "collection.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    empty = [row["docid"] for row in rows if is_blank(row.get("text") or "")]
    assert empty == expected["skipped_empty"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The old house, near.", ["The", "old", "house", "near"]),
        ("Don't o’clock 'quoted'", ["Don't", "o’clock", "quoted"]),
        ("NEW-old", ["NEW", "old"]),
        ("می‌روم خانه", ["می‌روم", "خانه"]),
        ("我们go", ["我", "们", "go"]),
        ("na\u0308iv क्षि 12", ["na\u0308iv", "क्षि", "12"]),
        ("🤯 ... -", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert [text[start:end] for start, end in word_spans(text)] == expected
