"""``polyray split``: documents into passages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from polyray.records import Document

__all__ = ["split"]


def split(
    docs: Annotated[str, typer.Option(help="Documents: a file, folder, glob or irds:ID.")],
    out: Annotated[str, typer.Option(help="Passages to write: .jsonl, .tsv or .parquet.")],
    tokenizer: Annotated[
        str,
        typer.Option(help="words, whitespace, a tokenizer.json, packaged:NAME or a model's id."),
    ] = "words",
    length: Annotated[int, typer.Option(help="Window length in tokens.")] = 180,
    stride: Annotated[int, typer.Option(help="Step between windows in tokens.")] = 90,
) -> None:
    """Cut documents into overlapping passages with exact character offsets.

    Special tokens come on top of the length. In a .tsv a tab or line break in a text is written
    as one space; the other forms keep the text to the letter.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from polyray.collections.documents import read_documents
    from polyray.files import resolve
    from polyray.text.passages import check_passage_path, write_passages
    from polyray.text.tokenizers import window_tokenizer
    from polyray.text.windows import SplitCounts, windows
    from polyray.text.windows import split as split_documents

    windows(0, length, stride)
    target = resolve(out)
    check_passage_path(target)
    counts = SplitCounts()
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} documents"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        source = docs if docs.startswith("irds:") else str(resolve(docs))
        read = _shown(read_documents(source), progress)
        cutter = window_tokenizer(tokenizer)
        write_passages(target, split_documents(read, cutter, length, stride, counts))

    table = Table(title=f"{cutter.name}, {length} tokens, stride {stride}")
    table.add_column("")
    table.add_column("count", justify="right")
    table.add_row("documents read", f"{counts.documents:,}")
    table.add_row("skipped, empty", f"{counts.skipped_empty:,}")
    table.add_row("passages", f"{counts.passages:,}")
    Console().print(table)


def _shown(documents: Iterator[Document], progress: Progress) -> Iterator[Document]:
    task = progress.add_task("", total=None)
    for document in documents:
        yield document
        progress.advance(task)
