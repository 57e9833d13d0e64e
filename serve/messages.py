"""What the endpoint reads and answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from polyray.text.keys import is_blank

__all__ = ["MAX_HITS", "MAX_QUERY", "SearchHit", "SearchRequest", "SearchResponse"]

MAX_QUERY = 2000
"""Longest query, in characters."""
MAX_HITS = 100
"""Most hits of one answer."""


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("the query is blank")
    return text


class SearchRequest(BaseModel):
    """A query as typed, in any language or a mix; ``system`` defaults to the config's last."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY), AfterValidator(_not_blank)]
    system: str | None = None
    k: int = Field(default=10, ge=1, le=MAX_HITS)


class SearchHit(BaseModel):
    """One document: its rank from 1, its score, and what to show of it."""

    rank: int
    doc_id: str
    score: float
    title: str
    snippet: str


class SearchResponse(BaseModel):
    """The answer to a :class:`SearchRequest`; ``took_ms`` is the search alone, without waiting."""

    system: str
    query: str
    k: int
    took_ms: float
    hits: list[SearchHit]
