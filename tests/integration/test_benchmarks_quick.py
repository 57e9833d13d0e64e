"""``python -m benchmarks --quick`` in a process of its own, for the stages that are quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"stage", "ours", "other", "ratio", "target", "met", "settings"}


def test_quick_run_writes_whole_rows(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    paths = [str(ROOT / "platform"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "startup", "evaluation"]
    done = subprocess.run(
        [*command, "--output", str(output)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())
    assert [row["stage"] for row in rows] == ["import polyray", "polyray --help", "evaluation"]
    for row in rows:
        assert set(row) == KEYS
        assert row["ours"] > 0
        assert row["other"] > 0
        assert isinstance(row["met"], bool)
        settings = row["settings"]
        assert settings["repeats"] == len(settings["ours_all"]) == len(settings["other_all"])
        assert settings["threads"] >= 1
        assert settings["cpu"]
        assert settings["versions"]["numpy"]
        assert row["stage"] in done.stdout
