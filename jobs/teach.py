"""Teacher scores for training: ``python -m jobs.teach configs/train/teach_xquad.yaml``.

Hard negatives are mined by BM25 or dense retrieval, or candidates are read from a file; the
teacher scores every query with its candidates; ``examples.jsonl`` is what students train on.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from jobs._common import job_main
from polyray.config import Settings
from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import atomic_path, resolve, write_json
from polyray.languages import check_codes
from polyray.models.device import precision_notes
from polyray.progress import Progress
from polyray.retrieve.settings import Workers
from polyray.training.examples import Examples, ExampleSource
from polyray.training.mining import Mined, Mining, mine
from polyray.training.recipes import Recipe
from polyray.training.teacher import BiEncoderTeacher, Teacher, resolved_teacher
from polyray.training.teacher_report import TeacherReport
from polyray.training.teacher_shards import teach

NAME = "examples.jsonl"


class TeachConfig(Settings):
    """Which texts, which candidates, which teacher.

    ``queries`` and ``passages`` are TSV or JSON lines in ``language``. Candidates are mined with
    ``qrels``, or read from ``candidates``: ``[qid, pid, ...]`` or scored lines, ids alone used.
    """

    kind: Literal["teach"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    language: str = "en"
    queries: str
    passages: str
    qrels: str | None = None
    mining: Mining | None = None
    candidates: str | None = None
    teacher: Teacher
    workers: Workers = Workers()
    output: str = "runs"
    tracking: str | None = None

    @field_validator("language")
    @classmethod
    def _known(cls, code: str) -> str:
        check_codes([code])
        return code

    @model_validator(mode="after")
    def _one_way(self) -> TeachConfig:
        if (self.mining is None) == (self.candidates is None):
            raise ValueError("give either mining or candidates")
        if (self.mining is None) != (self.qrels is None):
            raise ValueError("qrels and mining belong together")
        return self


@dataclass(frozen=True, slots=True)
class Taught:
    """The tables that the job prints, the experiment's folder, and what was left out."""

    tables: list[Table]
    folder: Path
    notes: list[str]


def run_teach(config: TeachConfig) -> Taught:
    """Mine candidates, score them with the teacher, report how easy they are."""
    from polyray.collections.store import fingerprint

    named = ("queries", "passages", "qrels", "candidates")
    paths = {name: getattr(config, name) for name in named if getattr(config, name)}
    inputs = {name: fingerprint(path) for name, path in paths.items()}
    experiment = Experiment(config.name, config, inputs, Path(config.output).absolute())
    experiment.open()
    facts: dict[str, Any] = {}
    notes: list[str] = []
    start = time.perf_counter()
    with Progress(config.name) as progress:
        if config.candidates is None:
            file = experiment.folder / "candidates.jsonl"
            mined = _mine(config, experiment, inputs["passages"], file, progress)
            facts["mining"] = mined.facts()
            notes += _missing(mined)
        else:
            file = resolve(config.candidates)
        examples = _prepared(config, experiment, file, progress)
        notes += examples.report.notes()
        teacher = _teacher(config, experiment)
        scores = experiment.folder / NAME
        done = teach(examples, teacher, experiment.indexes, scores, config.workers, progress.update)
    report = TeacherReport(scores)
    facts |= {"teacher": report.facts(), "read": done}
    if cut := done["truncated"]:
        notes.append(f"teacher: {cut} of {done['texts']} texts longer than the model reads, cut")
    notes += precision_notes([("teacher", {"precision": teacher.precision})])
    facts["seconds"] = round(time.perf_counter() - start, 3)
    _publish(scores, experiment.output / config.name / NAME)
    table = report.table(config.name)
    table.write(experiment.folder / "tables", "teacher")
    write_json(experiment.folder / "results.json", facts)
    _track(config, experiment, teacher, facts)
    notes.append(f"examples: {experiment.output / config.name / NAME}")
    return Taught([table], experiment.folder, notes)


def _mine(
    config: TeachConfig, experiment: Experiment, identity: str, path: Path, progress: Progress
) -> Mined:
    """Candidates of all queries, as lines of a file."""
    from polyray.collections.documents import read_documents
    from polyray.collections.qrels import read_qrels
    from polyray.collections.topics import read_topics
    from polyray.retrieve.build import open_store
    from polyray.retrieve.builder import Builder

    settings = config.mining
    if settings is None:
        raise TypeError("no settings of mining")
    queries = [topic.query() for topic in read_topics(str(resolve(config.queries)))]
    positives: dict[str, list[str]] = {}
    for qrel in read_qrels(str(resolve(str(config.qrels)))):
        if qrel.grade >= settings.min_grade:
            positives.setdefault(qrel.query_id, []).append(qrel.doc_id)
    documents = read_documents(str(resolve(config.passages)))
    store = open_store(experiment.indexes, documents, identity, config.workers)
    builder = Builder(experiment, config.workers)
    asked = [query for query in queries if query.query_id in positives]
    runs = []
    for system in settings.systems:
        built = builder.build(system, store, config.language, identity, progress.update)
        runs.append(built.retriever.retrieve(asked, settings.last_rank))
        progress.update("systems mined", len(runs), len(settings.systems))
    return mine([query.query_id for query in queries], positives, runs, settings, path)


def _missing(mined: Mined) -> list[str]:
    kinds = {
        "without a positive": mined.without_positive,
        "without a negative": mined.without_negatives,
        "with fewer negatives than asked for": mined.fewer,
    }
    return [
        f"queries {what}: {len(ids)}, {', '.join(ids[:20])}" for what, ids in kinds.items() if ids
    ]


def _prepared(
    config: TeachConfig, experiment: Experiment, candidates: Path, progress: Progress
) -> Examples:
    """The candidates as lines whose texts are read by offset."""
    source = ExampleSource(
        examples=str(candidates),
        queries=config.queries,
        passages=config.passages,
        nway=2,
        choice="random" if config.candidates else "positive",
    )
    recipe = Recipe(
        kind="mono", query_languages=(config.language,), passage_language=config.language
    )
    return Examples.prepare(source, recipe, experiment.indexes, seed=0, progress=progress.update)


def _teacher(config: TeachConfig, experiment: Experiment) -> Any:
    """The teacher with device, precision and batch size, chosen once and kept."""
    from polyray.models.dense import resolved

    wanted = config.teacher
    found: Any
    if isinstance(wanted, BiEncoderTeacher):
        found = resolved(wanted.encoder)
    else:
        found = resolved_teacher(wanted)
    choices = found.model_dump(include={"device", "precision", "batch_size"})
    return wanted.model_copy(update=experiment.keep("teacher", choices))


def _publish(scores: Path, path: Path) -> None:
    """The newest scores under a name without a hash, for configs of training."""
    with atomic_path(path) as temporary:
        shutil.copyfile(scores, temporary)


def _track(
    config: TeachConfig, experiment: Experiment, teacher: Any, facts: dict[str, Any]
) -> None:
    from polyray.tracking import CONFIG_HASH, Tracker

    tags = {CONFIG_HASH: experiment.hash, "polyray.task": "teach"}
    run = f"{config.name}-{experiment.hash}"
    with Tracker(config.name, run, tags, config.tracking) as tracker:
        inputs = {f"inputs.{name}": value for name, value in experiment.inputs.items()}
        tracker.log_params({"config": experiment.text, **inputs})
        params = {f"teacher.{k}": v for k, v in teacher.model_dump().items() if v is not None}
        numbers = {f"teacher.{k}": float(v) for k, v in facts["teacher"].items() if v is not None}
        tracker.child("teacher", params, numbers, {"polyray.system": teacher.model})
        tracker.log_artifacts(experiment.folder)


if __name__ == "__main__":
    job_main(TeachConfig, run_teach)
