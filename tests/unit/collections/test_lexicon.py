"""Lexicons: forms, keys, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyray.collections.lexicon import (
    read_lexicon,
    read_weighted_lexicon,
    reversed_lexicon,
)
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


def weighted(tmp_path: Path, text: str) -> dict[str, dict[str, float]]:
    (tmp_path / "lexicon").write_bytes(text.encode())
    return read_weighted_lexicon(tmp_path / "lexicon")


def test_weights(tmp_path: Path) -> None:
    text = "House\tHaus\t0.5\nhouse\tHeim\t1e-1\nHOUSE\tHaus\t2\nice cream\tdas Eis\t0\n"
    expected = {"house": {"Haus": 2.0, "Heim": 0.1}, "ice cream": {"das Eis": 0.0}}
    assert weighted(tmp_path, text) == expected
    assert list(weighted(tmp_path, text)["house"]) == read(tmp_path, text)["house"]
    assert weighted(tmp_path, '{"A": {"b": 2, "c": 0.5}}') == {"a": {"b": 2.0, "c": 0.5}}


def test_weights_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        weighted(tmp_path, "a\tb\t1\na\tc\nd e\nf\tg\t-1\nh\ti\t1.2.3\nk\tl\t1e999\nm\t\t1\n")
    assert sorted(problem.line or 0 for problem in error.value.problems) == [2, 3, 4, 5, 6, 7]
    for text in ("", '{"a": ["b"]}', '{"a": {"b": "c"}}', '{"a": {"b": -1}}', '{"a": {"b": null}}'):
        with pytest.raises(InputError):
            weighted(tmp_path, text)
    with pytest.raises(InputError):
        read(tmp_path, '{"a": {"b": 2}}')


def test_the_other_direction() -> None:
    there = {"river": ["Fluss", "Strom"], "current": ["strom"], "tea": ["茶"], "x": ["\u200b"]}
    back = {"fluss": ["river"], "strom": ["river", "current"], "茶": ["tea"]}
    assert reversed_lexicon(there) == back
    weights = {"river": {"Fluss": 2.0, "fluss": 3.0}, "current": {"Fluss": 0.0}}
    assert reversed_lexicon(weights) == {"fluss": {"river": 3.0, "current": 0.0}}


def test_real_weights(data_root: Path) -> None:
    path = data_root / "lexicons" / "en-sw.induced_ibm1.tsv"
    table = read_weighted_lexicon(path)
    assert {word: list(found) for word, found in table.items()} == read_lexicon(path)
    assert table["about"]["kuhusu"] == 0.449
