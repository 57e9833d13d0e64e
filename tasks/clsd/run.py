"""The CLSD study from config to results; vectors that are whole are not computed again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import resolve, sha256_of
from polyray.indexes.sentences import SentenceVectors, encode_sentences
from polyray.models.device import precision_notes
from polyray.models.settings import EncoderSettings
from polyray.progress import Progress
from tasks.clsd.config import ClsdConfig, ClsdEncoder, Mode
from tasks.clsd.data import ClsdData, read_datasets
from tasks.clsd.measure import PairOutcome, directions, inner_products, judge, pairs

__all__ = ["ClsdResult", "ClsdScore", "run_clsd"]


@dataclass(frozen=True, slots=True)
class ClsdScore:
    """One encoder on one data set, in one mode and direction.

    ``encoder_facts`` are distinct texts, truncated ones and the encoder's own description.
    """

    encoder: str
    dataset: str
    mode: Mode
    direction: str
    outcomes: list[PairOutcome]
    encoder_facts: dict[str, Any]

    @property
    def name(self) -> str:
        """A readable name of the whole."""
        return f"{self.encoder} {self.dataset} {self.mode} {self.direction}"


@dataclass(frozen=True, slots=True)
class ClsdResult:
    """All scores of a study, its tables and its folder.

    ``encoded_shards`` is how many shards of sentences this run had to encode.
    """

    folder: Path
    scores: list[ClsdScore]
    tables: list[Table]
    encoded_shards: int

    @property
    def notes(self) -> list[str]:
        """What a reader of the tables has to know."""
        described = ((score.encoder, score.encoder_facts["encoder"]) for score in self.scores)
        return precision_notes(described)


def run_clsd(config: ClsdConfig) -> ClsdResult:
    """Measure how often each encoder ranks the true translation above all of its distractors."""
    from tasks.clsd.report import write_report

    data = read_datasets(config)
    study = _Study(config, data)
    study.experiment.open()
    with Progress(config.name) as progress, ExitStack() as stack:
        scores = list(study.scores(progress, stack))
    tables = write_report(study.experiment, config, data, scores, study.seconds)
    return ClsdResult(study.experiment.folder, scores, tables, study.encoded_shards)


def _inputs(config: ClsdConfig) -> dict[str, str]:
    inputs = {}
    for dataset in config.datasets:
        inputs[dataset.name] = sha256_of(resolve(dataset.path))
        if dataset.pivot is not None and "pivot" in config.modes:
            inputs[f"{dataset.name}.pivot"] = sha256_of(resolve(dataset.pivot))
    return inputs


class _Study:
    """The state of one run: what it reads, and what it has done so far."""

    def __init__(self, config: ClsdConfig, data: list[ClsdData]) -> None:
        self._config, self._data = config, data
        self._ray: AbstractContextManager[Any] | None = None
        self.encoded_shards = 0
        self.seconds: dict[str, float] = {}
        output = Path(config.output).absolute()
        self.experiment = Experiment(config.name, config, _inputs(config), output)

    def scores(self, progress: Progress, stack: ExitStack) -> Iterator[ClsdScore]:
        """Score by score; Ray is started at the first shard to encode and kept in ``stack``."""
        for encoder in self._config.encoders:
            settings = self._chosen(encoder)
            for mode in self._config.modes:
                for dataset in self._data:
                    vectors = self._vectors(encoder, settings, mode, dataset, progress, stack)
                    yield from self._judged(encoder, mode, dataset, vectors)

    def _chosen(self, encoder: ClsdEncoder) -> EncoderSettings:
        """Device, precision and batch size: chosen once for this experiment, then kept."""
        from polyray.models.dense import resolved

        chosen = resolved(encoder.encoder).model_dump(include={"device", "precision", "batch_size"})
        kept = self.experiment.keep(f"{encoder.name}.encoder", chosen)
        return encoder.encoder.model_copy(update=kept)

    def _vectors(
        self,
        encoder: ClsdEncoder,
        settings: EncoderSettings,
        mode: Mode,
        dataset: ClsdData,
        progress: Progress,
        stack: ExitStack,
    ) -> SentenceVectors:
        from polyray.cluster import started

        workers = self._config.workers
        start = time.perf_counter()

        def report(done: int, total: int) -> None:
            if done < total and self._ray is None:
                self._ray = started(address=workers.address)
                stack.enter_context(self._ray)
            progress.update(f"{encoder.name}, {dataset.name} {mode}: shards", done, total)

        vectors = encode_sentences(
            dataset.file(mode).texts,
            settings,
            self.experiment.indexes,
            prefix="clsd",
            actors=workers.actors,
            cpus=workers.cpus,
            address=workers.address,
            progress=report,
        )
        self.encoded_shards += vectors.encoded_shards
        if vectors.encoded_shards:
            name = f"{encoder.name}.{dataset.name}.{mode}"
            self.seconds[name] = round(time.perf_counter() - start, 3)
        return vectors

    @staticmethod
    def _judged(
        encoder: ClsdEncoder, mode: Mode, dataset: ClsdData, vectors: SentenceVectors
    ) -> Iterator[ClsdScore]:
        file = dataset.file(mode)
        score = inner_products(file.texts, vectors.vectors)
        for direction in directions(file):
            outcomes = [judge(pair, score) for pair in pairs(file, direction)]
            yield ClsdScore(
                encoder.name, dataset.name, mode, str(direction), outcomes, vectors.facts
            )
