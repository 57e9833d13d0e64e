"""Token tags: numbers put them in order, and nothing but one certain answer is taken."""

from __future__ import annotations

import pytest

from polyray.llm.parsing import ParseError, parse_tags
from polyray.llm.prompts import load_prompt

TOKENS = ["das", "Meeting", "9"]
RIGHT = ["de", "en", "u"]


def reason(text: str, tokens: list[str]) -> str:
    with pytest.raises(ParseError) as caught:
        parse_tags(text, tokens)
    return caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "2. en\n1. de\n3. u",
        "3. 9: u\n1. das: de\n2. Meeting: en",
        '[{"index": 1, "tag": "de"}, {"index": 3, "tag": "u"}, {"index": 2, "tag": "en"}]',
        '{"index": 2, "tag": "en"}\n{"index": 1, "tag": "de"}\n{"index": 3, "tag": "u"}',
        '{"2": "en", "1": "de", "3": "u"}',
        '{"0": "de", "1": "en", "2": "u"}',
        "۲. en\n۱. de\n۳. u",
        "1 de\n2 en\n3 u",
    ],
)
def test_numbers_give_the_order(text: str) -> None:
    assert parse_tags(text, TOKENS) == RIGHT


@pytest.mark.parametrize(
    "text",
    [
        "das: de\nMeeting: en\n9: u",
        "das (de)\nMeeting (en)\n9 (u)",
        "das de\nMeeting en\n9 u",
        "1. das (de)\n2. Meeting (en)\n3. 9 (u)",
        "| das | de |\n| Meeting | en |\n| 9 | u |",
        "| Token | Tag |\n|---|---|\n| das | de |\n| Meeting | en |\n| 9 | u |",
        "| 1 | das | de |\n| 2 | Meeting | en |\n| 3 | 9 | u |",
        "Tags:\nde\nen\nu",
        "Here are the tags:\n\nde en u",
        "['de', 'en', 'u']",
        "```\nde\nen\nu\n```",
        '{"tags": ["..."]}\n{"tags": ["de", "en", "u"]}',
        '{"tags": ["de", "en", "u"]} {"tags": ["de", "en", "u"]}',
        'Tokens: ["das", "Meeting", "9"]\nTags: ["de", "en", "u"]',
        "das\tde\nMeeting\ten\n9\tu\n\nLet me know if you need more.",
        "en en u</think>\nde en u",
        "[THINK]en en u[/THINK]de en u",
        "<seed:think>en en u</seed:think>de en u",
    ],
)
def test_usable_ways(text: str) -> None:
    assert parse_tags(text, TOKENS) == RIGHT


@pytest.mark.parametrize(
    ("text", "tokens", "right"),
    [
        ("我 zh\nbook en", ["我", "book"], ["zh", "en"]),
        ("کن: fa\ncheck: en", ["کن", "check"], ["fa", "en"]),
        ("1. закон - ru\n2. update - en", ["закон", "update"], ["ru", "en"]),
        ("12: u\nUhr: de", ["12", "Uhr"], ["u", "de"]),
        ("1: u\n2: u", ["1", "2"], ["u", "u"]),
        ("Tags: de", ["das"], ["de"]),
        ('{"token": "das", "tag": "de"}', ["das"], ["de"]),
    ],
)
def test_scripts_and_numbers(text: str, tokens: list[str], right: list[str]) -> None:
    assert parse_tags(text, tokens) == right


@pytest.mark.parametrize(
    ("text", "tokens", "right"),
    [
        ("2. en\n2. de\n3. de", TOKENS, "numbering"),
        ("5. de\n6. en\n7. u", TOKENS, "numbering"),
        ('[{"index": 1, "tag": "de"}, {"index": 3, "tag": "u"}]', ["a", "b"], "numbering"),
        ('[{"index": 1, "tag": "de"}, {"tag": "u"}]', ["a", "b"], "numbering"),
        ('{"tags": ["de", "en"]} {"tags": ["en", "de"]}', ["a", "b"], "ambiguous"),
        ("de en\nen de", ["a", "b"], "ambiguous"),
        ('de en\n{"tags": ["en", "de"]}', ["a", "b"], "ambiguous"),
        ('{"2": "u", "1": "en"}', ["2", "1"], "ambiguous"),
        ("Meeting: en\ndas: de\n9: u", TOKENS, "token_mismatch"),
        ("1. de\n2. en\n3. u\n\n1. en\n2. en\n3. u", TOKENS, "count_mismatch"),
        ("Label each with exactly one of: de, en, u, ne", [*"abcd"], "refusal_or_no_tags"),
        ("Label each with exactly one of:\nde, en, u, ne", [*"abcd"], "refusal_or_no_tags"),
        ("Possible tags:\nde\nen\nu\nne", [*"abcd"], "count_mismatch"),
        ("The tag is de or en", ["das"], "refusal_or_no_tags"),
        ('{"tags": ["..."]}', ["das"], "unknown_tag"),
    ],
)
def test_what_is_uncertain(text: str, tokens: list[str], right: str) -> None:
    assert reason(text, tokens) == right


def test_the_prompt_itself_is_no_answer() -> None:
    tokens = ["das", "neue", "Meeting", "heute"]
    item = load_prompt("token_languages").item(
        "1",
        count=4,
        languages="German and English",
        tags="de, en, u, ne",
        tokens="\n".join(tokens),
    )
    prompt = "\n".join(text for _, text in item.messages)
    assert "de, en, u, ne" in prompt
    assert reason(prompt, tokens) in {"refusal_or_no_tags", "count_mismatch", "unknown_tag"}
