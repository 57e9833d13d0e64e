"""Java and Ray in one process, whichever comes first, and signals while Java runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

JAVA = """
from pathlib import Path
from polyray.indexes.bm25 import Bm25Index
from polyray.records import Document, Query
def java(name):
    rows = [Document(f"d{i}", f"kite festival number {i} in spring") for i in range(2000)]
    folder = Path(FOLDER) / name
    Bm25Index.build(folder, rows, code="en")
    queries = [Query(str(i), f"festival {i} spring kite") for i in range(2000)]
    for _ in range(3):
        run = Bm25Index(folder).search(queries, 100)
    return len(run)
"""
RAY = """
from polyray.cluster import started
def ray():
    with started(num_cpus=1):
        from ray import data
        return data.from_items([1, 2, 3]).map(lambda row: {"x": row["item"] + 1}).sum("x")
"""


def run(script: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", f"FOLDER = {str(folder)!r}\n{script}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_java_works_before_and_after_ray_starts(tmp_path: Path) -> None:
    """Ray takes SIGSEGV, by which Java's compiled code checks for null; it is put back.

    Without that, the searches after Ray's start end the process.
    """
    provoke = """
from polyray.indexes.jvm import java_class
def nulls():
    from jnius import JavaException
    kinds = java_class("java.util.Objects")
    found = 0
    for _ in range(300):
        try:
            kinds.requireNonNull(None)
        except JavaException:
            found += 1
    return found
"""
    script = JAVA + RAY + provoke + "print(java('a'), ray(), java('b'), nulls(), java('c'))"
    assert run(script, tmp_path).split() == ["2000", "9", "2000", "300", "2000"]


@pytest.mark.slow
def test_sigterm_is_pythons_own_while_java_runs(tmp_path: Path) -> None:
    script = JAVA + (
        "import os, signal\n"
        "def stop(*_): raise SystemExit(143)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "java('a')\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    import time; time.sleep(5)\n"
        "except SystemExit as end:\n    print(end.code)\n"
    )
    assert run(script, tmp_path).split() == ["143"]
