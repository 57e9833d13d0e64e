"""A PLAID build that is killed goes on where it stopped and gives the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from polyray.collections.store import DocumentStore
from polyray.files import read_json, sha256_of
from polyray.indexes.plaid.build import build_plaid, map_here
from polyray.indexes.plaid.update import settings_of
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]

AT_EVERY_PUBLISH = """
import os, shutil, sys
from pathlib import Path
import faiss, scipy.sparse, torch, pyarrow.parquet, pyarrow.compute, numpy.random
from polyray.collections.store import DocumentStore
from polyray.files import sha256_of
from polyray.indexes.plaid.build import PlaidSettings, build_plaid, map_here
from polyray.models.settings import LateSettings
from polyray.records import Document

root = Path(sys.argv[1])
encoder = LateSettings(model="hashing:16", device="cpu", precision="float32")
settings = PlaidSettings(encoder, "words", 8, 4, memory_map=True)
documents = [Document(f"d{n}", f"word{n} word{n % 5} some more words " * 3) for n in range(9)]


def build(folder):
    store = DocumentStore.build(root / "documents", documents, "documents", small=3)
    build_plaid(folder, store, settings, {"documents": "documents"}, spread=map_here)


def checksums(folder):
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {str(p.relative_to(folder)): sha256_of(p) for p in files}


def child(folder, die_at):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    replace, count = os.replace, 0

    def counted(*names):
        nonlocal count
        count += 1
        if count == die_at:
            os._exit(9)
        return replace(*names)

    os.replace = counted
    try:
        build(folder)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


assert child(root / "whole", 0) == 0
whole, deaths = checksums(root / "whole"), 0
while True:
    folder = root / "killed"
    shutil.rmtree(folder, ignore_errors=True)
    status = child(folder, deaths + 1)
    if status == 0:
        break
    assert status == 9, status
    deaths += 1
    done = {p: p.stat().st_mtime_ns for p in folder.glob("work/*.json")}
    finished = (folder / "manifest.json").is_file()
    assert child(folder, 0) == 0
    if not finished:
        stages = {p for p in done if p.exists()}
        assert all(done[p] == p.stat().st_mtime_ns for p in stages)
    found = checksums(folder)
    wrong = {k for k in {*whole, *found} if whole.get(k) != found.get(k)}
    assert not wrong, (deaths, wrong)
print(deaths)
"""


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "platform"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def test_death_at_every_publish(tmp_path: Path) -> None:
    """The process ends at the n-th rename, for every n, and is started again: the same tree.

    Nothing temporary stays in the finished index, and no stage's file is written a second time.
    """
    done = subprocess.run(
        [sys.executable, "-c", AT_EVERY_PUBLISH, str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


def job(output: Path, log: Path) -> subprocess.Popen[bytes]:
    system = "kind: late, name: hash, model: 'hashing:32', passages: {length: 20, stride: 10}"
    systems = f"systems=[{{{system}}}]"
    command = [sys.executable, "-m", "jobs.index", "configs/index/sample.yaml", "--set", systems]
    for override in (
        f"output={output}",
        f"tracking={new_store(output)}",
        "workers.shard_documents=4",
        "workers.actors=2",
        "workers.cpus=1",
    ):
        command += ["--set", override]
    with log.open("ab") as handle:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdout=handle,
            stderr=handle,
            process_group=0,
        )


STAGE_FILES = "indexes/plaid-*/work/?????.*.json"


def finished_shards(output: Path) -> dict[Path, int]:
    """Stage files of shards and when each was written."""
    found = {}
    for path in output.glob(STAGE_FILES):
        try:
            found[path] = path.stat().st_mtime_ns
        except FileNotFoundError:
            continue
    return found


def checksums(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in folder.iterdir() if path.name != "work"}


def test_driver_killed_in_every_stage(tmp_path: Path) -> None:
    """SIGKILL of the driver and all its processes; one folder goes on each time.

    The test above dies at every point of a build; here it is a whole job under Ray. In the end the
    index is that of one process without Ray.
    """
    output, log = tmp_path / "killed", tmp_path / "log"
    kept: dict[Path, int] = {}
    stages: list[int] = []
    for wanted in (5, 45, 60, 105, 130):
        running = job(output, log)
        try:
            deadline = time.monotonic() + 240
            while time.monotonic() < deadline and running.poll() is None:
                if sum(1 for _ in output.glob(STAGE_FILES)) >= wanted:
                    break
                time.sleep(0.01)  # looking all the time would take the job's processor
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
        finally:
            running.wait()
        time.sleep(1)
        now = finished_shards(output)
        if running.returncode != -signal.SIGKILL:
            break
        assert kept == {path: now[path] for path in kept}, "a finished shard was done again"
        kept = now
        stages.append(len(now))
    assert len(stages) >= 4, f"the kills came too late: {stages}; {log.read_text()}"
    assert stages[0] < 50, "no kill landed while documents were split"
    assert any(50 <= count < 100 for count in stages), "no kill landed in the sample"
    assert any(count >= 100 for count in stages), "no kill landed in the encoding"

    assert job(output, log).wait(timeout=240) == 0, log.read_text()
    (folder,) = output.glob("indexes/plaid-*")
    manifest = read_json(folder / "manifest.json")
    (documents,) = output.glob("indexes/documents-*")
    alone = tmp_path / "alone" / folder.name
    build_plaid(
        alone,
        DocumentStore.open(documents),
        settings_of(folder),
        manifest["settings"],
        spread=map_here,
    )
    assert checksums(folder) == checksums(alone)
    assert manifest["documents"] == 200
    assert not [p for p in output.glob("indexes/**/*") if p.name.endswith(".tmp")]
