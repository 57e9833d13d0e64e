"""``--dry-run`` for jobs that pay for answers: what would be asked, and what it would cost."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from jobs._common import Config, Outcome, run, show
from polyray.cli.arguments import add_config_arguments
from polyray.config import load_config
from polyray.evaluation.tables import Table

__all__ = ["job_with_dry_run"]


def job_with_dry_run(
    model: type[Config],
    work: Callable[[Config], Outcome],
    estimate: Callable[[Config], Table],
    arguments: Sequence[str] | None = None,
) -> None:
    """The job's command line; with ``--dry-run`` only the estimate's table is printed."""
    parser = argparse.ArgumentParser(description=work.__doc__)
    add_config_arguments(parser)
    told = "print requests, tokens and cost, and send nothing"
    parser.add_argument("--dry-run", action="store_true", help=told)
    given = parser.parse_args(arguments)

    def job() -> None:
        config = load_config(given.config, given.overrides, model)
        if given.dry_run:
            from rich.console import Console

            Console().print(estimate(config).rich())
        else:
            show(work(config))

    run(job)
