"""A trained student on disk: both forms that the field loads, and a card that says what it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import ConfigError
from polyray.models.late_files import new_folder, save_colbert

if TYPE_CHECKING:
    from polyray.models.late import TorchLateEncoder

__all__ = ["save_student"]

INSIDE = "sentence-transformers"


def save_student(
    encoder: TorchLateEncoder, folder: Path, lengths: tuple[int, int], facts: dict[str, Any]
) -> Path:
    """Write the model into ``folder``, which is replaced, and return it.

    ``lengths`` are those of queries and passages that it shall read, which training may shorten.

    The folder itself is in colbert-ai's form, with sentence-transformers' in a folder inside; a
    model that colbert-ai's form cannot hold is written in sentence-transformers' alone.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with new_folder(folder) as temporary:
        try:
            save_colbert(encoder, temporary / "colbert", lengths)
            for path in (temporary / "colbert").iterdir():
                path.rename(temporary / path.name)
            (temporary / "colbert").rmdir()
            inside = temporary / INSIDE
        except ConfigError:
            inside = temporary
        _lengthen(encoder.model[0], *lengths)
        encoder.model.save_pretrained(str(inside), create_model_card=False)
        (temporary / "README.md").write_text(_card(encoder, facts), encoding="utf-8")
    return folder


def _lengthen(transformer: Any, queries: int, passages: int) -> None:
    transformer.query_length, transformer.document_length = queries, passages
    if transformer.query_expansion is not None:
        transformer.query_expansion = {**transformer.query_expansion, "length": queries}


def _card(encoder: TorchLateEncoder, facts: dict[str, Any]) -> str:
    shown = {name: value for name, value in facts.items() if name != "history"}
    losses = [line["loss"] for line in facts.get("history", []) if "loss" in line]
    if losses:
        shown |= {"first_loss": losses[0], "last_loss": losses[-1]}
    title = facts.get("name", "A late-interaction student")
    return (
        "---\nlibrary_name: sentence-transformers\ntags: [ColBERT, late-interaction]\n---\n\n"
        f"# {title}\n\nTrained by polyray. What it was made from, and what was measured:\n\n"
        f"```json\n{json.dumps(shown, indent=2, ensure_ascii=False)}\n```\n\n"
        f"How it reads:\n\n```json\n{json.dumps(encoder.describe(), indent=2)}\n```\n"
    )
