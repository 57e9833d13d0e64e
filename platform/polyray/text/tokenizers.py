"""Tokenizers that passage windows are counted in: all they give is character offsets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from polyray.errors import ConfigError
from polyray.text.keys import WORD, compiled

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "FastTokenizer",
    "WhitespaceTokenizer",
    "WindowTokenizer",
    "WordTokenizer",
    "window_tokenizer",
]


class WindowTokenizer(Protocol):
    """Tells where the tokens of texts lie.

    >>> WhitespaceTokenizer().offsets(["ab  c"])
    [[(0, 2), (4, 5)]]
    """

    @property
    def name(self) -> str:
        """What to log: the same name cuts the same windows."""
        ...

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Character offsets ``(start, end)`` of every token; special tokens are left out."""
        ...


class WhitespaceTokenizer:
    """A token is a run of characters that are not white space."""

    name = "whitespace"

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Character offsets of the tokens of each text."""
        return [[match.span() for match in re.finditer(r"\S+", text)] for text in texts]


class WordTokenizer:
    """A token is a Unicode word, or one character that is neither of a word nor white space.

    In scripts without spaces every character is a token; see
    :func:`polyray.text.keys.word_spans`.
    """

    name = "words"

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Character offsets of the tokens of each text."""
        token = compiled(rf"{WORD}|\S")
        return [[match.span() for match in token.finditer(text)] for text in texts]


class FastTokenizer:
    """The tokenizer of a model: a ``tokenizer.json``, or a folder that has one.

    A character may be several tokens and a token several characters, as the model has it; a
    token that stands for no character has an empty offset pair. Nothing is truncated. It can be
    sent to workers: they read the file again.

    Raises :class:`~polyray.errors.ConfigError` where there is no such file or it is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        given = Path(path)
        self.path = given / "tokenizer.json" if given.is_dir() else given
        self.name = f"{self.path.parent.name}/{self.path.name}"
        self._tokenizer = _load(self.path)

    def __reduce__(self) -> tuple[type[FastTokenizer], tuple[Path]]:
        return (type(self), (self.path,))

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Character offsets of the tokens of each text."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.offsets for encoding in encoded]


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise ConfigError(f"{path}: no such tokenizer; name a tokenizer.json or its folder")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ConfigError(f"{path}: not a tokenizer.json: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def window_tokenizer(spec: str) -> WindowTokenizer:
    """The tokenizer that a config or a command line names.

    ``whitespace``, ``words``, a ``tokenizer.json`` or a folder with one, ``packaged:NAME``, or
    a model's hub id.
    """
    if spec == "whitespace":
        return WhitespaceTokenizer()
    if spec == "words":
        return WordTokenizer()
    if Path(spec).is_file() or (Path(spec) / "tokenizer.json").is_file():
        return FastTokenizer(spec)
    from polyray.models.packaged import folder_of

    tokenizer = FastTokenizer(folder_of(spec))
    tokenizer.name = spec
    return tokenizer
