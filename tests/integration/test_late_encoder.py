"""Late-interaction encoders against colbert-ai's own, on random models of both vocabularies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.models.late import TorchLateEncoder, load_late
from polyray.models.late_files import fingerprint, is_colbert, save_colbert
from polyray.models.settings import LateSettings

QUERIES = ["Why is the sky blue?", "Warum ist der Himmel blau", "为什么天空是蓝色的?", "a " * 50]
PASSAGES = [
    'The sky, of course, is blue -- because of "Rayleigh" (scattering)!',
    "Der Himmel ist blau.",
    "天空是蓝色的。因为散射",
    "...!?",
    "x",
    "long words " * 120,
]


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def backbone(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Path:
    """A folder with a two-layer encoder of random weights and a real tokenizer of its kind."""
    return tiny_backbone(request.param)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Models made here do not stay."""
    from polyray.models.colbert_ai import prepare
    from polyray.models.packaged import folder_of

    prepare()  # its compiled extensions do stay
    folder_of("packaged:multilingual-e5-small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYRAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def encoder(backbone: Path, cache: None) -> TorchLateEncoder:
    return new(backbone)


def new(backbone: Path, **more: Any) -> TorchLateEncoder:
    given = {"backbone": str(backbone), "dim": 16, "device": "cpu", "precision": "float32", **more}
    made = load_late(LateSettings(**given))
    assert isinstance(made, TorchLateEncoder)
    return made


def colbert(checkpoint: str) -> Any:
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.infra import ColBERTConfig
    from colbert.modeling.checkpoint import Checkpoint

    with quiet():
        config = ColBERTConfig.load_from_checkpoint(checkpoint)
        return Checkpoint(checkpoint, colbert_config=config, verbose=0)


def test_queries_and_passages_equal_colbert_ai(encoder: TorchLateEncoder) -> None:
    """Within 1e-6: batches differ, and with them the last bit."""
    theirs = colbert(encoder.checkpoint)
    queries = theirs.queryFromText(QUERIES, bsize=2)
    for ours, other in zip(encoder.encode_queries(QUERIES), queries, strict=True):
        np.testing.assert_allclose(ours, other.numpy(), atol=1e-6)
    rows, lengths = theirs.docFromText(PASSAGES, bsize=2, keep_dims="flatten")[:2]
    ours = encoder.encode_passages(PASSAGES)
    assert [len(matrix) for matrix in ours] == lengths
    np.testing.assert_allclose(np.concatenate(ours), rows.numpy(), atol=1e-6)


def test_sentence_transformers_own_encoding_is_the_same(encoder: TorchLateEncoder) -> None:
    """What the trainer sees (markers as text before the text) is what the index holds."""
    queries = encoder.model.encode_query(QUERIES, convert_to_numpy=True)
    for ours, other in zip(encoder.encode_queries(QUERIES), queries, strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-6)
    passages = encoder.model.encode_document(PASSAGES, convert_to_numpy=True)
    for ours, other in zip(encoder.encode_passages(PASSAGES), passages, strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-6)


def test_lengths_count_specials_and_marker(backbone: Path, encoder: TorchLateEncoder) -> None:
    short = new(backbone, doc_maxlen=10, query_maxlen=6)
    assert [len(matrix) for matrix in short.encode_queries(QUERIES)] == [6] * len(QUERIES)
    assert len(short.encode_passages(["x y z " * 50])[0]) == 10
    texts = [" ".join("x" * count) for count in (7, 8)]
    assert short.truncated(texts[:1], passages=True) == 0
    assert short.truncated(texts, passages=True) == 1
    assert encoder.doc_maxlen == 183
    assert encoder.query_maxlen == 32


def test_a_row_has_its_token(encoder: TorchLateEncoder) -> None:
    for text in PASSAGES:
        assert len(encoder.passage_tokens(text)) == len(encoder.encode_passages([text])[0])
    tokens = encoder.query_tokens(QUERIES[0])
    assert len(tokens) == 32
    assert tokens[1] == encoder.markers[0]
    assert encoder.passage_tokens("x")[1] == encoder.markers[1] != encoder.markers[0]
    assert "?" not in encoder.passage_tokens("why ?")[2:-1] or "▁?" not in tokens


def test_markers_are_real_tokens(encoder: TorchLateEncoder) -> None:
    tokenizer = encoder.model.tokenizer
    numbers = tokenizer.convert_tokens_to_ids(list(encoder.markers))
    assert tokenizer.unk_token_id not in numbers
    assert len(set(numbers)) == 2


def test_the_same_seed_gives_the_same_bytes(
    backbone: Path, encoder: TorchLateEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYRAY_CACHE", str(tmp_path))
    again, other = new(backbone), new(backbone, seed=7)
    assert fingerprint(again.checkpoint) == fingerprint(encoder.checkpoint)
    assert fingerprint(other.checkpoint) != fingerprint(encoder.checkpoint)
    assert again.checkpoint != encoder.checkpoint


def test_another_library_s_form_is_loaded_and_written_as_colbert_ai_s(
    encoder: TorchLateEncoder, tmp_path: Path
) -> None:
    encoder.model.save_pretrained(str(tmp_path / "saved"))
    assert not is_colbert(str(tmp_path / "saved"))
    settings = LateSettings(model=str(tmp_path / "saved"), device="cpu", precision="float32")
    loaded = load_late(settings)
    assert isinstance(loaded, TorchLateEncoder)
    written = save_colbert(loaded, tmp_path / "colbert")
    assert is_colbert(str(written))
    for matrix, other in zip(
        encoder.encode_passages(PASSAGES), loaded.encode_passages(PASSAGES), strict=True
    ):
        np.testing.assert_array_equal(matrix, other)
    theirs = colbert(str(written)).docFromText(PASSAGES, bsize=8, keep_dims="flatten")[0]
    np.testing.assert_allclose(
        np.concatenate(loaded.encode_passages(PASSAGES)), theirs.numpy(), atol=1e-6
    )


def test_pylate_s_form_is_loaded(encoder: TorchLateEncoder, tmp_path: Path) -> None:
    """PyLate 1 lists transformer and projection, and keeps markers and lengths at the top."""
    folder = tmp_path / "pylate"
    encoder.model.save_pretrained(str(folder))
    modules = json.loads((folder / "modules.json").read_text())[:2]
    (folder / "modules.json").write_text(json.dumps(modules))
    saved = json.loads((folder / "config_sentence_transformers.json").read_text())
    saved |= {
        "model_type": "ColBERT",
        "prompts": {},
        "query_prefix": encoder.markers[0],
        "document_prefix": encoder.markers[1],
        "query_length": 32,
        "document_length": 183,
        "attend_to_expansion_tokens": False,
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(saved))
    for name in ("sentence_bert_config.json", "0_Transformer/sentence_bert_config.json"):
        if (folder / name).is_file():
            kept = json.loads((folder / name).read_text())
            for knob in ("query_length", "document_length", "query_expansion"):
                kept.pop(knob, None)
            (folder / name).write_text(json.dumps(kept))
    loaded = load_late(LateSettings(model=str(folder), device="cpu", precision="float32"))
    assert isinstance(loaded, TorchLateEncoder)
    assert (loaded.query_maxlen, loaded.doc_maxlen) == (32, 183)
    assert loaded.markers == encoder.markers
    for ours, other in zip(
        encoder.encode_queries(QUERIES), loaded.encode_queries(QUERIES), strict=True
    ):
        np.testing.assert_allclose(ours, other, atol=1e-6)


def test_what_cannot_be_loaded_is_named(tmp_path: Path, backbone: Path) -> None:
    settings = {"device": "cpu", "precision": "float32"}
    with pytest.raises(MissingPrerequisite, match="nowhere"):
        load_late(LateSettings(model=str(tmp_path / "nowhere"), **settings))
    with pytest.raises(ConfigError, match="identity needs dim 32"):
        new(backbone, projection="identity")
    with pytest.raises(ConfigError, match="doc_maxlen is 5000"):
        new(backbone, doc_maxlen=5000)
    with pytest.raises(ValueError, match="either a model"):
        LateSettings(model="a", backbone="b")


def test_colbert_ai_does_not_fall_back_to_another_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no-such-model"}')
    with pytest.raises(MissingPrerequisite, match="cannot load"):
        colbert(str(tmp_path))
