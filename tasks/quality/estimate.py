"""What a quality study would ask an LLM and what it would cost, without a call."""

from __future__ import annotations

from polyray.evaluation.tables import Cell, Table
from polyray.llm.engine import estimate
from polyray.llm.prices import Estimate
from polyray.llm.settings import answers_file
from tasks.quality.config import LlmTags, QualityConfig
from tasks.quality.data import read_query_sets
from tasks.quality.llm import rating_items, tag_items

__all__ = ["estimate_quality"]


def estimate_quality(config: QualityConfig) -> Table:
    """One row for each thing that an LLM is asked; nothing is sent."""
    sets, _ = read_query_sets(config)
    store = answers_file(config.output, config.answers)
    rows: list[list[Cell]] = []

    def note(what: str, found: Estimate) -> None:
        cells = (found.requests, found.stored, found.input_tokens, found.output_tokens)
        rows.append([what, *cells, found.usd, found.usd_at_most])

    for source in config.token_languages:
        if isinstance(source, LlmTags):
            note(source.name, estimate(tag_items(sets, source), source.engine, store))
    if (ratings := config.llm_ratings) is not None:
        note("ratings", estimate(rating_items(sets, ratings), ratings.engine, store))
    columns = ["asked for", "requests", "stored", "input tokens", "output tokens"]
    columns += ["US$", "US$ at most"]
    caption = f"{config.name}: what would be asked; nothing was sent"
    return Table(columns, rows, caption, decimals=2)
