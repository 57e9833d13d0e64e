"""What an LLM is asked about queries: the language of each token, and two ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyray.languages import LANGUAGES
from polyray.llm.parsing import parse_ratings, parse_tags
from polyray.llm.prompts import load_prompt
from polyray.llm.request import Item
from polyray.text.mixing import INDEPENDENT, NAMED_ENTITY
from polyray.text.token_languages import ENGLISH
from tasks.quality.config import LlmRatings, LlmTags
from tasks.quality.data import QuerySet, SetKey
from tasks.quality.human import QueryKey

if TYPE_CHECKING:
    from polyray.llm.store import Answer
    from polyray.llm.work import LlmWork

__all__ = [
    "LlmPart",
    "ask_ratings",
    "ask_tags",
    "parse_rating_answer",
    "parse_tag_answer",
    "rating_items",
    "tag_items",
]

_SEPARATOR = "\x1f"
"""Between the parts of an item's id: it stands in no name and no query id."""


@dataclass(frozen=True, slots=True)
class LlmPart:
    """The answers of one part of a study, and what did not come: missing items by reason."""

    values: dict[Any, Any]
    facts: dict[str, Any] = field(default_factory=dict)


def tag_items(sets: Sequence[QuerySet], source: LlmTags) -> list[Item]:
    """One item for every query of every set that has tokens."""
    prompt = load_prompt(source.prompt)
    items = []
    for each in sets:
        codes = (each.key.language, ENGLISH)
        tags = (*codes, INDEPENDENT, NAMED_ENTITY)
        for query_id, tokens in each.tokens.items():
            if tokens:
                items.append(
                    prompt.item(
                        _SEPARATOR.join((*each.key, query_id)),
                        context=(tokens, tags),
                        count=len(tokens),
                        languages=" and ".join(LANGUAGES[code].name for code in codes),
                        tags=", ".join(tags),
                        tokens="\n".join(tokens),
                    )
                )
    return items


def parse_tag_answer(item: Item, answer: Answer) -> list[str]:
    """One tag for each of the item's tokens."""
    tokens, tags = item.context
    return parse_tags(answer.content, tokens, allowed=tags)


def ask_tags(sets: Sequence[QuerySet], source: LlmTags, work: LlmWork) -> dict[SetKey, LlmPart]:
    """Tags of every query that the LLM answered well; the others are missing with their reason."""
    asked = work.ask(source.name, tag_items(sets, source), source.engine, parse_tag_answer)
    found: dict[SetKey, LlmPart] = {}
    for each in sets:
        values: dict[str, list[str]] = {}
        missing: Counter[str] = Counter()
        for query_id, tokens in each.tokens.items():
            outcome = asked.get(_SEPARATOR.join((*each.key, query_id)))
            if not tokens:
                values[query_id] = []
            elif outcome is not None and outcome.ok:
                values[query_id] = outcome.parsed
            elif outcome is not None:
                missing[outcome.reason] += 1
        found[each.key] = LlmPart(values, {"missing": dict(missing)})
    return found


def rating_items(sets: Sequence[QuerySet], ratings: LlmRatings) -> list[Item]:
    """One item for every mixed query."""
    prompt = load_prompt(ratings.prompt)
    texts: Mapping[SetKey, QuerySet] = {each.key: each for each in sets}
    items = []
    for each in sets:
        if each.key.variant != "mixed":
            continue
        original = texts[each.key._replace(variant=ratings.original)].texts
        code = each.key.language
        pair = (ENGLISH, code) if ratings.original == "english" else (code, ENGLISH)
        for query_id, text in each.texts.items():
            items.append(
                prompt.item(
                    _SEPARATOR.join((each.key.queries, code, query_id)),
                    language=LANGUAGES[pair[0]].name,
                    other=LANGUAGES[pair[1]].name,
                    original=original[query_id],
                    mixed=text,
                )
            )
    return items


def parse_rating_answer(item: Item, answer: Answer) -> dict[str, int]:
    """Accuracy and fluency, 1 to 3."""
    return parse_ratings(answer.content)


def ask_ratings(sets: Sequence[QuerySet], ratings: LlmRatings, work: LlmWork) -> LlmPart:
    """Ratings by :class:`~tasks.quality.human.QueryKey`; others are missing with their reason."""
    items = rating_items(sets, ratings)
    asked = work.ask("ratings", items, ratings.engine, parse_rating_answer)
    values = {
        QueryKey(*name.split(_SEPARATOR)): outcome.parsed
        for name, outcome in asked.items()
        if outcome.ok
    }
    missing: dict[str, Counter[str]] = {}
    for name, outcome in asked.items():
        if not outcome.ok:
            place = ".".join(name.split(_SEPARATOR)[:2])
            missing.setdefault(place, Counter())[outcome.reason] += 1
    return LlmPart(values, {"missing": {place: dict(own) for place, own in missing.items()}})
