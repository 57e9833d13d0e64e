"""The published layouts of MS MARCO, mMARCO and NeuMARCO, read through the fragments of configs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from polyray.config import Settings, load_config
from polyray.training.examples import Examples, ExampleSource
from polyray.training.recipes import Recipe

FRAGMENTS = Path(__file__).resolve().parents[3] / "configs" / "train" / "fragments"
NEUMARCO = "msmarco.collection.20210731-scale21-sockeye2-tm1.tsv"


class Fragment(Settings):
    source: ExampleSource


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files under the published names."""

    def texts(path: str, kind: str, language: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{n}\t{language} {kind} {n}\n" for n in range(60)))

    texts("ms/queries.train.tsv", "query", "en")
    texts("ms/collection.tsv", "passage", "en")
    for code, name, iso3 in (("en", "english", ""), ("zh", "chinese", "zho"), ("de", "german", "")):
        texts(f"mm/google/queries/train/{name}_queries.train.tsv", "query", code)
        texts(f"mm/google/collections/{name}_collection.tsv", "passage", code)
        if iso3:
            texts(f"neu/eng-{iso3}/{NEUMARCO}", "passage", code)
    rows = [[q, *([p, 1.5 * p] for p in range(q, q + 50))] for q in range(10)]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (tmp_path / "ms/t53b-monot5-msmarco-engeng.jsonl.gz").write_bytes(packed)
    for variable, folder in (("MSMARCO", "ms"), ("MMARCO", "mm"), ("NEUMARCO", "neu")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    return tmp_path


@pytest.mark.parametrize(
    ("fragment", "recipe", "query", "passage"),
    [
        ("msmarco", {"kind": "mono", "query_languages": ["zh", "de"]}, "en", "en"),
        ("mmarco", {"kind": "cross", "query_languages": ["zh"]}, "zh", "en"),
        (
            "mmarco",
            {"kind": "mono", "query_languages": ["de"], "passage_language": "{language}"},
            "de",
            "de",
        ),
        (
            "neumarco",
            {"kind": "cross", "query_languages": ["zh"], "passage_language": "{language}"},
            "en",
            "zh",
        ),
    ],
)
def test_published_layouts(
    published: Path, fragment: str, recipe: dict[str, object], query: str, passage: str
) -> None:
    given = load_config(FRAGMENTS / f"{fragment}.yaml", [], Fragment).source
    examples = Examples.prepare(given, Recipe.model_validate(recipe), published / "indexes", seed=1)
    assert examples.lines == 10
    for example in examples:
        assert example.query == f"{query} query {example.query_id}"
        assert len(set(example.passage_ids)) == 6
        assert example.passages == tuple(f"{passage} passage {n}" for n in example.passage_ids)
        assert example.scores == tuple(1.5 * int(n) for n in example.passage_ids)
