"""The two arguments that whatever reads a config has on its command line."""

from __future__ import annotations

import argparse

__all__ = ["add_config_arguments"]


def add_config_arguments(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """``CONFIG`` (optional where there is a ``default``) and ``--set a.b=value``, repeatable.

    They arrive as ``config`` and ``overrides``.
    """
    if default is None:
        parser.add_argument("config", help="a YAML file")
    else:
        parser.add_argument("config", nargs="?", default=default, help="a YAML file")
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="a.b=value",
        action="append",
        default=[],
        help="change one setting; may be given several times",
    )
