"""``polyray explain``: which token of a passage each token of a query met."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["explain"]


def explain(
    query: Annotated[list[str], typer.Option(help="A query; several stand side by side.")],
    passage: Annotated[str, typer.Option(help="The passage that they are compared with.")],
    out: Annotated[str, typer.Option(help="Heat map to write (.png); a page (.html) beside it.")],
    model: Annotated[
        str | None, typer.Option(help="A late-interaction checkpoint: hub id or folder.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Or an encoder to make an untrained one of.")
    ] = None,
    dim: Annotated[int, typer.Option(help="Dimensions of the made one's vectors.")] = 128,
    projection: Annotated[str, typer.Option(help="random or identity.")] = "random",
    masks: Annotated[bool, typer.Option(help="Show every [MASK] token, not their sum.")] = False,
) -> None:
    """Draw the similarities of all tokens, the best of each query token, and what each adds."""
    from rich.console import Console
    from rich.table import Table

    from polyray.config import validated
    from polyray.errors import ConfigError
    from polyray.evaluation.explanation import explain as explained
    from polyray.evaluation.heatmap import heat_maps
    from polyray.files import resolve
    from polyray.models.late import load_late
    from polyray.models.settings import LateSettings

    target = resolve(out)
    if target.suffix != ".png":
        raise ConfigError(f"{out}: the name of a heat map ends in .png")
    given = {"model": model, "backbone": backbone, "dim": dim, "projection": projection}
    encoder = load_late(validated(LateSettings, given))
    found = [explained(encoder, text, passage) for text in query]
    paths = heat_maps(target, found, query, masks=masks)
    console = Console()
    for explanation in found:
        table = Table(title=f"{explanation.query}: {explanation.score:.3f}")
        for name in ("query token", "passage token"):
            table.add_column(name)
        table.add_column("adds", justify="right")
        rows = [row for row in explanation.table() if row["kind"] == "text"]
        for row in rows:
            table.add_row(row["token"], row["passage_token"], f"{row['contribution']:.3f}")
        console.print(table)
    console.print(*map(str, paths), sep="\n", highlight=False)
