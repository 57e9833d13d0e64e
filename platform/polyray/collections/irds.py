"""Collections by their ir_datasets id (``irds:neuclir/1/zh``), through the ir_datasets package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyray.collections.sgml import tidy
from polyray.errors import ConfigError, InputError, MissingPrerequisite, Problem
from polyray.languages import language
from polyray.records import Document, Qrel, Topic

__all__ = ["irds_documents", "irds_qrels", "irds_topics"]


def _dataset(name: str, part: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise MissingPrerequisite("irds: ids need the package ir_datasets: install it") from None
    identifier = name.removeprefix("irds:")
    try:
        dataset = ir_datasets.load(identifier)
    except KeyError:
        raise ConfigError(f"{name}: ir_datasets knows no collection {identifier!r}") from None
    if not getattr(dataset, f"has_{part}")():
        raise ConfigError(f"{name}: this ir_datasets collection has no {part}")
    return dataset


def _rows(name: str, part: str) -> Iterator[Any]:
    dataset = _dataset(name, part)
    try:
        yield from getattr(dataset, f"{part}_iter")()
    except (OSError, RuntimeError) as error:
        what = f"{name}: ir_datasets could not provide the {part}: {error}"
        raise MissingPrerequisite(f"{what} (download or place its files first)") from error


def irds_documents(name: str) -> Iterator[Document]:
    """Documents with the fields title and text (or body), else the package's default text."""
    for row in _rows(name, "docs"):
        text = getattr(row, "text", None) or getattr(row, "body", None)
        title = getattr(row, "title", None) or getattr(row, "headline", None) or ""
        if not isinstance(text, str):
            text, title = row.default_text(), ""
        yield Document(row.doc_id, text, title if isinstance(title, str) else "")


def irds_topics(name: str) -> list[Topic]:
    """All queries; HC4 and NeuCLIR ones as English original, human and machine translation."""
    dataset = _dataset(name, "queries")
    code = _code(dataset.queries_lang() or "")
    found: list[Topic] = []
    for row in _rows(name, "queries"):
        title = getattr(row, "title", None)
        description = getattr(row, "description", None)
        if title is None and description is None:
            found.append(Topic(row.query_id, tidy(row.default_text()), language=code))
            continue
        texts = (tidy(title or ""), tidy(description or ""))
        narrative = tidy(str(getattr(row, "narrative", None) or ""))
        if not hasattr(row, "ht_title"):
            found.append(Topic(row.query_id, *texts, narrative, code))
            continue
        found.append(Topic(row.query_id, *texts, language="en", source="original"))
        translated = _code(getattr(row, "translation_lang", "") or "") or code
        for prefix, source in (("ht", "human translation"), ("mt", "machine translation")):
            texts = tuple(  # type: ignore[assignment]
                tidy(getattr(row, f"{prefix}_{field}", None) or "")
                for field in ("title", "description")
            )
            if any(texts):
                found.append(Topic(row.query_id, *texts, language=translated, source=source))
    if not found:
        raise InputError(Problem(name, None, "no queries in the collection"))
    return found


def irds_qrels(name: str) -> list[Qrel]:
    """All judgments of the collection."""
    return [Qrel(row.query_id, row.doc_id, int(row.relevance)) for row in _rows(name, "qrels")]


def _code(name: str) -> str:
    try:
        return language(name).code if name else ""
    except ConfigError:
        return name
