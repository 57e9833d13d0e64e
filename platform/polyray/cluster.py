"""Ray: starting it, joining it, and asking how large it is. Nothing else here."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["actors_and_cpus", "largest_node", "quiet_environment", "started"]

_LOCAL_STORE = 512 * 1024 * 1024
"""Object store of a local Ray, in bytes: shards travel as file names, not as objects."""
_STARTS = 3
"""How often a local Ray that comes up too slowly is started."""
_SIGACTION = 512
"""More than the bytes of libc's ``struct sigaction``, which is kept and put back unread."""


def quiet_environment() -> None:
    """Defaults that have to stand before Ray is imported; what the user has set wins.

    Token authentication is on, usage statistics are off; Ray's own core logs only what is fatal
    (errors of workers come back as exceptions all the same). Workers of a local Ray get the same
    share of the processor as other programs.

    A Ray that was imported before has read its mode of authentication: it stays, since the servers
    that this process starts would ask for a token that it does not send.
    """
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_worker_niceness", "0")


@contextmanager
def started(
    *, address: str | None = None, num_cpus: int | None = None, log_to_driver: bool = False
) -> Iterator[Any]:
    """Ray for the length of a block.

    A Ray that runs in this process is used as it is. Otherwise ``address`` (or ``RAY_ADDRESS``,
    which ``ray job submit`` sets) is joined, and without one a local Ray is started and stopped
    again. Workers find polyray and the tasks on the driver's import path.
    """
    quiet_environment()
    import ray

    if ray.is_initialized():
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": log_to_driver, "logging_level": "ERROR"}
    if where == "local":
        options |= {
            "num_cpus": num_cpus,
            "include_dashboard": False,
            "object_store_memory": _LOCAL_STORE,
        }
    if where == "local" or not _in_job():
        options["runtime_env"] = {"env_vars": {"PYTHONPATH": _import_path()}}
    with _start_up_muted(), _java_signals_kept():
        context = _begun(lambda: ray.init(address=where, **options))
    _quieten_data()
    try:
        yield context
    finally:
        with _java_signals_kept():
            ray.shutdown()


def _begun(begin: Callable[[], Any]) -> Any:
    """Start Ray, again where a busy machine was slower than the 30 seconds that Ray allows."""
    for _ in range(_STARTS - 1):
        try:
            return begin()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return begin()


@contextmanager
def _start_up_muted() -> Iterator[None]:
    """Keep what Ray's core writes to standard error while it starts, unless that fails."""
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(real, kept.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)


@contextmanager
def _java_signals_kept() -> Iterator[None]:
    """Put back the handlers that Java needs, where Java already runs in this process.

    Java's compiled code works by catching SIGSEGV. Ray's core takes that signal for itself when it
    starts and resets it when it stops; the next search would end the process. Java that starts
    while Ray runs takes the signal by itself, and so has to be kept only when Ray stops.
    """
    jnius = sys.modules.get("jnius_config")
    if jnius is None or not jnius.vm_running:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
    kept = {number: ctypes.create_string_buffer(_SIGACTION) for number in numbers}
    for number, action in kept.items():
        libc.sigaction(int(number), None, action)
    try:
        yield
    finally:
        for number, action in kept.items():
            libc.sigaction(int(number), action, None)


def _in_job() -> bool:
    """Whether ``ray job submit`` started this process: then its environment reaches workers."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def _import_path() -> str:
    platform = Path(__file__).resolve().parents[1]
    paths = [str(platform), str(platform.parent), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)


def _quieten_data() -> None:
    import logging

    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def largest_node() -> int:
    """CPUs of the node that has most of them."""
    import ray

    nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    return max(1, int(max(nodes, default=1)))


def actors_and_cpus(actors: int | None, cpus: int | None, *, gpu: bool) -> tuple[int, float, float]:
    """How many encoding actors, and the CPUs and GPUs of each.

    On a GPU cluster one actor a GPU; otherwise as many actors of ``cpus`` threads (default: all
    cores of a node, at most 8) as the cluster has room for.
    """
    import ray

    total = ray.cluster_resources()
    if gpu and total.get("GPU", 0) >= 1:
        return actors or int(total["GPU"]), float(cpus or 1), 1.0
    width = float(cpus or min(8, largest_node()))
    return actors or max(1, int(total.get("CPU", 1) // width)), width, 0.0
