"""Lexicons: forms, keys, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyray.collections import read_lexicon
from polyray.errors import InputError


def read(tmp_path: Path, text: str) -> dict[str, list[str]]:
    (tmp_path / "lexicon").write_bytes(text.encode())
    return read_lexicon(tmp_path / "lexicon")


def test_forms(tmp_path: Path) -> None:
    text = "House\tHaus\r\nhouse haus\nhouse\tHaus\na lot\tviel auf einmal\n\nice  das Eis"
    expected = {"house": ["Haus", "haus"], "a lot": ["viel auf einmal"], "ice": ["das Eis"]}
    assert read(tmp_path, text) == expected
    assert read(tmp_path, "abc\txyz\t0.663\n") == {"abc": ["xyz"]}
    assert read(tmp_path, '{"A bit": ["kidogo", "kidogo"], "b": "c"}') == {
        "a bit": ["kidogo"],
        "b": ["c"],
    }


def test_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, "a\tb\nalone\n\tx\ny\t\na\tb\tc\n")
    assert sorted(problem.line or 0 for problem in error.value.problems) == [2, 3, 4, 5]
    for text in ("", "{x}", '{"a": [1]}', '{"a": ""}'):
        with pytest.raises(InputError):
            read(tmp_path, text)


def test_real_lexicons(data_root: Path) -> None:
    """Headwords and pairs as SOURCE.md of the set states them."""
    stated = {"sw": (3_601, 4_937), "so": (1_532, 2_105), "fa": (8_837, 13_100)}
    for code, (words, pairs) in stated.items():
        table = read_lexicon(data_root / "lexicons" / f"en-{code}.tsv")
        assert (len(table), sum(map(len, table.values()))) == (words, pairs)
        assert read_lexicon(data_root / "lexicons" / f"en-{code}.json") == table
    induced = read_lexicon(data_root / "lexicons" / "en-so.induced_ibm1.tsv")
    assert (len(induced), sum(map(len, induced.values()))) == (739, 798)
