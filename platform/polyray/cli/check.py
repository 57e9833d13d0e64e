"""``polyray check``: are these files what they should be?"""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["check"]


def check(
    docs: Annotated[
        str | None, typer.Option(help="Documents: a file, folder, glob or irds:ID.")
    ] = None,
    queries: Annotated[str | None, typer.Option(help="Topics or queries.")] = None,
    qrels: Annotated[str | None, typer.Option(help="Relevance judgments.")] = None,
    run: Annotated[str | None, typer.Option(help="Run, TREC form.")] = None,
    lexicon: Annotated[str | None, typer.Option(help="Bilingual lexicon.")] = None,
) -> None:
    """Read files strictly and count what is in them.

    Ends with status 0, or with 2 after naming every problem as file:line: problem.
    """
    from rich.console import Console
    from rich.table import Table

    from polyray.collections.check import check_together
    from polyray.errors import ConfigError, InputError
    from polyray.files import resolve

    given = {"docs": docs, "queries": queries, "qrels": qrels, "run": run, "lexicon": lexicon}
    files = {
        name: path if path.startswith("irds:") else str(resolve(path))
        for name, path in given.items()
        if path is not None
    }
    if not files:
        raise ConfigError("nothing to check: give --docs, --queries, --qrels, --run or --lexicon")
    problems, counts = check_together(**files)
    if problems:
        raise InputError(problems)
    table = Table(title="no problems found")
    table.add_column("")
    table.add_column("count", justify="right")
    for name, number in counts.items():
        table.add_row(name, f"{number:,}")
    Console().print(table)
