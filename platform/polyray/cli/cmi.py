"""``polyray cmi``: the Code-Mixing Index of tagged queries."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["cmi"]


def cmi(
    tags: Annotated[str, typer.Option(help="TSV with the header: id, tags; one tag a token.")],
    native: Annotated[str, typer.Option(help="The native language, as the tags write it.")] = "",
    json: Annotated[str, typer.Option(help="Write all figures to this JSON file.")] = "",
) -> None:
    """How much queries mix languages, from 0 to 100, by both definitions.

    cmi_max compares with the most frequent language of each query, cmi_native with the native
    one, which has to be given.
    """
    from rich.console import Console

    from polyray.evaluation.tables import Table
    from polyray.files import resolve, write_json
    from polyray.text.mixing import check_native, mixing_report, read_tags

    check_native(native or None)
    found = read_tags(resolve(tags))
    report = mixing_report(found, native or None)
    if json:
        write_json(resolve(json), report)
    counts = report["counts"]
    means = [
        ["all", counts["queries"], *report["mean_all"].values()],
        ["mixed", counts["mixed"], *report["mean_mixed"].values()],
    ]
    share = f"{100 * (report['share_mixed'] or 0.0):.1f}% mixed"
    caption = f"Code-Mixing Index, 0 to 100, mean; {share}"
    table = Table(["queries", "count", "cmi_max", "cmi_native"], means, caption, decimals=2)
    console = Console()
    console.print(table.rich())
    if native and not any(native in own for own in found.values()):
        console.print(f"no token is tagged {native}: is that the native language?")
