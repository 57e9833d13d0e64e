"""The manifest of an index folder: what it is, what it was made of, and its files' checksums."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyray.errors import IndexDamaged
from polyray.files import read_json, sha256_of, write_json

__all__ = ["read_manifest", "settings_key", "write_manifest"]

NAME = "manifest.json"
HASHED_UP_TO = 64 * 1024 * 1024
"""Files up to this many bytes are hashed when an index is opened, larger ones only measured."""


def settings_key(settings: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits that name settings: equal for equal settings, in any order."""
    import json

    from polyray.files import sha256_text

    return sha256_text(json.dumps(settings, sort_keys=True, ensure_ascii=False))[:16]


def write_manifest(
    folder: Path,
    kind: str,
    settings: dict[str, Any],
    *,
    known: Mapping[str, str] | None = None,
    without: str = "",
    **facts: Any,
) -> None:
    """Close an index: list every file with size and SHA-256; written last, atomically.

    ``known`` are SHA-256 that need not be computed again; ``without`` is a sub-folder that is no
    part of the index.
    """
    known = known or {}
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        inside = bool(without) and name.startswith(f"{without}/")
        if path.is_file() and path.name != NAME and not path.name.startswith(".") and not inside:
            sha256 = known.get(name) or sha256_of(path)
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256}
    content = {"kind": kind, "format": 1, "settings": settings, **facts, "files": files}
    write_json(folder / NAME, content)


def read_manifest(folder: Path, kind: str, *, full: bool = False) -> dict[str, Any]:
    """Open an index: check its kind and every file; ``full`` hashes large files, too.

    Raises :class:`~polyray.errors.IndexDamaged` naming the file that is not right.
    """
    if not (folder / NAME).is_file():
        raise IndexDamaged(f"{folder} holds no whole index: run the job again")
    manifest: dict[str, Any] = read_json(folder / NAME)
    if manifest.get("kind") != kind:
        raise IndexDamaged(f"{folder} is an index of kind {manifest.get('kind')}, not {kind}")
    for name, expected in manifest["files"].items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != expected["bytes"]:
            raise IndexDamaged(f"{path} is missing or cut short: remove {folder} and rerun")
        small = expected["bytes"] <= HASHED_UP_TO
        if (full or small) and sha256_of(path) != expected["sha256"]:
            raise IndexDamaged(f"{path} has changed since it was written: remove {folder}")
    return manifest
