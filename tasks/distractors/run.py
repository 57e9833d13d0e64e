"""From parallel sentences to a data set with distractors; a language that is whole is kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import atomic_path, read_json, write_json
from polyray.llm.settings import answers_file
from polyray.progress import Progress
from tasks.distractors.config import DistractorsConfig, LlmGenerator
from tasks.distractors.data import Made, Pair, input_digests, read_pairs, write_clsd
from tasks.distractors.generate import Part, by_llm, by_rules, judged, llm_items

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
    with Progress(config.name) as progress:
        for code in config.wanted:
            folder = experiment.folder / "parts"
            stored = _stored(folder, code)
            if stored is None:
                stored = _part(config, pairs, code, progress)
                if _is_final(stored):
                    _store(folder, code, stored)
                new.append(code)
            parts[code] = stored
    made = [one for part in parts.values() for one in part.made]
    write_clsd(experiment.folder / "distractors.csv", config, pairs, made)
    write_made(experiment.folder / "distractors.parquet", made)
    tables, notes = write_report(experiment, config, pairs, parts)
    return DistractorsResult(experiment.folder, tables, parts, new, notes)


def _part(config: DistractorsConfig, pairs: list[Pair], code: str, progress: Progress) -> Part:
    store = answers_file(config.output, config.answers)
    if config.generator.kind == "llm" or config.judge is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(config.generator, LlmGenerator):
        return by_llm(config, config.generator, pairs, code, store, progress)
    part = by_rules(config, config.generator, pairs, code, progress)
    return judged(config, part, store, progress)


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
    write_json(folder / f"{code}.json", {"rejected": dict(part.rejected), "made": len(part.made)})


def _stored(folder: Path, code: str) -> Part | None:
    import pyarrow.parquet as pq

    if not (folder / f"{code}.json").is_file():
        return None
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{code}.parquet").to_pylist()
    facts = read_json(folder / f"{code}.json")
    if facts["made"] != len(rows):
        return None
    return Part([Made(**row) for row in rows], Counter(facts["rejected"]))


def estimate_distractors(config: DistractorsConfig) -> Table:
    """What an LLM would be asked in the first round, and what it would cost; nothing is sent."""
    from polyray.llm.engine import estimate

    rows: list[list[Any]] = []
    generator = config.generator
    if isinstance(generator, LlmGenerator):
        pairs = read_pairs(config)
        for code in config.wanted:
            items = llm_items(config, generator, pairs, code, 0)
            found = estimate(items, generator.engine, answers_file(config.output, config.answers))
            cells = (found.requests, found.stored, found.input_tokens, found.output_tokens)
            rows.append([f"{code}, round 1", *cells, found.usd, found.usd_at_most])
    columns = ["asked for", "requests", "stored", "input tokens", "output tokens"]
    columns += ["US$", "US$ at most"]
    caption = f"{config.name}: what would be asked first; nothing was sent"
    return Table(columns, rows, caption, decimals=2)
