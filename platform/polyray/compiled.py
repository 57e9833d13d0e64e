"""C++ extensions of this environment: compiled once, in a folder of its own, one process at a time.

torch keeps one folder a user, and compiles anew whenever another environment was there. Its own
lock outlives a process that is killed, and the next would wait for it without end: the lock here
ends with its process, so that torch's is a dead one's when this one is held. The environment's own
ninja is taken: another version would find every command changed, and compile all of it again.
"""

from __future__ import annotations

import fcntl
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyray.errors import MissingPrerequisite
from polyray.files import sha256_text

__all__ = ["compiler", "extension"]


@contextmanager
def compiler(purpose: str) -> Iterator[None]:
    """Inside, torch compiles and loads extensions of this environment.

    Raises :class:`~polyray.errors.MissingPrerequisite`, which names the ``purpose``, where they are
    not compiled yet and there is no compiler.
    """
    from polyray.models.packaged import cache_folder

    own = cache_folder() / "extensions" / sha256_text(sys.prefix)[:12]
    folder = Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(own)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "polyray.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            for lock in folder.glob("*/lock"):
                lock.unlink(missing_ok=True)
            with _own_ninja():
                yield
    except (OSError, RuntimeError, ImportError) as error:
        raise MissingPrerequisite(
            f"{purpose} needs a C++ compiler (Debian: apt install g++; and ninja, which "
            f"polyray's lock file installs): {error}"
        ) from error


@contextmanager
def _own_ninja() -> Iterator[None]:
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), path))
    try:
        yield
    finally:
        os.environ["PATH"] = path


def extension(source: Path, purpose: str) -> Any:
    """The module that a C++ file with a ``PYBIND11_MODULE`` is; its name is the file's.

    On Linux it is compiled with OpenMP, without which ``at::parallel_for`` is a plain loop; the
    runtime is the one that torch has loaded.
    """
    from torch.utils.cpp_extension import load

    threads = ["-fopenmp"] if sys.platform == "linux" else []
    with compiler(purpose):
        return load(
            f"polyray_{source.stem}",
            [str(source)],
            extra_cflags=["-O3", *threads],
            extra_ldflags=threads,
        )
