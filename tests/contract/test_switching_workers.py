"""Code switching is the same in any number of workers, blocks and orders."""

from __future__ import annotations

import random
from typing import Any

from polyray.text.switch_settings import SwitchSettings
from polyray.text.switching import Switcher

LEXICON = {
    "green": {"grün": 2.0, "unreif": 1.0},
    "house": {"haus": 1.0, "gebäude": 3.0, "heim": 0.5},
    "river": {"fluss": 1.0, "strom": 1.0},
    "river bank": {"flussufer": 1.0},
    "bank": {"ufer": 1.0, "bank": 1.0},
    "new": {"neu": 1.0},
    "the": {"die": 1.0},
}
TEXT = "the green House near a RIVER bank ; new river banks , old house"
VARIANTS = [
    SwitchSettings(seed=7),
    SwitchSettings(
        seed=42,
        rate=0.7,
        content_words=True,
        multiword_headwords=True,
        choice="weight",
        lemmas=True,
    ),
]


def texts() -> list[tuple[str, str]]:
    draw = random.Random(3)
    words = TEXT.split()
    return [(f"q{n}", " ".join(draw.choices(words, k=draw.randint(0, 12)))) for n in range(200)]


def in_ray(workers: int) -> dict[str, list[str]]:
    """Every text switched in every variant, by so many workers at once, in another order."""
    import ray

    switchers = [Switcher(LEXICON, settings) for settings in VARIANTS]

    def switched(batch: dict[str, Any]) -> dict[str, list[Any]]:
        pairs = list(zip(batch["text"], batch["id"], strict=True))
        made = [[repr(one(str(text), str(key))) for one in switchers] for text, key in pairs]
        return {"id": list(batch["id"]), "made": made}

    shuffled = random.Random(workers).sample(texts(), 200)
    rows = [{"id": key, "text": text} for key, text in shuffled]
    pool = ray.data.TaskPoolStrategy(size=workers)
    made = (
        ray.data.from_items(rows, override_num_blocks=workers)
        .map_batches(switched, compute=pool, num_cpus=0.25, batch_size=16)
        .take_all()
    )
    return {row["id"]: list(row["made"]) for row in made}


def test_workers_change_nothing(ray_session: None) -> None:
    switchers = [Switcher(LEXICON, settings) for settings in VARIANTS]
    alone = {key: [switcher(text, key) for switcher in switchers] for key, text in texts()}
    for variant in range(len(VARIANTS)):
        assert sum(made[variant].replaced for made in alone.values()) > 200
    expected = {key: [repr(one) for one in made] for key, made in alone.items()}
    for workers in (1, 2, 4):
        assert in_ray(workers) == expected
