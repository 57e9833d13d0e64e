"""Sentence shards: the plain worker, and what a finished shard is recognised by."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyray.indexes.sentences import SentenceEncoder, SentenceTask
from polyray.models.dense import HashingEncoder
from polyray.models.settings import EncoderSettings


def test_worker_writes_query_vectors_and_facts(tmp_path: Path) -> None:
    encoder = HashingEncoder(64, EncoderSettings(model="hashing:64", query_prompt="query: "))
    task = SentenceTask(3, ["ein Satz", "une phrase"], str(tmp_path))
    facts = SentenceEncoder(encoder)(task)
    stored = np.load(tmp_path / "00003.vectors.npy")
    assert np.array_equal(stored, encoder.encode_queries(task.texts))
    assert not np.array_equal(stored, encoder.encode_passages(task.texts))
    assert stored.dtype == np.float32
    assert (facts["shard"], facts["texts"], facts["truncated"]) == (3, 2, 0)
    assert facts["encoder"]["prompt.query"] == "query: "


def test_a_shard_is_whole_only_with_its_own_texts_and_bytes(tmp_path: Path) -> None:
    task = SentenceTask(0, ["a", "b"], str(tmp_path))
    assert not task.is_whole()
    SentenceEncoder(HashingEncoder(64))(task)
    assert task.is_whole()
    assert not SentenceTask(0, ["a", "c"], str(tmp_path)).is_whole()
    task.vectors.write_bytes(task.vectors.read_bytes()[:-1])
    assert not task.is_whole()
    task.vectors.unlink()
    assert not task.is_whole()
