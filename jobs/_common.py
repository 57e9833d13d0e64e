"""What every job's command line does: config, overrides, errors, tables at the end."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from polyray.cli import run_guarded
from polyray.cli.arguments import add_config_arguments
from polyray.config import Settings, load_config

__all__ = ["Outcome", "job_main", "run", "show"]

Config = TypeVar("Config", bound=Settings)


class Outcome(Protocol):
    """What a job gives back: tables to print, and the folder where everything lies."""

    @property
    def tables(self) -> Sequence[Any]:
        """:class:`~polyray.evaluation.tables.Table` objects."""
        ...

    @property
    def folder(self) -> Path:
        """The experiment's folder."""
        ...


def job_main(
    model: type[Config],
    work: Callable[[Config], Outcome],
    arguments: Sequence[str] | None = None,
) -> None:
    """``python -m jobs.NAME CONFIG.yaml --set a.b=value``: run, print the tables, exit."""
    parser = argparse.ArgumentParser(description=work.__doc__)
    add_config_arguments(parser)
    given = parser.parse_args(arguments)
    run(lambda: show(work(load_config(given.config, given.overrides, model))))


def run(job: Callable[[], None]) -> None:
    """Do the job and exit: status 0, 2 after a user's error, 143 after SIGTERM."""
    signal.signal(signal.SIGTERM, _terminated)
    status = run_guarded(job)
    gc.freeze()  # the interpreter, on its way out, else looks through all that torch has made
    sys.exit(status)


def _terminated(number: int, _frame: Any) -> None:
    """End as after an exception, so that runs are closed and child processes ended."""
    raise SystemExit(128 + number)


def show(outcome: Outcome) -> None:
    """Print an outcome's tables and where the rest lies; a plan leaves nothing."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=120)
    for table in outcome.tables:
        console.print(table.rich())
    for note in getattr(outcome, "notes", []):
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if outcome.folder.is_dir():
        console.print(f"results: {outcome.folder}", highlight=False, soft_wrap=True)
