"""An experiment on disk: its folder is named by the hash of its config and its inputs.

``runs/<name>/<hash>/`` holds ``config.yaml``, ``results.json``, ``tables/``, ``plots/``,
``runs/``, ``per_topic.parquet`` and ``environment.json``. The folder can be moved. The same config
on the same inputs goes on in the same folder; another config or changed inputs get another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyray.config import Settings, canonical, config_hash
from polyray.files import atomic_path, read_json, write_json

__all__ = ["Experiment"]

NOT_HASHED = ("output", "answers", "tracking", "workers", "groups")
"""Settings that cannot change a figure: where results and LLM answers go, how many workers there
are, which systems stand together in a table."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """The folder of one config on given inputs; ``inputs`` are fingerprints by name."""

    name: str
    config: Settings
    inputs: Mapping[str, str]
    output: Path

    @property
    def text(self) -> str:
        """What is hashed: config and inputs as canonical JSON, paths as the user wrote them."""
        return canonical(self.config, leave_out=NOT_HASHED) + json.dumps(
            dict(self.inputs), sort_keys=True
        )

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits."""
        return config_hash(self.text)

    @property
    def folder(self) -> Path:
        """``<output>/<name>/<hash>``."""
        return self.output / self.name / self.hash

    @property
    def indexes(self) -> Path:
        """``<output>/indexes``: shared by all experiments, each index named by its own settings."""
        return self.output / "indexes"

    def open(self) -> None:
        """Make the folder and write config, inputs and environment."""
        import yaml

        from polyray.environment import environment

        self.folder.mkdir(parents=True, exist_ok=True)
        values = self.config.model_dump(mode="json")
        with atomic_path(self.folder / "config.yaml") as temporary:
            text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False)
            temporary.write_text(text, encoding="utf-8")
        write_json(self.folder / "inputs.json", dict(self.inputs))
        write_json(self.folder / "environment.json", environment())

    def keep(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """What this experiment has chosen once under ``name``: the stored value if there is one.

        So that a choice made by measuring (device, precision) stays the same after a restart.
        """
        path = self.folder / "chosen" / f"{name}.json"
        if path.is_file():
            stored: dict[str, Any] = read_json(path)
            return stored
        write_json(path, value)
        return value
