"""``--dry-run`` for jobs that pay for answers: what would be asked, and what it would cost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from jobs._common import Config, Outcome, job_main, run
from polyray.evaluation.tables import Table

__all__ = ["job_with_dry_run"]

FLAG = "--dry-run"


def job_with_dry_run(
    model: type[Config],
    work: Callable[[Config], Outcome],
    estimate: Callable[[Config], Table],
) -> None:
    """The job's command line; with ``--dry-run`` only the estimate's table is printed."""
    given = sys.argv[1:]
    if FLAG in given and not {"-h", "--help"} & set(given):
        rest = [argument for argument in given if argument != FLAG]
        run(lambda: _show_estimate(model, estimate, rest))
    job_main(model, work, given)


def _show_estimate(
    model: type[Config], estimate: Callable[[Config], Table], arguments: Sequence[str]
) -> None:
    import argparse

    from rich.console import Console

    from polyray.cli.arguments import add_config_arguments
    from polyray.config import load_config

    parser = argparse.ArgumentParser(description=estimate.__doc__)
    add_config_arguments(parser)
    given = parser.parse_args(arguments)
    Console().print(estimate(load_config(given.config, given.overrides, model)).rich())
