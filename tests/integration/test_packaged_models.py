"""The packaged models: converted, loaded, and equal to a plain sentence-transformers call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from polyray.collections.documents import read_documents
from polyray.collections.store import DocumentStore
from polyray.collections.topics import read_topics
from polyray.indexes.dense import DenseIndex
from polyray.indexes.encode import EncodeSettings
from polyray.models.dense import TorchEncoder, load_encoder, resolved
from polyray.models.device import probe_bfloat16
from polyray.models.packaged import folder_of
from polyray.models.settings import EncoderSettings
from polyray.retrieve.kinds import DenseRetriever

E5 = "packaged:multilingual-e5-small"


@pytest.fixture(scope="module")
def e5() -> TorchEncoder:
    settings = EncoderSettings(model=E5, precision="float32", device="cpu")
    encoder = load_encoder(settings)
    assert isinstance(encoder, TorchEncoder)
    return encoder


def test_what_the_model_reads(e5: TorchEncoder, cases: Path) -> None:
    """Expected strings: cases/H10_e5_prefixes; CLSD reads both sides as queries."""
    folder = cases / "H10_e5_prefixes"
    expected = json.loads((folder / "expected.json").read_text())["encoded_text"]
    lines = (folder / "inputs.jsonl").read_text().splitlines()
    for row in map(json.loads, lines):
        found = e5.prompted(row["text"], passages=row["role"] == "passage")
        assert found == expected[str(row["id"])]
    assert e5.describe()["prompt.query"] == "query: "
    assert e5.describe()["prompt.passage"] == "passage: "


def test_vectors_are_those_of_a_plain_call(e5: TorchEncoder) -> None:
    """Cosine of at least 0.99999 with SentenceTransformer.encode, whatever order and batch."""
    import torch
    from sentence_transformers import SentenceTransformer

    texts = [
        "Wie wird Sauerteigbrot gebacken?",
        "a",
        "How is sourdough bread made, and why has it become popular again among bakers? " * 5,
        "酸种面包是怎么做的?",
        "نان خمیرترش چگونه پخته می‌شود؟",
    ]
    weights = {"dtype": torch.float32}
    plain = SentenceTransformer(str(folder_of(E5)), device="cpu", model_kwargs=weights)
    theirs = plain.encode(texts, prompt="query: ", normalize_embeddings=True)
    ours = e5.encode_queries(texts)
    assert ours.dtype == np.float32
    assert (ours * theirs).sum(1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    assert np.linalg.norm(ours, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    assert e5.encode_queries(texts[::-1])[::-1] == pytest.approx(ours, abs=1e-5)


def test_the_prompt_counts_in_the_length_and_is_never_cut(e5: TorchEncoder) -> None:
    long = "word " * 600
    assert e5.truncated([long, "short"], passages=True) == 1
    with_prompt = e5.encode_passages([long])
    assert np.isfinite(with_prompt).all()
    assert not np.allclose(with_prompt, e5.encode_queries([long]), atol=1e-4)


def test_other_packaged_models_tell_languages_and_meanings_apart() -> None:
    texts = ["How is sourdough bread made?", "Comment fait-on le pain au levain ?", "Wind is loud."]
    use = load_encoder("packaged:use-multilingual-v3")
    vectors = use.encode_queries(texts)
    assert vectors.shape == (3, 512)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    alone = np.concatenate([use.encode_queries([text]) for text in texts])
    assert np.array_equal(alone, vectors)
    minilm = load_encoder("packaged:all-MiniLM-L6-v2")
    assert minilm.describe()["prompt.query"] == ""
    english = minilm.encode_queries(["A cat sleeps.", "A kitten naps.", "Taxes rise."])
    assert english[0] @ english[1] > english[0] @ english[2] + 0.2


def test_choices_are_made_and_probed() -> None:
    chosen = resolved(EncoderSettings(model=E5))
    assert chosen.device in {"cpu", "cuda"}
    assert chosen.precision in {"float32", "bfloat16", "float16"}
    assert chosen.batch_size
    if chosen.device == "cpu":
        assert probe_bfloat16() > 0


@pytest.mark.slow
def test_index_ranks_like_brute_force(
    e5: TorchEncoder, tmp_path: Path, data_root: Path, ray_session: None
) -> None:
    """24 news documents in Ray Data actors; the reference is a plain product of plain vectors.

    Float16 storage moves a score by less than 0.001; documents further apart keep their order.
    """
    folder = data_root / "ntrex"
    documents = list(read_documents(str(folder / "docs/en_docs.tsv")))[:24]
    store = DocumentStore.build(tmp_path / "store", documents, "x", small=8)
    settings = EncoderSettings(model=E5, precision="float32", device="cpu", batch_size=8)
    windows = {"length": 180, "stride": 90, "tokenizer": E5}
    job = EncodeSettings(settings, E5, 180, 90)
    out = tmp_path / "index"
    assert DenseIndex.build(out, store, job, {"passages": windows}) == 3
    assert DenseIndex.build(out, store, job, {"passages": windows}) == 0
    topics = read_topics(str(folder / "queries/de_queries_title.tsv"), language="de")[:6]
    queries = [topic.query() for topic in topics]
    run = DenseRetriever(DenseIndex(out), e5).retrieve(queries, 24)

    short = [document for document in documents if len(document.text) < 600]
    assert len(short) > 10
    vectors = e5.encode_passages([document.contents for document in short])
    asked = e5.encode_queries([query.text for query in queries])
    for row, query in enumerate(queries):
        scores = {hit.doc_id: hit.score for hit in run[query.query_id]}
        for column, document in enumerate(short):
            expected = float(asked[row] @ vectors[column])
            assert scores[document.doc_id] == pytest.approx(expected, abs=1e-3)
