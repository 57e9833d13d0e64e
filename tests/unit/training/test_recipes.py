"""The three recipes: one schedule, and which text each of them makes of it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from polyray.config import validated
from polyray.errors import ConfigError
from polyray.training.recipes import QueryTexts, Recipe, Schedule, in_language

LANGUAGES = ("de", "zh", "ru")


def recipe(kind: str, **given: Any) -> Recipe:
    return validated(Recipe, {"kind": kind, "query_languages": LANGUAGES, **given})


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 64, 1000])
def test_a_pass_has_every_line_in_every_language(lines: int) -> None:
    schedule = Schedule(lines, LANGUAGES, 42)
    seen = Counter(schedule[i] for i in range(len(schedule)))
    assert seen == {(line, code): 1 for line in range(lines) for code in LANGUAGES}
    second = [schedule[len(schedule) + i] for i in range(len(schedule))]
    assert Counter(second) == seen
    if lines >= 64:
        first = [schedule[i] for i in range(len(schedule))]
        other = Schedule(lines, LANGUAGES, 43)
        assert second != first != [other[i] for i in range(len(other))]


def test_the_order_is_shuffled() -> None:
    """Of a random order: places correlate with lines by chance alone, languages alternate."""
    schedule = Schedule(4000, ("de", "ru"), 7)
    lines, codes = zip(*(schedule[i] for i in range(len(schedule))), strict=True)
    mean = sum(lines) / len(lines)
    spread = sum((line - mean) ** 2 for line in lines)
    follow = sum((a - mean) * (b - mean) for a, b in pairwise(lines))
    assert abs(follow / spread) < 0.06  # five standard deviations of 1/sqrt(8000)
    changes = sum(a != b for a, b in pairwise(codes))
    assert changes / len(codes) == pytest.approx(0.5, abs=0.03)


def test_a_schedule_of_forty_million_lines_takes_no_memory() -> None:
    schedule = Schedule(39_000_000, LANGUAGES, 1)
    assert len(schedule) == 117_000_000
    drawn = {schedule[i] for i in range(2000)}
    assert len(drawn) == 2000
    assert max(line for line, _ in drawn) > 38_000_000


@pytest.mark.parametrize(
    ("given", "query", "passages"),
    [
        (recipe("mono"), "en", "en"),
        (recipe("cross"), "de", "en"),
        (recipe("mixed", lexicon="x"), "en", "en"),
        (recipe("mixed", lexicon="x", switched="native"), "de", "en"),
        (recipe("mono", passage_language="{language}"), "de", "de"),
        (recipe("cross", passage_language="{language}"), "en", "de"),
        (recipe("mixed", lexicon="x", passage_language="{language}"), "en", "de"),
        (recipe("cross", query_languages=("en",), passage_language="zh"), "en", "zh"),
    ],
)
def test_languages_of_query_and_passages(given: Recipe, query: str, passages: str) -> None:
    language = given.query_languages[0]
    assert (given.query_language(language), given.passages_in(language)) == (query, passages)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"kind": "mixed"}, "lexicon"),
        ({"kind": "mono", "lexicon": "x"}, "lexicon"),
        ({"kind": "cross", "query_languages": ["en"]}, "both be in en"),
        ({"kind": "mixed", "query_languages": ["en"], "lexicon": "x"}, "pivot"),
        ({"kind": "mono", "query_languages": ["de", "de"]}, "twice"),
        ({"kind": "mono", "query_languages": ["xx"]}, "not one of"),
        ({"kind": "mono", "query_languages": []}, "at least 1"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        validated(Recipe, {"query_languages": LANGUAGES, **given})


def test_both_directions_of_switching(tmp_path: Any) -> None:
    (tmp_path / "en-de.tsv").write_text("house\tHaus\nhome\tHaus\nold\talt\n")
    path = str(tmp_path / "en-{language}.tsv")
    given = {"query_languages": ("de",), "lexicon": path, "rate": 1.0}
    forth = QueryTexts(recipe("mixed", **given))
    assert forth.make("q", "the old house", "de") == "the alt Haus"
    back = QueryTexts(recipe("mixed", switched="native", **given))
    assert back.make("q", "das Haus ist alt", "de") in (
        "das House ist old",
        "das Home ist old",
    )


def test_options_of_switching_reach_it(tmp_path: Any) -> None:
    (tmp_path / "en-de.tsv").write_text("the\tdie\t1\nhouse\tHaus\t0.1\nhouse\tHeim\t1e9\n")
    given = {"lexicon": str(tmp_path / "en-{language}.tsv"), "rate": 1.0}
    options = {"content_words": True, "choice": "weight"}
    made = QueryTexts(recipe("mixed", query_languages=("de",), options=options, **given))
    assert made.make("q", "the house", "de") == "the Heim"
    with pytest.raises(ConfigError, match="turned round"):
        recipe("mixed", switched="native", options=options, **given)
    with pytest.raises(ConfigError, match="belong to the kind mixed"):
        recipe("mono", options=options)


def test_paths() -> None:
    assert in_language("{language}/{iso3}/{name}.tsv", "de") == "de/deu/german.tsv"
