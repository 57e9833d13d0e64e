"""What a quality study would ask an LLM and what it would cost, without a call."""

from __future__ import annotations

from typing import Any

from polyray.evaluation.tables import Table
from polyray.llm.settings import answers_file
from polyray.llm.work import estimate_table
from tasks.quality.config import LlmTags, QualityConfig
from tasks.quality.data import input_digests, read_query_sets
from tasks.quality.llm import parse_rating_answer, parse_tag_answer, rating_items, tag_items

__all__ = ["estimate_quality"]


def estimate_quality(config: QualityConfig) -> Table:
    """One row for each thing that an LLM is asked; nothing is sent."""
    sets, _ = read_query_sets(config)
    input_digests(config)
    asked: list[Any] = [
        (source.name, tag_items(sets, source), source.engine, parse_tag_answer)
        for source in config.token_languages
        if isinstance(source, LlmTags)
    ]
    if (ratings := config.llm_ratings) is not None:
        items = rating_items(sets, ratings)
        asked.append(("ratings", items, ratings.engine, parse_rating_answer))
    return estimate_table(config.name, asked, answers_file(config.output, config.answers))
