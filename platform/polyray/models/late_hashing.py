"""A late-interaction encoder without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyray.errors import ConfigError
from polyray.models.settings import LateSettings

if TYPE_CHECKING:
    import numpy as np

__all__ = ["HashingLateEncoder"]


class HashingLateEncoder:
    """One fixed random unit vector a word, by the word's hash: no model, always the same.

    For trying a pipeline and for tests; it knows equal words and nothing of meaning. Words are
    those of :func:`polyray.text.keys.words`, at most ``doc_maxlen`` or ``query_maxlen`` of them; a
    text without words has one vector, of the whole text.
    """

    def __init__(self, settings: LateSettings) -> None:
        number = str(settings.model).removeprefix("hashing:")
        if not number.isdigit() or int(number) < 8:
            raise ConfigError(f"{settings.model}: write hashing:DIM with a dimension of at least 8")
        self.dim = int(number)
        self.doc_maxlen = settings.doc_maxlen or 183
        self.query_maxlen = settings.query_maxlen or 32
        self.checkpoint = str(settings.model)
        self._known: dict[str, np.ndarray] = {}

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """float32 ``[words, dim]`` a query, unit rows."""
        return [self._rows(self.query_tokens(text)) for text in texts]

    def encode_passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        """float32 ``[words, dim]`` a passage, unit rows."""
        return [self._rows(self.passage_tokens(text)) for text in texts]

    def query_tokens(self, text: str) -> list[str]:
        """The words of a query."""
        return self._words(text)[: self.query_maxlen]

    def passage_tokens(self, text: str) -> list[str]:
        """The words of a passage."""
        return self._words(text)[: self.doc_maxlen]

    @staticmethod
    def _words(text: str) -> list[str]:
        from polyray.text.keys import matching_key, words

        key = matching_key(text)
        return list(words(key)) or [key]

    def _rows(self, words: list[str]) -> np.ndarray:
        import numpy as np

        return np.stack([self._vector(word) for word in words])

    def _vector(self, word: str) -> np.ndarray:
        import numpy as np

        if word not in self._known:
            if len(self._known) >= 1 << 16:
                self._known.clear()
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
            vector = np.random.default_rng(seed).standard_normal(self.dim).astype(np.float32)
            self._known[word] = vector / np.linalg.norm(vector)
        return self._known[word]

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """Texts with more words than are read."""
        limit = self.doc_maxlen if passages else self.query_maxlen
        return sum(len(self._words(text)) > limit for text in texts)

    def describe(self) -> dict[str, Any]:
        """Model, size and lengths."""
        return {
            "model": self.checkpoint,
            "dim": self.dim,
            "doc_maxlen": self.doc_maxlen,
            "query_maxlen": self.query_maxlen,
            "device": "cpu",
            "precision": "float32",
        }
