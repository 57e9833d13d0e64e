"""Configs: inheritance, overrides, errors that name the place, hashes that mean something."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from jobs.index import IndexConfig
from jobs.teach import TeachConfig
from polyray.config import canonical, config_hash, load_config
from polyray.errors import ConfigError
from polyray.training.study import TrainConfig
from tasks.clsd.config import ClsdConfig
from tasks.distractors.config import DistractorsConfig
from tasks.mqir.config import MqirConfig
from tasks.quality.config import QualityConfig


class Kind(BaseModel):
    """What job a config is of."""

    kind: str


ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "configs" / "quickstart.yaml"


def test_every_config_in_the_repository_validates() -> None:
    found = sorted((ROOT / "configs").rglob("*.yaml"))
    models = {
        "clsd": ClsdConfig,
        "distractors": DistractorsConfig,
        "index": IndexConfig,
        "mqir": MqirConfig,
        "quality": QualityConfig,
        "teach": TeachConfig,
        "train": TrainConfig,
    }
    kinds = set()
    for path in found:
        if path.parent.name == "fragments":
            continue
        kind = load_config(path, [], Kind).kind
        load_config(path, [], models[kind])
        kinds.add(kind)
    assert kinds == set(models)


def test_configs_whose_figures_are_published_give_them_on_every_machine() -> None:
    """The precision is not left to what a processor is good at."""
    studies = [QUICKSTART, *sorted((ROOT / "configs" / "mqir").glob("ntrex*.yaml"))]
    chosen = {
        (path.name, system.name): system.precision
        for path in studies
        for system in load_config(path, [], MqirConfig).systems
        if system.kind in ("dense", "late")
    }
    sentences = [ROOT / "configs" / "distractors" / "measure_wmt19.yaml"]
    sentences += sorted((ROOT / "configs" / "clsd").glob("*.yaml"))
    chosen |= {
        (path.name, encoder.name): encoder.encoder.precision
        for path in sentences
        for encoder in load_config(path, [], ClsdConfig).encoders
        if not encoder.name.startswith("use-")  # its graph has a precision of its own
    }
    assert len(chosen) > 40
    assert {each for each, precision in chosen.items() if precision != "float32"} == set()


def test_overrides_reach_into_mappings_and_lists() -> None:
    config = load_config(
        QUICKSTART, ["hits=7", "systems.0.k1=1.2", "queries.field=title"], MqirConfig
    )
    assert config.hits == 7
    assert config.queries.field == "title"
    assert config.systems[0].k1 == 1.2  # type: ignore[union-attr]


def test_extends_merges_mappings_and_the_file_itself_wins(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("hits: 5\nworkers: {actors: 1, cpus: 2}\n")
    (tmp_path / "b.yaml").write_text(
        f"extends: [{QUICKSTART}, a.yaml]\nworkers: {{actors: 3}}\nname: b\n"
    )
    config = load_config(tmp_path / "b.yaml", [], MqirConfig)
    assert (config.hits, config.workers.actors, config.workers.cpus) == (5, 3, 2)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("hitz=3", ["hitz", "no such setting", "hits"]),
        ("hits=0", ["hits", "greater than 0"]),
        ("languages=[de, xx]", ["languages", "'xx'", "ru"]),
        ("languages=[de, de]", ["languages", "twice"]),
        ("measures=[AP@1OO]", ["measures", "AP@1OO"]),
        ("targets=[klingon]", ["targets", "english", "native"]),
        ("systems.2.of=[bm25, nobody]", ["nobody", "not named before"]),
        ("systems.1.name=bm25", ["two systems", "bm25"]),
        ("systems.0.kind=bm52", ["systems.0", "bm25", "dense", "fusion"]),
        ("systems.1.passages.stride=999", ["stride 999"]),
        ("hits", ["a.b=value"]),
        ("systems.9.k1=1", ["9", "list of 3"]),
    ],
)
def test_errors_name_the_place_and_what_is_allowed(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(QUICKSTART, [override], MqirConfig)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("hits: 1\nhits: 2\n", "twice"),
        ("- 1\n", "mapping"),
        ("a: [\n", "not YAML"),
        ("extends: self.yaml\n", "extends itself"),
        ("extends: nowhere.yaml\n", "no such config"),
        ("a: !!python/object/apply:os.system ['true']\n", "not YAML"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "self.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=word) as caught:
        load_config(path, [], MqirConfig)
    assert str(tmp_path) in str(caught.value)


def test_hash_sees_figures_and_ignores_workers() -> None:
    def name(*overrides: str) -> str:
        config = load_config(QUICKSTART, overrides, MqirConfig)
        return config_hash(canonical(config, leave_out=("output", "tracking", "workers")))

    assert name() == name("output=/elsewhere", "workers.actors=4")
    assert name() != name("systems.0.b=0.5")
    assert name() != name("hits=99")
