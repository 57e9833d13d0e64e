"""A real language model, 135 million weights, behind a real OpenAI-compatible server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyray.config import load_config
from polyray.files import read_json
from tasks.distractors.config import DistractorsConfig
from tasks.distractors.run import run_distractors
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = ("The train to Berlin leaves at seven.", "Anna bought two red apples.")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, free_port: int) -> Iterator[str]:
    """The address of ``polyray llm``, once it answers."""
    log = tmp_path_factory.mktemp("llm") / "log"
    path = os.pathsep.join([str(ROOT / "platform"), str(ROOT)])
    code = "from polyray.cli import main; main()"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-c", code, "llm", "--port", str(free_port)],
            env={**os.environ, "PYTHONPATH": path},
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + 300
        while True:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/health", timeout=5):
                    break
            except (urllib.error.URLError, TimeoutError):
                time.sleep(0.5)
        yield f"http://127.0.0.1:{free_port}/v1"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.slow
def test_its_weak_answers_are_kept_out_and_counted(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 2 x 4 distractors asked for is made or missing, and what was refused has a reason."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{text}\tx\n" for text in SENTENCES), encoding="utf-8")
    given = [
        f"generator.engine.provider.base_url={url}",
        "generator.engine.parameters.max_tokens=40",
        "generator.engine.parameters.seed=1",
        f'pairs={{kind: columns, path: "{pairs}", columns: {{en: 1, fr: 2}}}}',
        "languages=[en, fr]",
        "targets=[en]",
        f"output={tmp_path}/runs",
    ]
    path = ROOT / "configs/distractors/sample_local_llm.yaml"
    config = load_config(path, given, DistractorsConfig)
    result = run_distractors(config)
    part = result.parts["en"]
    figures = read_json(result.folder / "results.json")["languages"]["en"]
    assert figures["made"] == len(part.made)
    assert figures["made"] + figures["missing"] == 8
    assert figures["missing"] > 0, "a model of this size does not write eight good ones"
    assert part.rejected.total() > 0
    weak = {f"answer: {why}" for why in ("unparsable", "truncated", "empty", "refusal")}
    assert not {r for r in part.rejected if r.startswith("answer: ")} - weak, part.said
    for one in part.made:
        assert one.text not in SENTENCES
        assert 0 < one.edit_similarity < 1
