"""Encoders without weights: families, prompts, choices of device."""

from __future__ import annotations

import numpy as np
import pytest

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.models.dense import load_encoder
from polyray.models.device import choose_batch_size, precision_notes
from polyray.models.packaged import folder_of
from polyray.models.settings import EncoderSettings, family_of


@pytest.mark.parametrize(
    ("model", "query", "normalize"),
    [
        ("intfloat/multilingual-e5-large", "query: ", True),
        ("packaged:multilingual-e5-small", "query: ", True),
        ("/models/my_e5_base", "query: ", True),
        ("facebook/mcontriever-msmarco", "", False),
        ("facebook/contriever", "", False),
    ],
)
def test_families_know_prompts_pooling_and_similarity(
    model: str, query: str, normalize: bool
) -> None:
    family = family_of(model)
    assert family is not None
    assert (family.query_prompt, family.normalize) == (query, normalize)
    assert family.pooling == (None if normalize else "mean")


@pytest.mark.parametrize(
    "model",
    [
        "sentence-transformers/LaBSE",
        "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        "Alibaba-NLP/gte-multilingual-base",
        "intfloat/multilingual-e5-large-instruct",
        "acme/the5th-model",
    ],
)
def test_other_models_speak_for_themselves(model: str) -> None:
    assert family_of(model) is None


def test_hashing_encoder_is_deterministic_with_unit_rows_and_prompts() -> None:
    encoder = load_encoder("hashing:64")
    vectors = encoder.encode_passages(["a kite", "", "a kite"])
    assert vectors.shape == (3, 64)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1])
    assert encoder.encode_queries([]).shape == (0, 64)
    prompted = load_encoder(EncoderSettings(model="hashing:64", query_prompt="q: "))
    assert not np.array_equal(prompted.encode_queries(["a kite"])[0], vectors[0])


@pytest.mark.parametrize("model", ["hashing:x", "hashing:4"])
def test_bad_dimensions_are_refused(model: str) -> None:
    with pytest.raises(ConfigError, match="hashing:DIM"):
        load_encoder(model)


def test_unknown_packaged_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="multilingual-e5-small"):
        folder_of("packaged:bert-base-uncased")


def test_altered_package_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from polyray.models import packaged

    monkeypatch.setattr(packaged, "_MINILM", replace(packaged._MINILM, sha256="0" * 64))
    with pytest.raises(MissingPrerequisite, match="SHA-256 differs"):
        folder_of("packaged:all-MiniLM-L6-v2")


def test_batch_sizes_by_device() -> None:
    assert choose_batch_size(None, "cpu") == 8
    assert choose_batch_size(None, "cuda:0") == 256
    assert choose_batch_size(3, "cuda") == 3


def test_half_precision_is_said_once_for_each_model() -> None:
    described = [
        ("e5", {"precision": "bfloat16"}),
        ("e5", {"precision": "bfloat16"}),
        ("bm25", {"kind": "bm25"}),
        ("exact", {"precision": "float32"}),
        ("use", {"precision": "int8 (dynamic)"}),
    ]
    (note,) = precision_notes(described)
    assert note.startswith("e5: computed in bfloat16")
    assert "precision: float32" in note
