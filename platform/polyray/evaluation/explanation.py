"""Which passage token each query token matched, and what it adds to a late-interaction score.

The score is MaxSim (ColBERT, Khattab and Zaharia 2020, equation 3): for every query token the
highest similarity with any passage token, summed over the query tokens. The sum can be read token
by token, which shows why a mixed query beats a native one on the same passage (the MiLQ study,
figure 3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from polyray.errors import PolyrayError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Explanation", "Kind", "TokenEncoder", "explain", "readable_token", "token_kind"]

Kind = Literal["text", "marker", "mask"]
"""What a token is: a piece of the text, one that the model puts around it, or query padding."""

_MASKS = frozenset({"[MASK]", "<mask>"})
_UNKNOWN = frozenset({"[UNK]", "<unk>"})
_SPECIAL = re.compile(r"\[[A-Za-z]\w*\]|</?s>|<(?:pad|bos|eos|cls|sep|q|d|query|doc|passage)>")


class TokenEncoder(Protocol):
    """A late-interaction encoder that can name the token behind each row of its matrices."""

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One float32 [tokens, dim] a query, unit rows, markers and [MASK] padding included."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One float32 [tokens, dim] a passage, unit rows, left-out punctuation not included."""
        ...

    def query_tokens(self, text: str) -> list[str]:
        """The vocabulary piece of each row of the query's matrix."""
        ...

    def passage_tokens(self, text: str) -> list[str]:
        """The vocabulary piece of each row of the passage's matrix."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One query against one passage, token by token.

    ``query`` and ``passage`` are the texts, ``query_tokens`` (n_q) and ``passage_tokens`` (n_p)
    their readable tokens, ``similarity`` a float32 [n_q, n_p] of cosines. Raises
    :class:`~polyray.errors.PolyrayError` where one side has no tokens, the shapes differ or a
    similarity is not a finite number.
    """

    query: str
    passage: str
    query_tokens: tuple[str, ...]
    passage_tokens: tuple[str, ...]
    similarity: np.ndarray

    def __post_init__(self) -> None:
        import numpy as np

        for name, tokens in (("query", self.query_tokens), ("passage", self.passage_tokens)):
            if not tokens:
                raise PolyrayError(f"the {name} has no tokens, so there is no score to explain")
        similarity = np.asarray(self.similarity, dtype=np.float32)
        expected = (len(self.query_tokens), len(self.passage_tokens))
        if similarity.shape != expected:
            raise PolyrayError(
                f"the similarity matrix has the shape {similarity.shape}, but there are "
                f"{expected[0]} query tokens and {expected[1]} passage tokens"
            )
        if not np.isfinite(similarity).all():
            raise PolyrayError(
                "a token similarity is not a finite number: the model's vectors are damaged"
            )
        object.__setattr__(self, "similarity", similarity)

    @property
    def best(self) -> np.ndarray:
        """Int [n_q]: the passage token that each query token matched, the first of equals."""
        return self.similarity.argmax(axis=1)

    @property
    def contributions(self) -> np.ndarray:
        """Float64 [n_q]: what each query token adds to the score, its highest similarity."""
        return self.similarity.max(axis=1).astype("float64")

    @property
    def score(self) -> float:
        """The sum of the contributions: MaxSim."""
        return float(self.contributions.sum())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each query token."""
        return tuple(map(token_kind, self.query_tokens))

    def pairs(self) -> list[tuple[str, str, float]]:
        """``(query token, matched passage token, contribution)``, in the order of the query."""
        matched = [self.passage_tokens[i] for i in self.best]
        return list(zip(self.query_tokens, matched, self.contributions.tolist(), strict=True))

    def table(self) -> list[dict[str, Any]]:
        """One row a query token; positions count from 0."""
        places = self.best.tolist()
        return [
            {
                "position": position,
                "token": token,
                "passage_position": place,
                "passage_token": matched,
                "contribution": contribution,
                "kind": kind,
            }
            for position, (place, (token, matched, contribution), kind) in enumerate(
                zip(places, self.pairs(), self.kinds, strict=True)
            )
        ]


def explain(encoder: TokenEncoder, query: str, passage: str) -> Explanation:
    """Encode one query and one passage and compare every query token with every passage token.

    Raises :class:`~polyray.errors.PolyrayError` where one of them has no tokens, where the encoder
    names another number of tokens than it encodes, and where a similarity is not finite.
    """
    import numpy as np

    sides = (
        ("query", encoder.query_tokens(query), encoder.encode_queries([query])),
        ("passage", encoder.passage_tokens(passage), encoder.encode_passages([passage])),
    )
    matrices = []
    for name, pieces, encoded in sides:
        matrix = np.asarray(encoded[0], dtype=np.float32)
        if len(pieces) != len(matrix):
            raise PolyrayError(
                f"the encoder names {len(pieces)} tokens of the {name} but encodes {len(matrix)}"
            )
        if not pieces:
            raise PolyrayError(f"the {name} has no tokens, so there is no score to explain")
        matrices.append(matrix)
    return Explanation(
        query,
        passage,
        tuple(map(readable_token, sides[0][1])),
        tuple(map(readable_token, sides[1][1])),
        matrices[0] @ matrices[1].T,
    )


def readable_token(piece: str) -> str:
    """A vocabulary piece as a reader expects it; special tokens stay as they are.

    SentencePiece's word start is taken off (a bare one is shown as a space sign) and WordPiece's
    sign of a continued word becomes a dot.

    >>> [readable_token(piece) for piece in ("▁wort", "▁", "##ung", "[CLS]", "[Q] ")]
    ['wort', '␣', '·ung', '[CLS]', '[Q]']
    """
    if piece.startswith("##") and len(piece) > 2:
        return "·" + piece[2:]
    text = piece.removeprefix("▁").replace("▁", "␣").strip()
    return text or "␣"


def token_kind(token: str) -> Kind:
    """The kind of a token by its readable form; an unknown word is a piece of the text.

    >>> [token_kind(token) for token in ("wort", "[UNK]", "[CLS]", "<s>", "[unused0]", "<mask>")]
    ['text', 'text', 'marker', 'marker', 'marker', 'mask']
    """
    if token in _MASKS:
        return "mask"
    if token in _UNKNOWN or not _SPECIAL.fullmatch(token):
        return "text"
    return "marker"
