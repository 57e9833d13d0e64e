"""From parallel sentences to a data set with distractors; a language that is whole is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import atomic_path, read_json, write_json
from polyray.llm.settings import LlmSettings, answers_file
from polyray.llm.store import Usage
from polyray.llm.work import LlmWork, estimate_table, llm_work, usage_facts
from polyray.progress import Progress
from tasks.distractors.config import DistractorsConfig, LlmGenerator
from tasks.distractors.data import Made, Pair, input_digests, read_pairs, write_clsd
from tasks.distractors.generate import (
    Part,
    by_llm,
    by_rules,
    judge_items,
    judged,
    llm_items,
    parse_items,
    parse_judgment,
    stand_ins,
)

if TYPE_CHECKING:
    from polyray.llm.outcome import Parse
    from polyray.llm.request import Item

__all__ = ["DistractorsResult", "estimate_distractors", "run_distractors"]


@dataclass(frozen=True, slots=True)
class DistractorsResult:
    """The folder with ``distractors.csv`` and ``distractors.parquet``, and the tables to show.

    ``made_languages`` are those that this start had to make.
    """

    folder: Path
    tables: list[Table]
    parts: dict[str, Part]
    made_languages: list[str]
    notes: list[str]


def run_distractors(config: DistractorsConfig) -> DistractorsResult:
    """Make distractors, check them, and write the data set with a report of it."""
    from tasks.distractors.report import write_report

    pairs = read_pairs(config)
    output = Path(config.output).absolute()
    experiment = Experiment(config.name, config, input_digests(config), output)
    experiment.open()
    parts: dict[str, Part] = {}
    new: list[str] = []
    store = answers_file(config.output, config.answers)
    told = (config.engines, config.name, experiment.hash, config.tracking)
    with Progress(config.name) as progress, llm_work(store, progress, *told) as work:
        for code in config.wanted:
            folder = experiment.folder / "parts"
            stored = _stored(folder, code)
            if stored is None:
                stored = _part(config, pairs, code, work)
                if _is_final(stored):
                    _store(folder, code, stored)
                new.append(code)
            parts[code] = stored
    made = [one for part in parts.values() for one in part.made]
    write_clsd(experiment.folder / "distractors.csv", config, pairs, made)
    write_made(experiment.folder / "distractors.parquet", made)
    tables, notes = write_report(experiment, config, pairs, parts)
    return DistractorsResult(experiment.folder, tables, parts, new, notes + work.notes)


def _part(config: DistractorsConfig, pairs: list[Pair], code: str, work: LlmWork) -> Part:
    before = dict(work.used)
    if isinstance(config.generator, LlmGenerator):
        part = by_llm(config, config.generator, pairs, code, work)
    else:
        part = judged(config, by_rules(config, config.generator, pairs, code, work.progress), work)
    own = {name: used for name, used in work.used.items() if name not in before}
    return part._replace(used=own)


def _is_final(part: Part) -> bool:
    """Whether another start could not change it: no answer of an LLM is outstanding."""
    return not any(
        reason.startswith("answer: ") or reason == "unjudged" for reason in part.rejected
    )


def write_made(path: Path, made: list[Made]) -> None:
    """Write distractors with their provenance as Parquet, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool | None": pa.bool_(),
    }
    schema = pa.schema([(field.name, kinds[str(field.type)]) for field in fields(Made)])
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_pylist([asdict(one) for one in made], schema), temporary)


def _store(folder: Path, code: str, part: Part) -> None:
    write_made(folder / f"{code}.parquet", part.made)
    facts = {"rejected": dict(part.rejected), "made": len(part.made)}
    write_json(folder / f"{code}.json", {**facts, "llm": usage_facts(part.used)})


def _stored(folder: Path, code: str) -> Part | None:
    import pyarrow.parquet as pq

    if not (folder / f"{code}.json").is_file():
        return None
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{code}.parquet").to_pylist()
    facts = read_json(folder / f"{code}.json")
    if facts["made"] != len(rows):
        return None
    used = {name: Usage(**own) for name, own in facts.get("llm", {}).items()}
    return Part([Made(**row) for row in rows], Counter(facts["rejected"]), used=used)


def estimate_distractors(config: DistractorsConfig) -> Table:
    """What an LLM would be asked, and what it would cost at most; nothing is sent.

    The first round is exact. Later rounds and the judge are bounds: every sentence falls short
    each time, and every distractor is as long as its original.
    """
    pairs = read_pairs(config)
    input_digests(config)
    generator = config.generator
    asked: list[tuple[str, Sequence[Item], LlmSettings, Parse]] = []
    for code in config.wanted:
        rounds = 1
        if isinstance(generator, LlmGenerator):
            rounds = generator.rounds
            for turn in range(rounds):
                items = llm_items(config, generator, pairs, code, turn)
                name = f"{code}, round {turn + 1}" + (", at most" if turn else "")
                asked.append((name, items, generator.engine, parse_items))
        judge = config.judge
        if judge is not None and judge.engine is not None:
            made = [one for pair in pairs for one in stand_ins(pair, code, config.n * rounds)]
            items = judge_items(judge, made)
            asked.append((f"{code}, judge, at most", items, judge.engine, parse_judgment))
    return estimate_table(config.name, asked, answers_file(config.output, config.answers))
