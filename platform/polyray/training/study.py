"""A training study: recipes x seeds x settings, every student by the same loop.

The students of one seed differ in their recipe alone: :meth:`Examples.prepare` gives all recipes
the same lines in the same order, and :func:`~polyray.training.loop.train` knows no recipe.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from polyray.config import Settings, validated
from polyray.models.settings import LateSettings
from polyray.training.distributed import Trainers
from polyray.training.examples import Examples, ExampleSource
from polyray.training.loop import Trained, train
from polyray.training.recipes import Recipe
from polyray.training.settings import TrainingSettings
from polyray.training.validation import Validation

__all__ = ["Asha", "Search", "Student", "TrainConfig", "ValidationSource", "students"]


class Grid(Settings):
    """Every one of some values."""

    kind: Literal["grid"]
    values: tuple[Any, ...] = Field(min_length=1)


class Uniform(Settings):
    """Drawn evenly between two numbers, or evenly by magnitude with ``log``."""

    kind: Literal["uniform"]
    low: float
    high: float
    log: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError("low must be below high, and above 0 with log")
        return self

    def draw(self, number: random.Random) -> float:
        """One value, to three significant digits."""
        if self.log:
            value = math.exp(number.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = number.uniform(self.low, self.high)
        return float(f"{value:.3g}")


class Choice(Settings):
    """Drawn from some values."""

    kind: Literal["choice"]
    values: tuple[Any, ...] = Field(min_length=1)

    def draw(self, number: random.Random) -> Any:
        """One of the values."""
        return number.choice(self.values)


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Axis = Annotated[Grid | Uniform | Choice, Field(discriminator="kind")]


class Search(Settings):
    """Settings of the training that are searched, by name (``learning_rate``, ``loss.kind``).

    Grids are taken whole; what is drawn is drawn ``samples`` times from ``seed``, the same for
    every recipe; a point that is drawn twice is trained once.
    """

    space: dict[str, Axis] = Field(min_length=1)
    samples: int = Field(default=1, gt=0)
    seed: int = 42

    def points(self) -> list[dict[str, Any]]:
        """All combinations to be trained, by the settings' names."""
        grids = {name: axis.values for name, axis in self.space.items() if isinstance(axis, Grid)}
        drawn = {n: axis for n, axis in self.space.items() if not isinstance(axis, Grid)}
        number = random.Random(self.seed)
        found: list[dict[str, Any]] = []
        for _ in range(self.samples if drawn else 1):
            some = {name: axis.draw(number) for name, axis in drawn.items()}
            for values in itertools.product(*grids.values()):
                point = {**dict(zip(grids, values, strict=True)), **some}
                if point not in found:
                    found.append(point)
        return found


class Asha(Settings):
    """Asynchronous successive halving (Li et al. 2020) by nDCG@10 at validations.

    After ``grace`` validations and after each ``reduction`` times as many, the worse trials stop.
    """

    grace: int = Field(default=1, gt=0)
    reduction: int = Field(default=3, gt=1)


class ValidationSource(Settings):
    """Held-out examples that every student is measured on, whatever its own recipe."""

    source: ExampleSource
    recipe: Recipe
    examples: int = Field(default=100, gt=0)
    seed: int = 1


class TrainConfig(Settings):
    """Which students: a model to begin with, examples, recipes by name, seeds, settings.

    ``variants`` are named departures from ``student`` and ``training``, by dotted path
    (``student.expansion: true``), each trained with every recipe and seed in place of the plain
    settings; ``{}`` is the plain ones.
    """

    kind: Literal["train"]
    name: Name
    student: LateSettings
    source: ExampleSource
    recipes: dict[str, Recipe] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(42,), min_length=1)
    training: TrainingSettings = TrainingSettings()
    variants: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    validation: ValidationSource | None = None
    search: Search | None = None
    asha: Asha | None = None
    workers: Trainers = Trainers()
    output: str = "runs"
    tracking: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> TrainConfig:
        languages = {recipe.query_languages for recipe in self.recipes.values()}
        if len(languages) > 1:
            raise ValueError("all recipes need the same query_languages, in the same order")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("a seed stands twice")
        measured = self.training.validate_every is not None
        if measured != (self.validation is not None):
            raise ValueError("training.validate_every and validation belong together")
        if self.asha is not None and not measured:
            raise ValueError("asha needs a validation")
        list(_trials(self))  # raises for settings that are none
        return self

    def variant(self, name: str) -> tuple[LateSettings, TrainingSettings]:
        """The student to begin with, and its training, of one of ``variants``."""
        parts: dict[str, dict[str, Any]] = {"student": {}, "training": {}}
        for path, value in self.variants[name].items():
            part, _, rest = path.partition(".")
            if part not in parts or not rest:
                raise ValueError(f"variants.{name}: {path!r} is not of student. or training.")
            parts[part][rest] = value
        where = f"variants.{name}"
        student = changed(self.student, parts["student"], f"{where}.student")
        return student, changed(self.training, parts["training"], f"{where}.training")


Changed = TypeVar("Changed", bound=BaseModel)


def changed(settings: Changed, point: Mapping[str, Any], where: str) -> Changed:
    """Settings with some of them set, named by dotted path; ``where`` is told in errors."""
    values = settings.model_dump()
    for name, value in point.items():
        *path, last = name.split(".")
        here = values
        for part in path:
            here = here.setdefault(part, {})
        here[last] = value
    return validated(type(settings), values, where)


class Student(Settings):
    """One trial: everything that a worker needs to train it."""

    name: str
    place: str
    student: LateSettings
    training: TrainingSettings
    recipe_name: str
    recipe: Recipe
    seed: int
    examples: str
    validation: ValidationSource | None = None
    validation_examples: str | None = None
    card: dict[str, Any] = Field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """``<experiment>/students/<name>``."""
        return Path(self.place)

    def train(self, report: Callable[[dict[str, float]], None] | None) -> Trained:
        """Train in this process; whole students are returned as they are."""
        held = None
        if self.validation is not None:
            given = self.validation
            pool = Examples(Path(str(self.validation_examples)), given.recipe, given.seed)
            held = Validation([pool.at(number) for number in range(min(given.examples, len(pool)))])
        return train(
            self.student,
            self.training,
            Examples(Path(self.examples), self.recipe, self.seed),
            self.folder,
            seed=self.seed,
            validation=held,
            card={"name": self.name, **self.card},
            report=report,
        )


def students(
    config: TrainConfig, experiment: Path, prepared: Mapping[str, Path], card: dict[str, Any]
) -> list[Student]:
    """All trials of a config, named so that a person knows them.

    ``prepared`` are folders of examples by recipe name, and that of ``validation``.
    """
    held = config.validation
    if held is not None:
        held = held.model_copy(update={"recipe": held.recipe.located()})
    return [
        Student(
            name=name,
            place=str(experiment / "students" / name),
            student=_begun(student, seed),
            training=training,
            recipe_name=recipe,
            recipe=config.recipes[recipe].located(),
            seed=seed,
            examples=str(prepared[recipe]),
            validation=held,
            validation_examples=str(prepared["validation"]) if held else None,
            card={**card, "recipe": config.recipes[recipe].model_dump(mode="json"), "seed": seed},
        )
        for name, recipe, seed, student, training in _trials(config)
    ]


def _trials(config: TrainConfig) -> Iterator[tuple[str, str, int, LateSettings, TrainingSettings]]:
    points: Sequence[Mapping[str, Any]] = config.search.points() if config.search else [{}]
    plain = {"": (config.student, config.training)}
    variants = {name: config.variant(name) for name in config.variants} or plain
    for recipe, seed, variant, point in itertools.product(
        config.recipes, config.seeds, variants, points
    ):
        student, training = variants[variant]
        named = (f"{k.split('.')[-1]}{v}" for k, v in point.items())
        parts = [recipe, f"seed{seed}", *([variant] if variant else []), *named]
        yield "-".join(parts), recipe, seed, student, changed(training, point, "search")


def _begun(student: LateSettings, seed: int) -> LateSettings:
    """A new model takes its markers and projection from the trial's seed; a checkpoint is fixed."""
    return student if student.backbone is None else student.model_copy(update={"seed": seed})
