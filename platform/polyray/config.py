"""YAML to a typed, frozen, validated config, and the hash that names its experiment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from polyray.errors import ConfigError
from polyray.files import sha256_text

__all__ = ["Settings", "canonical", "config_hash", "load_config", "validated"]

Model = TypeVar("Model", bound=BaseModel)


class Settings(BaseModel):
    """Base of all configs: unknown keys are refused, values cannot be changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, which YAML would silently overwrite."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise ConfigError(f"{key_node.start_mark.name}:{line}: the key {key!r} stands twice")
        seen.add(key)
    return dict(loader.construct_pairs(node, deep=True))


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_config(path: str | Path, overrides: Sequence[str], model: type[Model]) -> Model:
    """Read ``path``, lay it over what it ``extends``, apply ``a.b=value`` overrides, validate.

    ``extends`` is a file name or a list of them, relative to the file that names them; later ones
    win, and the file itself wins over all. Mappings are merged, lists are replaced. Values of
    overrides are YAML.

    Raises :class:`~polyray.errors.ConfigError` naming every wrong place and what is allowed.
    """
    merged = _read(Path(path), ())
    for override in overrides:
        _set(merged, override)
    return validated(model, merged, str(path))


def validated(model: type[Model], values: dict[str, Any], name: str = "settings") -> Model:
    """``values`` as ``model``; raises :class:`~polyray.errors.ConfigError` naming every problem."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False):
            place = ".".join(str(part) for part in problem["loc"]) or "(top level)"
            given = problem.get("input")
            shown = f", given: {given!r}" if isinstance(given, str | int | float | bool) else ""
            what = problem["msg"]
            if problem["type"] == "extra_forbidden":
                what = "no such setting"
                shown = _allowed(model, problem["loc"][:-1])
            lines.append(f"{name}: {place}: {what}{shown}")
        raise ConfigError("\n".join(lines)) from None


def _allowed(model: type[BaseModel], place: tuple[Any, ...]) -> str:
    if place:
        return ""
    return f"; known here: {', '.join(model.model_fields)}"


def _read(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    resolved = path.resolve()
    if resolved in above:
        raise ConfigError(f"{path}: extends itself: {' -> '.join(map(str, above))}")
    try:
        loaded = yaml.load(_Named(path), _UniqueKeys)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, not a config file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    own = {} if loaded is None else loaded
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: a config is a mapping of settings")
    parents = own.pop("extends", [])
    merged: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        merged = _merge(merged, _read(path.parent / parent, (*above, resolved)))
    return _merge(merged, own)


class _Named:
    """A file whose name YAML errors show."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._text = path.read_text(encoding="utf-8-sig")

    def read(self, size: int = -1) -> str:
        """All of the text at the first call, nothing afterwards."""
        text, self._text = self._text, ""
        return text


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        if both and old is not None and old.get("kind") == value.get("kind", old.get("kind")):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _set(values: dict[str, Any], override: str) -> None:
    place, sign, text = override.partition("=")
    if not sign or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", place):
        raise ConfigError(f"--set {override}: write it as a.b=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override}: the value is not YAML: {error}") from None
    *path, last = place.split(".")
    here: Any = values
    for part in path:
        here = _step(here, part, override)
    if isinstance(here, list):
        here[_index(here, last, override)] = value
    else:
        here[last] = value


def _step(here: Any, part: str, override: str) -> Any:
    if isinstance(here, list):
        return here[_index(here, part, override)]
    if not isinstance(here.get(part), dict | list):
        here[part] = {}
    return here[part]


def _index(items: list[Any], part: str, override: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise ConfigError(f"--set {override}: {part!r} is no place in a list of {len(items)}")
    return int(part)


def canonical(settings: BaseModel, *, leave_out: Sequence[str] = ()) -> str:
    """The settings as JSON with sorted keys and no spaces: equal settings give equal text."""
    values = settings.model_dump(mode="json", exclude=set(leave_out))
    return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def config_hash(text: str) -> str:
    """Twelve hexadecimal digits of a text's SHA-256: what an experiment's folder is named by."""
    return sha256_text(text)[:12]
