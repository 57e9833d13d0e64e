"""The teach job: mining, scores of every kind of teacher, restart, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.teach import TeachConfig, run_teach
from polyray.config import validated
from polyray.errors import ConfigError, PolyrayError
from polyray.files import read_json, resolve
from polyray.models.dense import load_encoder
from polyray.retrieve.settings import Workers
from polyray.training.examples import Examples, ExampleSource
from polyray.training.recipes import Recipe
from polyray.training.teacher import (
    CrossEncoderTeacher,
    MonoT5Teacher,
    PairTeacher,
    load_scorer,
)
from polyray.training.teacher_report import TeacherReport
from polyray.training.teacher_shards import LINES, teach
from tests.stores import new_store
from tests.unit.training.tiny_models import save_cross_encoder, save_mono_t5

HASHING = {"kind": "bi-encoder", "model": "hashing:64", "scale": 20}
QUERIES, PASSAGES = "sample:queries/en_queries.tsv", "sample:docs/en_docs.tsv"


@pytest.fixture(autouse=True)
def tracked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def config(output: Path, **given: Any) -> TeachConfig:
    systems = [
        {"kind": "bm25", "name": "bm25"},
        {"kind": "dense", "name": "hash", "model": "hashing:64"},
    ]
    values = {
        "kind": "teach",
        "name": "taught",
        "queries": QUERIES,
        "passages": PASSAGES,
        "qrels": "sample:qrels/qrels.tsv",
        "mining": {"systems": systems, "negatives": 6, "last_rank": 20},
        "teacher": HASHING,
        "workers": {"cpus": 1},
        "output": str(output),
        "tracking": new_store(output),
    }
    values |= given
    return validated(TeachConfig, {k: v for k, v in values.items() if v is not None})


def texts(path: str, between: str) -> dict[str, str]:
    columns = [line.split("\t") for line in resolve(path).read_text().splitlines()]
    return {key: between.join(parts) for key, *parts in columns}


def test_mined_and_scored_by_a_bi_encoder(tmp_path: Path, ray_session: None) -> None:
    done = run_teach(config(tmp_path))
    path = tmp_path / "taught" / "examples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    judged: dict[str, set[str]] = {}
    for row in resolve("sample:qrels/qrels.tsv").read_text().splitlines():
        query, _, doc, grade = row.split()
        if int(grade) > 0:
            judged.setdefault(query, set()).add(doc)
    assert {(line[0], line[1][0]) for line in lines} == {
        (query, doc) for query, docs in judged.items() for doc in docs
    }
    encoder = load_encoder("hashing:64")
    queries, passages = texts(QUERIES, " "), texts(PASSAGES, "\n")
    for line in lines[:20]:
        ids = [pid for pid, _ in line[1:]]
        assert len(set(ids)) == len(ids) == 7
        assert not set(ids[1:]) & judged[line[0]]
        asked = encoder.encode_queries([queries[line[0]]])[0]
        found = encoder.encode_passages([passages[pid] for pid in ids])
        np.testing.assert_allclose([score for _, score in line[1:]], 20 * found @ asked, atol=1e-4)
    facts = read_json(done.folder / "results.json")
    assert facts["teacher"]["lines"] == len(lines)
    assert 0 < facts["teacher"]["positive_first"] <= 1
    assert facts["read"]["shards"] >= 2
    assert "positive first in" in done.tables[0].caption
    # training reads what the job wrote
    source = ExampleSource(examples=str(path), queries=QUERIES, passages=PASSAGES, nway=4)
    recipe = Recipe(kind="mono", query_languages=("en",))
    examples = Examples.prepare(source, recipe, tmp_path / "indexes", seed=1)
    assert examples.lines == len(lines)
    assert len(examples[0].scores) == 4
    # started again: one damaged shard is done again, and that alone
    before = path.read_bytes()
    (shards,) = (tmp_path / "indexes").glob("teacher-*")
    next(shards.glob("queries-*.npy")).write_bytes(b"cut short")
    run_teach(config(tmp_path))
    assert read_json(done.folder / "results.json")["read"]["shards"] == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["cross-encoder", "monot5"])
def test_pair_teachers_on_actors(tmp_path: Path, ray_session: None, kind: str) -> None:
    here = {"device": "cpu", "precision": "float32", "batch_size": 8, "max_length": 64}
    teacher: PairTeacher
    if kind == "cross-encoder":
        model = str(save_cross_encoder(tmp_path / "model"))
        teacher = CrossEncoderTeacher(kind="cross-encoder", model=model, **here)
    else:
        model = str(save_mono_t5(tmp_path / "model"))
        teacher = MonoT5Teacher(kind="monot5", model=model, **{**here, "max_length": 256})
    queries, passages = texts(QUERIES, " "), texts(PASSAGES, "\n")
    ids = list(passages)
    rows = [[query, *ids[at : at + 3]] for at, query in enumerate(list(queries)[:70])]
    candidates = tmp_path / "candidates.jsonl"
    candidates.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = ExampleSource(
        examples=str(candidates), queries=QUERIES, passages=PASSAGES, nway=2, choice="random"
    )
    recipe = Recipe(kind="mono", query_languages=("en",))
    examples = Examples.prepare(source, recipe, tmp_path, seed=0)
    path = tmp_path / "scores.jsonl"
    done = teach(examples, teacher, tmp_path, path, Workers(cpus=1))
    assert (done["shards"], done["texts"]) == (-(-len(rows) // LINES), 3 * len(rows))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [[line[0], *(pid for pid, _ in line[1:])] for line in lines] == rows
    pairs = [(queries[row[0]], passages[pid]) for row in rows for pid in row[1:]]
    scores = [score for line in lines for _, score in line[1:]]
    scorer = load_scorer(teacher)
    np.testing.assert_allclose(scores, scorer.score(pairs), atol=1e-4)
    assert done["truncated"] == scorer.truncated(pairs)
    assert len(set(scores)) > 100
    again = teach(examples, teacher, tmp_path, path, Workers(cpus=1))
    assert again == {**done, "shards": 0}


def test_a_missing_model_is_named_before_anything_is_started(tmp_path: Path) -> None:
    candidates = tmp_path / "candidates.jsonl"
    ids = list(texts(PASSAGES, ""))
    candidates.write_text(json.dumps([next(iter(texts(QUERIES, ""))), *ids[:3]]) + "\n")
    given = {"kind": "bi-encoder", "model": "packaged:nothing"}
    none: dict[str, Any] = {"mining": None, "qrels": None, "candidates": str(candidates)}
    with pytest.raises(PolyrayError, match="packaged:nothing"):
        run_teach(config(tmp_path, teacher=given, **none))


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="either mining or candidates"):
        config(tmp_path, candidates="x")
    with pytest.raises(ConfigError, match="qrels and mining belong together"):
        config(tmp_path, qrels=None)
    with pytest.raises(ConfigError, match="teacher"):
        config(tmp_path, teacher={"kind": "oracle"})


def test_the_report_says_how_easy_the_examples_are(tmp_path: Path) -> None:
    rows = [
        ["q1", ["p", 2.0], ["a", 1.0], ["b", 0.0]],
        ["q2", ["p", 1.0], ["a", 1.0], ["b", 3.0]],
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = TeacherReport(path).facts()
    assert facts["positive_first"] == 0.5  # a tie is not first
    assert facts["positive_reciprocal_rank"] == pytest.approx((1 + 1 / 3) / 2)
    assert facts["margin_p0"] == -2.0
    assert facts["margin_p100"] == 1.0
    shares = [np.exp(2) / np.exp([2, 1, 0]).sum(), np.e / np.exp([1, 1, 3]).sum()]
    assert facts["positive_share_mean"] == pytest.approx(np.mean(shares))
    assert facts["spread_p100"] == pytest.approx(np.std([1, 1, 3]))
