"""Passage windows: overlapping runs of tokens, cut out of the text by exact character offsets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from polyray.errors import ConfigError
from polyray.records import Document, Passage
from polyray.text.keys import is_blank

if TYPE_CHECKING:
    from polyray.text.tokenizers import WindowTokenizer

__all__ = ["LENGTH", "STRIDE", "SplitCounts", "cut", "split", "windows"]

LENGTH = 180
"""Default window length in tokens, special tokens not counted."""
STRIDE = 90
"""Default step from the start of one window to the next, in tokens."""

_JOINERS = "\u200c\u200d"
_BATCH = 128
"""Documents that :func:`split` gives the tokenizer at once."""
_REACH = 32
"""Farthest that a cut moves to keep a letter and its marks together, in characters."""


def windows(length: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Windows ``(start, end)`` over ``length`` tokens; none lies wholly inside the one before.

    >>> windows(271, 180, 90)
    [(0, 180), (90, 270), (180, 271)]

    Raises :class:`~polyray.errors.ConfigError` unless ``0 < stride <= size``.
    """
    if not 0 < stride <= size:
        what = f"a window of {size} tokens with a stride of {stride}"
        raise ConfigError(f"{what}: the stride must be at least 1 and at most the window's length")
    # The last window starts at the first multiple of the stride from which it reaches the end.
    last = max(0, -(-(length - size) // stride) * stride)
    starts = range(0, last + 1, stride) if length > 0 else ()
    return [(start, min(start + size, length)) for start in starts]


def cut(
    documents: Sequence[Document],
    tokenizer: WindowTokenizer,
    size: int = LENGTH,
    stride: int = STRIDE,
) -> list[list[Passage]]:
    """Cut documents into passages; one list a document, empty for a blank document.

    ``passage.text == document.contents[passage.start:passage.end]``, without white space at
    either end. Windows count the tokenizer's tokens and overlap by ``size - stride`` of them;
    their ends are those of the first and last token, moved outwards where they would part a
    letter from its marks (a character that is several tokens stays whole in both windows).
    Characters that belong to no token go to the window before them. Tokenizing a passage by
    itself may give a token more or less than ``passage.tokens``.
    """
    windows(0, size, stride)  # refuses bad sizes even where every document is blank
    contents = [document.contents for document in documents]
    chosen = [row for row, text in enumerate(contents) if not is_blank(text)]
    passages: list[list[Passage]] = [[] for _ in documents]
    for row, offsets in zip(
        chosen, tokenizer.offsets([contents[row] for row in chosen]), strict=True
    ):
        passages[row] = _cut_one(documents[row].doc_id, contents[row], offsets, size, stride)
    return passages


@dataclass
class SplitCounts:
    """What :func:`split` has met so far."""

    documents: int = 0
    skipped_empty: int = 0
    passages: int = 0


def split(
    documents: Iterable[Document],
    tokenizer: WindowTokenizer,
    size: int = LENGTH,
    stride: int = STRIDE,
    counts: SplitCounts | None = None,
) -> Iterator[Passage]:
    """Cut a stream of documents (see :func:`cut`), a few at a time; counts as it goes."""
    counts = SplitCounts() if counts is None else counts
    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        for passages in cut(batch, tokenizer, size, stride):
            counts.documents += 1
            counts.skipped_empty += not passages
            counts.passages += len(passages)
            yield from passages


def _cut_one(
    doc_id: str, text: str, offsets: Sequence[tuple[int, int]], size: int, stride: int
) -> list[Passage]:
    passages: list[Passage] = []
    reached = 0
    for first, last in windows(len(offsets), size, stride):
        shown = [(start, end) for start, end in offsets[first:last] if start < end]
        if not shown:
            continue
        start = min(start for start, _ in shown)
        end = max(end for _, end in shown)
        if last < len(offsets):
            end = max(end, offsets[last][0])
        start, end = _trimmed(text, *_whole_letters(text, start, end))
        if end <= max(start, reached):
            continue
        reached = end
        piece = text[start:end]
        passages.append(Passage(doc_id, len(passages), start, end, last - first, piece))
    return passages


def _whole_letters(text: str, start: int, end: int) -> tuple[int, int]:
    lowest, highest = max(0, start - _REACH), min(len(text), end + _REACH)
    while start > lowest and _continues(text, start):
        start -= 1
    while end < highest and _continues(text, end):
        end += 1
    return start, end


def _continues(text: str, position: int) -> bool:
    """Whether the character at ``position`` belongs to the letter or emoji before it."""
    char = text[position]
    if char.isascii():
        return False
    return (
        unicodedata.category(char)[0] == "M"
        or char in _JOINERS
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or (text[position - 1] == "\u200d" and unicodedata.category(char) == "So")
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
