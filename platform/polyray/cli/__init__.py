"""The command ``polyray``: small tools that need no cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["main", "run_guarded"]

_COMMANDS = {
    "check": "Check files; exit 2 with every bad line.",
    "cmi": "Code-Mixing Index of queries whose tokens are tagged.",
    "evaluate": "Score a run against judgments.",
    "explain": "Show which tokens of a passage the tokens of a query met.",
    "llm": "Serve a small real LLM, to try the jobs that ask one.",
    "split": "Cut documents into passages.",
    "switch": "Switch words of queries into another language by a lexicon.",
}


def run_guarded(work: Callable[[], Any]) -> int:
    """Run ``work``; a user's error prints its message on stderr and gives exit status 2."""
    from polyray.errors import PolyrayError

    try:
        work()
    except PolyrayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except BrokenPipeError:
        return 0
    return 0


def main() -> None:
    """Entry point of the command."""
    sys.exit(run_guarded(_app))


def _app() -> None:
    import typer

    import polyray

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        help="Tools for experiments on bilingual retrieval. Jobs: python -m jobs.NAME CONFIG.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for name, text in _COMMANDS.items():
        app.command(name, help=text)(_command(name))

    @app.callback(invoke_without_command=True)
    def version(show: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
        if show:
            typer.echo(polyray.__version__)
            raise typer.Exit

    app()


def _command(name: str) -> Callable[..., Any]:
    """The command's function; its module is read only where the command line names it."""
    if name not in sys.argv:
        return lambda: None
    from importlib import import_module

    command: Callable[..., Any] = getattr(import_module(f"polyray.cli.{name}"), name)
    return command
