"""``python -m benchmarks``: one page of ratios, and the same as JSON."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks._measure import Row, threads
from benchmarks._stage import run_stage

STAGES = (
    *("startup", "evaluation", "search", "bm25", "encoding"),
    *("plaid", "late", "late_search", "late_quality", "train", "llm"),
)
RESULTS = Path(__file__).with_name("results.json")


def merged(path: Path, rows: list[Row]) -> list[Row]:
    """The rows that ``path`` already holds, those of the same stages replaced."""
    from polyray.files import read_json

    before: list[Row] = read_json(path) if path.is_file() else []
    measured = {row["stage"] for row in rows}
    return [row for row in before if row["stage"] not in measured] + rows


def _show(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"polyray against its peers, {threads()} threads, medians")
    table.add_column("stage")
    for heading in ("ours", "other", "ratio", "spread", "target", "met"):
        table.add_column(heading, justify="right")
    for row in rows:
        settings = row["settings"]
        limit = settings.get("limit")
        unit = "s" if settings["unit"] == "seconds" else settings["unit"]
        target = "" if row["target"] is None else f"{row['target']:g}"
        low, high = settings["spread"]
        table.add_row(
            row["stage"],
            f"{row['ours']:g} {unit}",
            f"{row['other']:g} {unit}",
            f"{row['ratio']:.2f}",
            f"{low:.2f}-{high:.2f}",
            f"≤ {target} s" if limit else target,
            {True: "yes", False: "NO", None: ""}[row["met"]],
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(
        "Ratios above 1: ours is faster. Spread: the lowest and highest ratio of a repeat."
    )
    for row in rows:
        console.print(f"  {row['stage']}: against {row['settings']['other']}", highlight=False)


def main(arguments: list[str] | None = None) -> int:
    """Measure; 0 when every stage ran, 1 when one broke. A missed target is no error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES, metavar="STAGE")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument(
        "--output",
        type=Path,
        help=f"JSON to write; rows of other stages in it stay (default: {RESULTS.name} here, "
        "nothing with --quick)",
    )
    given = parser.parse_args(arguments)
    output = given.output or (None if given.quick else RESULTS)
    rows: list[Row] = []
    broken = 0
    for name in given.only:
        sys.stderr.write(f"measuring {name} ...\n")
        # A process each: Java, Ray and the OpenMP of two libraries stay out of each other's way.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            try:
                measured = pool.submit(run_stage, name, given.quick).result()
            except Exception as error:
                sys.stderr.write(f"{name} did not run: {type(error).__name__}: {error}\n")
                broken += 1
                continue
        rows += measured
        if output is not None:
            from polyray.files import write_json

            write_json(output, merged(output, rows))
    _show(rows)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
