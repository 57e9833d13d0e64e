"""What the questions of one job share: the store, the progress bar, traces, and what they took."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Cell, Table
from polyray.llm.engine import Asked, ask, estimate
from polyray.llm.prices import Estimate
from polyray.llm.store import Usage

if TYPE_CHECKING:
    from polyray.llm.outcome import Parse
    from polyray.llm.request import Item
    from polyray.llm.settings import LlmSettings
    from polyray.progress import Progress
    from polyray.tracking import Tracker

__all__ = [
    "LlmWork",
    "estimate_table",
    "keys_on_the_dashboard",
    "llm_work",
    "usage_facts",
    "usage_metrics",
    "usage_table",
]

_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""What ``ray job submit`` tells the job of itself."""


@dataclass
class LlmWork:
    """Asks for a job; ``used`` is what each part of it has taken in all runs.

    ``notes`` names texts that look meant for the model and not to be worked on.
    """

    store: Path
    progress: Progress
    tracker: Tracker | None = None
    used: dict[str, Usage] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ask(self, name: str, items: Sequence[Item], settings: LlmSettings, parse: Parse) -> Asked:
        """:func:`polyray.llm.engine.ask`; ``name`` stands in the progress bar and the table."""
        self.store.parent.mkdir(parents=True, exist_ok=True)
        asked = ask(
            items,
            settings,
            self.store,
            parse,
            lambda report: self.progress.update(name, report.done, report.total, report.line()),
            self.tracker,
        )
        self.used[name] = self.used.get(name, Usage()) + asked.report.usage
        suspects = [item for item in items if item.suspects]
        if suspects:
            where = suspects[0].id.replace("\x1f", " ")
            self.notes.append(
                f"{name}: {len(suspects)} texts look meant for the model; the first is {where}: "
                f"{suspects[0].suspects[0]}"
            )
        return asked


@contextmanager
def llm_work(
    store: Path,
    progress: Progress,
    engines: Sequence[LlmSettings],
    name: str,
    config_hash: str,
    tracking: str | None,
) -> Iterator[LlmWork]:
    """Opens a run in MLflow for the calls where one of the ``engines`` asks for traces."""
    notes = keys_on_the_dashboard(engines)
    if not any(engine.trace for engine in engines):
        yield LlmWork(store, progress, notes=notes)
        return
    from polyray.tracking import CONFIG_HASH, Tracker

    tags = {CONFIG_HASH: config_hash, "polyray.task": "llm calls"}
    with Tracker(name, f"{name}-{config_hash} LLM calls", tags, tracking) as tracker:
        yield LlmWork(store, progress, tracker, notes=notes)


def keys_on_the_dashboard(engines: Sequence[LlmSettings]) -> list[str]:
    """A note for each key that was submitted in ``env_vars``, which Ray's dashboard shows."""
    try:
        config = json.loads(os.environ.get(_JOB_CONFIG, ""))
        submitted = set(config["runtime_env"]["env_vars"])
    except (ValueError, KeyError, TypeError):
        return []
    named = {getattr(engine.provider, "api_key_env", None) for engine in engines}
    return [
        f"{name} came by env_vars of the submitted job, so that Ray's dashboard shows the key: set "
        "it where Ray is started, or name a file as provider.api_key_file"
        for name in sorted(submitted & named)
    ]


def usage_facts(used: Mapping[str, Usage]) -> dict[str, Any]:
    """Calls, answers, tokens and dollars by what was asked for, as ``results.json`` has them."""
    return {name: asdict(own) for name, own in used.items()}


def usage_metrics(used: Mapping[str, Usage]) -> dict[str, float]:
    """The sums, as MLflow has them: ``llm/calls``, ``llm/usd``, ..."""
    total = sum(used.values(), Usage())
    return {f"llm/{key}": float(value) for key, value in asdict(total).items()} if used else {}


def usage_table(caption: str, used: Mapping[str, Usage]) -> Table:
    """One row for each thing that was asked for, and one for all."""
    rows: list[list[Cell]] = [[name, *asdict(own).values()] for name, own in used.items()]
    if len(rows) > 1:
        rows.append(["all", *asdict(sum(used.values(), Usage())).values()])
    columns = ["asked for", "calls", "answers", "input tokens", "output tokens", "US$"]
    columns.append("US$ at most, unanswered")
    return Table(columns, rows, f"{caption}: LLM calls, in all starts", decimals=4)


def estimate_table(
    caption: str, asked: Sequence[tuple[str, Sequence[Item], LlmSettings, Parse]], store: Path
) -> Table:
    """What would be asked and what it would cost; nothing is sent. ``asked``: as for ``ask``.

    Answers of the store that are of use are taken off. ``US$ at most`` is what a budget counts
    with, for the first sample of each.
    """
    rows: list[list[Cell]] = []
    for name, items, settings, parse in asked:
        found: Estimate = estimate(items, settings, store, parse)
        cells = (found.requests, found.stored, found.input_tokens, found.output_tokens)
        rows.append([name, *cells, found.usd, found.usd_at_most])
    columns = ["asked for", "requests", "stored", "input tokens", "output tokens"]
    columns += ["US$", "US$ at most"]
    again = max((settings.retries.resamples for _, _, settings, _ in asked), default=0)
    more = f"; {again} more each where an answer is of no use" if again else ""
    return Table(columns, rows, f"{caption}: what would be asked{more}; nothing was sent", 2)
