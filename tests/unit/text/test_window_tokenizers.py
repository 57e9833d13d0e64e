"""Tokenizers for windows: offsets by hand, names, errors."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from polyray.errors import ConfigError
from polyray.text.tokenizers import (
    FastTokenizer,
    WhitespaceTokenizer,
    WordTokenizer,
    window_tokenizer,
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a small tokenizer that truncates and adds special tokens."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "a": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_offsets_by_hand() -> None:
    assert WhitespaceTokenizer().offsets([" a, b", ""]) == [[(1, 3), (4, 5)], []]
    assert WordTokenizer().offsets(["我们 don't!"]) == [[(0, 1), (1, 2), (3, 8), (8, 9)]]


def test_nothing_is_truncated_padded_or_added(saved: Path) -> None:
    for path in (saved, saved / "tokenizer.json"):
        tokenizer = FastTokenizer(path)
        assert tokenizer.offsets(["a 🤯 a a", ""]) == [[(0, 1), (2, 3), (4, 5), (6, 7)], []]


def test_it_can_be_sent_to_workers(saved: Path) -> None:
    tokenizer = window_tokenizer(str(saved))
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.offsets(["a a"]) == tokenizer.offsets(["a a"])
    assert again.name == tokenizer.name


def test_factory(saved: Path) -> None:
    assert window_tokenizer("whitespace").name == "whitespace"
    assert window_tokenizer("words").name == "words"
    assert window_tokenizer(str(saved / "tokenizer.json")).offsets(["a"]) == [[(0, 1)]]


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such tokenizer"):
        FastTokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a tokenizer"):
        FastTokenizer(tmp_path)
