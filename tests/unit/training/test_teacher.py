"""Teachers' scores, against the models called directly, one pair at a time."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from polyray.errors import ConfigError, MissingPrerequisite, PolyrayError
from polyray.training.teacher import (
    CrossEncoderTeacher,
    MonoT5Scorer,
    MonoT5Teacher,
    check_scores,
    load_scorer,
    resolved_teacher,
)
from tests.unit.training.tiny_models import WORDS, save_cross_encoder, save_mono_t5

HERE = {"device": "cpu", "precision": "float32", "batch_size": 4}


def pairs(count: int = 13) -> list[tuple[str, str]]:
    draw = random.Random(3)
    return [
        (" ".join(draw.choices(WORDS, k=3)), " ".join(draw.choices(WORDS, k=draw.randint(1, 20))))
        for _ in range(count)
    ]


def test_a_cross_encoder_gives_its_logits(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = str(save_cross_encoder(tmp_path))
    teacher = CrossEncoderTeacher(kind="cross-encoder", model=folder, max_length=16, **HERE)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    right = []
    with torch.inference_mode():
        for query, passage in pairs():
            read = tokenizer(query, passage, truncation=True, max_length=16, return_tensors="pt")
            right.append(float(model(**read).logits[0, 0]))
    scores = load_scorer(teacher).score(pairs())
    assert scores.dtype == np.float32
    longer = sum(3 + len(q.split()) + len(p.split()) > 16 for q, p in pairs())
    assert 0 < load_scorer(teacher).truncated(pairs()) == longer < len(pairs())
    np.testing.assert_allclose(scores, right, atol=1e-5)
    assert np.std(right) > 0.01


def test_a_t5_gives_the_log_probability_of_its_answer(tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = str(save_mono_t5(tmp_path))
    teacher = MonoT5Teacher(kind="monot5", model=folder, max_length=64, **HERE)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    true, false = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    right = []
    with torch.inference_mode():
        for query, passage in pairs():
            text = f"Query: {query} Document: {passage} Relevant:"
            read = tokenizer(text, return_tensors="pt")
            logits = model(**read, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
            odds = torch.exp(logits[true]) / (torch.exp(logits[true]) + torch.exp(logits[false]))
            right.append(float(torch.log(odds)))
    np.testing.assert_allclose(load_scorer(teacher).score(pairs()), right, atol=1e-5)
    assert np.std(right) > 0.01


def test_the_end_of_the_prompt_is_never_cut(tmp_path: Path) -> None:
    folder = str(save_mono_t5(tmp_path))
    short = MonoT5Scorer(MonoT5Teacher(kind="monot5", model=folder, max_length=14, **HERE))
    long = " ".join(WORDS * 4)
    text = short.prompted("old river", long)
    assert text.startswith("Query: old river Document: the a of")
    assert text.endswith(" Relevant:")
    assert long not in text
    assert short.prompted("old river", "a tree") == "Query: old river Document: a tree Relevant:"
    assert short.truncated([("old river", long), ("old river", "a tree")]) == 1
    none = short.prompted(long, "a tree")
    assert none == f"Query: {long} Document:  Relevant:"


def test_models_of_another_kind_are_refused(tmp_path: Path) -> None:
    plain = str(save_cross_encoder(tmp_path / "plain", head=False))
    given = {"kind": "cross-encoder", **HERE}
    with pytest.raises(ConfigError, match="is BertModel; a cross-encoder"):
        load_scorer(CrossEncoderTeacher(model=plain, **given))
    three = str(save_cross_encoder(tmp_path / "three", labels=3))
    with pytest.raises(ConfigError, match="3 outputs"):
        load_scorer(CrossEncoderTeacher(model=three, **given))
    with pytest.raises(ConfigError, match="a monot5 is"):
        load_scorer(MonoT5Teacher(kind="monot5", model=three, **HERE))
    t5 = str(save_mono_t5(tmp_path / "t5", answers=("▁yes", "▁no")))
    with pytest.raises(ConfigError, match="no token '▁true'"):
        load_scorer(MonoT5Teacher(kind="monot5", model=t5, **HERE))
    answers = {"true_token": "▁yes", "false_token": "▁no"}
    assert load_scorer(MonoT5Teacher(kind="monot5", model=t5, **answers, **HERE)).score(pairs(1))
    with pytest.raises(MissingPrerequisite, match="cannot load"):
        load_scorer(CrossEncoderTeacher(model=str(tmp_path / "nothing"), **given))


def test_precision_is_chosen_and_t5_never_reads_in_float16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = {"device": "cuda", "precision": "float16", "batch_size": 256}
    monkeypatch.setattr("polyray.training.teacher.chosen", lambda *_: dict(half))
    made = resolved_teacher(MonoT5Teacher(kind="monot5", model="x"))
    assert (made.precision, made.batch_size) == ("float32", 256)
    assert resolved_teacher(CrossEncoderTeacher(kind="cross-encoder", model="x")).precision == (
        "float16"
    )
    with pytest.raises(ConfigError, match="overflows"):
        resolved_teacher(MonoT5Teacher(kind="monot5", model="x", precision="float16"))


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(PolyrayError, match="bfloat16: try precision float32"):
        check_scores(np.array([0.0, np.nan]), "m", "bfloat16")
