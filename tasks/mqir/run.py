"""The mixed-query study from config to results, resumable at every file it writes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyray.collections.qrels import read_qrels
from polyray.collections.query_sources import place
from polyray.collections.store import DocumentStore
from polyray.evaluation.measures import Evaluation, evaluate, parse_measures
from polyray.evaluation.tables import Table
from polyray.models.device import precision_notes
from polyray.progress import Progress
from polyray.records import Qrel, Query
from polyray.retrieve.build import Built
from polyray.retrieve.kinds import DenseRetriever, LateRetriever, fuse
from polyray.retrieve.settings import FusionSystem, System
from polyray.runs import Run
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import Condition, QuerySets, conditions, read_queries
from tasks.mqir.systems import Systems

__all__ = ["MqirResult", "Score", "run_mqir"]


@dataclass(frozen=True, slots=True)
class Score:
    """One system under one condition."""

    system: str
    condition: Condition
    evaluation: Evaluation
    described: dict[str, Any]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MqirResult:
    """All scores of a study, its tables and its folder."""

    folder: Path
    scores: list[Score]
    tables: list[Table]
    queries: dict[str, Any]
    collections: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What a reader of the tables has to know: what was skipped, empty, missing or cut."""
        found = []
        for code, facts in self.collections.items():
            if facts["skipped_empty"]:
                some = ", ".join(facts["skipped_empty_ids"][:10])
                found.append(f"{code} documents: {facts['skipped_empty']} empty, skipped: {some}")
        for kind, what in (("empty_queries", "empty"), ("missing_topics", "missing")):
            for name, ids in self.queries[kind].items():
                found.append(f"{name} queries: {len(ids)} {what}: {', '.join(ids[:10])}")
        for score in self.scores:
            where = f"{score.system}, {score.condition.name}"
            for kind, what in (("queries", "queries"), ("index", "passages")):
                if count := score.facts.get(f"{kind}.truncated"):
                    found.append(f"{where}: {count} {what} longer than the model reads, cut")
        return found + precision_notes((score.system, score.described) for score in self.scores)


def run_mqir(config: MqirConfig) -> MqirResult:
    """Search with every query variant, and score MonoIR, CLIR and MQIR for every system."""
    from tasks.mqir.report import write_report

    study = _Study(config)
    study.experiment.open()
    with Progress(config.name) as progress:
        scores = list(study.scores(progress))
    return write_report(
        study.experiment,
        config,
        scores,
        queries=study.queries.facts,
        collections=study.collections,
        seconds=study.seconds,
    )


class _Study:
    """The state of one run: inputs read once, indexes opened one language at a time."""

    def __init__(self, config: MqirConfig) -> None:
        self.config = config
        self.conditions = conditions(config)
        self.queries: QuerySets = read_queries(config)
        self.collections: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self._measures = parse_measures(config.measures)
        self._systems = Systems(config, self.queries)
        self.experiment = self._systems.experiment

    def scores(self, progress: Progress) -> Iterator[Score]:
        """Score by score, documents' language by documents' language."""
        for code in self._systems.codes:
            yield from self._language(code, progress)

    def _language(self, code: str, progress: Progress) -> Iterator[Score]:
        store = self._store(code)
        qrels = read_qrels(place(self.config.qrels.path, code))
        here = [condition for condition in self.conditions if condition.documents == code]
        runs: dict[str, dict[str, Run]] = {}
        for system in self.config.systems:
            start = time.perf_counter()
            built = None
            if not isinstance(system, FusionSystem):
                built = self._systems.build(system, store, code, progress.update)
            runs[system.name] = {}
            for number, condition in enumerate(here, start=1):
                run, facts = self._run(system, condition, built, runs)
                runs[system.name][condition.name] = run
                yield self._score(system, condition, run, qrels, built, facts)
                progress.update(f"{code} documents, {system.name}: queries", number, len(here))
            self.seconds[f"{code}.{system.name}"] = round(time.perf_counter() - start, 3)

    def _store(self, code: str) -> DocumentStore:
        store = self._systems.store(code)
        self.collections[code] = {
            "documents": store.documents,
            "skipped_empty": store.skipped_empty,
            "skipped_empty_ids": store.manifest["skipped_empty_ids"],
        }
        return store

    def _run(
        self,
        system: System,
        condition: Condition,
        built: Built | None,
        runs: dict[str, dict[str, Run]],
    ) -> tuple[Run, dict[str, Any]]:
        """The ranking of a condition, read from its file where an earlier start wrote it."""
        queries = self.queries.of(condition)
        facts: dict[str, Any] = {"queries": len(queries)}
        if built is not None and isinstance(built.retriever, DenseRetriever | LateRetriever):
            facts["queries.truncated"] = built.retriever.truncated(queries)
        path = self.experiment.folder / "runs" / f"{system.name}.{condition.name}.trec"
        if path.is_file():
            stored = Run.read(str(path)) if path.stat().st_size else Run({})
            return _for_all(queries, stored), facts
        if isinstance(system, FusionSystem):
            parts = [runs[name][condition.name] for name in system.of]
            run = fuse(parts, system.k, self.config.hits, self.config.hits)
        else:
            if built is None:
                raise RuntimeError("a system that is no fusion has an index")
            run = built.retriever.retrieve(queries, self.config.hits)
        run = _for_all(queries, run)
        run.tag = system.name
        run.write(str(path))
        return run, facts

    def _score(
        self,
        system: System,
        condition: Condition,
        run: Run,
        qrels: Sequence[Qrel],
        built: Built | None,
        facts: dict[str, Any],
    ) -> Score:
        if built is None:
            described = {
                "kind": "fusion",
                "fusion.of": "+".join(getattr(system, "of", ())),
                "fusion.k": getattr(system, "k", None),
                "fusion.depth": self.config.hits,
            }
        else:
            described, facts = built.retriever.describe(), {**built.facts, **facts}
        evaluation = evaluate(run, qrels, self._measures)
        return Score(system.name, condition, evaluation, described, facts)


def _for_all(queries: Sequence[Query], run: Run) -> Run:
    """The same run with a list for every query, in the queries' order.

    A run file cannot show an empty list; a run that was read is made equal to the one written.
    """
    return Run({query.query_id: run.get(query.query_id, []) for query in queries}, run.tag)
