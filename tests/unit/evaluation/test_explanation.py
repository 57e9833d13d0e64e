from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from polyray.errors import PolyrayError
from polyray.evaluation.explanation import Explanation, explain, readable_token, token_kind


class FakeEncoder:
    """One vector a piece, drawn from the piece's own seed; words are split at blanks."""

    def __init__(self, extra_row: bool = False, broken: float | None = None) -> None:
        self.extra_row = extra_row
        self.broken = broken

    def query_tokens(self, text: str) -> list[str]:
        words = [f"▁{word}" for word in text.split()]
        return ["[CLS]", *words, "[MASK]", "[MASK]"] if words else []

    def passage_tokens(self, text: str) -> list[str]:
        return [f"▁{word}" for word in text.split()]

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self._matrix(self.query_tokens(text), self.extra_row) for text in texts]

    def encode_passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self._matrix(self.passage_tokens(text)) for text in texts]

    def _matrix(self, pieces: list[str], extra: bool = False) -> np.ndarray:
        matrix: np.ndarray = np.zeros((len(pieces) + extra, 8), np.float32)
        for row, piece in enumerate(pieces):
            vector = np.random.default_rng(list(piece.encode())).normal(size=8)
            matrix[row] = vector / np.linalg.norm(vector)
        if self.broken is not None and len(matrix):
            matrix[0, 0] = self.broken
        return matrix


def made(similarity: list[list[float]], tokens: Sequence[str] = ()) -> Explanation:
    matrix = np.array(similarity, np.float32)
    n_q, n_p = matrix.shape
    query = tuple(tokens) or tuple(f"q{i}" for i in range(n_q))
    return Explanation("q", "p", query, tuple(f"p{j}" for j in range(n_p)), matrix)


def test_contributions_add_up_to_maxsim() -> None:
    encoder = FakeEncoder()
    query, passage = "schutz der property rights", "protection of property rights in europe"
    explanation = explain(encoder, query, passage)
    # Source: ColBERT equation 3, term by term; tolerance for float32 products.
    [q], [p] = encoder.encode_queries([query]), encoder.encode_passages([passage])
    brute = sum(max(float(np.dot(a, b)) for b in p) for a in q)
    assert explanation.score == pytest.approx(brute, abs=1e-6)
    assert explanation.contributions.sum() == pytest.approx(brute, abs=1e-6)
    assert explanation.contributions.dtype == np.float64
    assert explanation.similarity.dtype == np.float32
    assert (explanation.query, explanation.passage) == (query, passage)
    assert explanation.query_tokens[:3] == ("[CLS]", "schutz", "der")
    matched = {token: match for token, match, _ in explanation.pairs()}
    assert matched["property"] == "property"
    assert matched["rights"] == "rights"


def test_only_negative_similarities() -> None:
    explanation = made([[-0.5, -0.25], [-0.125, -0.75]])
    assert explanation.best.tolist() == [1, 0]
    assert explanation.score == -0.375


def test_ties_pick_the_first() -> None:
    assert made([[0.1, 0.7, 0.7], [0.3, 0.3, 0.3]]).best.tolist() == [1, 0]


def test_table() -> None:
    explanation = made([[1.0, 0.0], [0.25, 0.5], [0.0, 0.125]], ["[CLS]", "wort", "[MASK]"])
    assert explanation.pairs()[1] == ("wort", "p1", 0.5)
    assert explanation.table()[1] == {
        "position": 1,
        "token": "wort",
        "passage_position": 1,
        "passage_token": "p1",
        "contribution": 0.5,
        "kind": "text",
    }
    assert [row["kind"] for row in explanation.table()] == ["marker", "text", "mask"]
    assert all(type(row["passage_position"]) is int for row in explanation.table())


@pytest.mark.parametrize(("query", "passage", "side"), [("", "a", "query"), ("a", " ", "passage")])
def test_nothing_to_compare(query: str, passage: str, side: str) -> None:
    with pytest.raises(PolyrayError, match=f"the {side} has no tokens"):
        explain(FakeEncoder(), query, passage)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_damaged_vectors(value: float) -> None:
    with pytest.raises(PolyrayError, match="not a finite number"):
        explain(FakeEncoder(broken=value), "a", "b")


def test_tokens_and_rows_differ() -> None:
    with pytest.raises(PolyrayError, match="names 4 tokens of the query but encodes 5"):
        explain(FakeEncoder(extra_row=True), "a", "b")
    with pytest.raises(PolyrayError, match=r"shape \(2, 1\).*1 query tokens"):
        Explanation("q", "p", ("a",), ("b",), np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("piece", "readable"),
    [
        ("▁wort", "wort"),
        ("ung", "ung"),
        ("▁", "␣"),
        ("##ung", "·ung"),
        ("##", "##"),
        ("[CLS]", "[CLS]"),
        ("[Q] ", "[Q]"),
        ("<s>", "<s>"),
        ("▁版权", "版权"),
    ],
)
def test_readable_token(piece: str, readable: str) -> None:
    assert readable_token(piece) == readable


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("[MASK]", "mask"),
        ("<mask>", "mask"),
        ("[Q]", "marker"),
        ("[unused1]", "marker"),
        ("</s>", "marker"),
        ("[UNK]", "text"),
        ("<unk>", "text"),
        ("[", "text"),
        ("<script>", "text"),
        ("[1]", "text"),
    ],
)
def test_token_kind(token: str, kind: str) -> None:
    assert token_kind(token) == kind
