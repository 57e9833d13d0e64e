"""What starting costs: ``import polyray`` on top of bare Python, and ``polyray --help``."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks._measure import Pairs, Row, interleaved, row, seconds

ROUNDS = 15
IMPORT_LIMIT, HELP_LIMIT = 0.15, 0.5
"""Seconds: the first beyond bare Python, the second in all."""

_HELP = "import sys; from polyray.cli import main; sys.argv[1:] = ['--help']; main()"


def _python(code: str) -> float:
    root = Path(__file__).resolve().parents[1]
    paths = [str(root / "platform"), str(root), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", code]
    return seconds(
        lambda: subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    )


def _row(stage: str, pairs: Pairs, limit: float, *, beyond: bool) -> Row:
    """A row whose target is a number of seconds, not a ratio."""
    made = row(stage, pairs, None, other="bare Python", limit="seconds, at most")
    spent = made["ours"] - (made["other"] if beyond else 0.0)
    made["settings"] |= {"compared": round(spent, 3), "beyond_bare_python": beyond}
    return made | {"target": limit, "met": spent <= limit}


def measure(quick: bool = False) -> list[Row]:
    """Wall-clock seconds of fresh processes against ``python -c pass``, medians."""
    rounds = 2 if quick else ROUNDS
    imported, helped = (
        interleaved(partial(_python, code), partial(_python, "pass"), rounds)
        for code in ("import polyray", _HELP)
    )
    return [
        _row("import polyray", imported, IMPORT_LIMIT, beyond=True),
        _row("polyray --help", helped, HELP_LIMIT, beyond=False),
    ]
