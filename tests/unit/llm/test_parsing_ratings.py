"""Ratings and verdicts: what leaves no doubt is a value, everything else an error."""

from __future__ import annotations

import pytest

from polyray.llm.parsing import ParseError, parse_ratings, parse_verdict
from polyray.llm.prompts import load_prompt

BESIDE = "\nFluency: 2"


def reason(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse_ratings(text)
    return caught.value.reason


def test_the_prompt_itself_is_no_answer() -> None:
    item = load_prompt("ratings").item(
        "1", language="German", other="English", original="a", mixed="b"
    )
    prompt = "\n".join(text for _, text in item.messages)
    assert "Accuracy" in prompt
    assert reason(prompt) == "not_integer"
    assert reason('{"accuracy": 1, 2 or 3, "fluency": 1, 2 or 3}') == "not_integer"


UNCERTAIN = [
    *("2 or 3", "2, 3", "2~3", "2-3", "2 – 3", "2—3", "2 to 3", "2 (or 3)", "2, maybe 3"),
    *("2½", "2 and a half", "2.5", "2. 5", "2-", "2+", "2 minus", "2-ish", "2?", "3e5", "2%"),
    *("3/3/2024", "3:1", "2/", "1/2/3x", "1,000", "1 2 3", "1|2|3", "2 (3)", "2 - or rather 3"),
    *("2-point loss, so 1", "1) lost 2) ok 3) all. I pick 3.", "1 - lost 2 - mostly 3 - all"),
    *("\n1 - lost\n2 - mostly\n3 - all", "3/" + "9" * 5000, "9" * 5000, "-" + "9" * 5000),
]


@pytest.mark.parametrize("value", UNCERTAIN)
@pytest.mark.parametrize("template", ["Accuracy: {}" + BESIDE, "Fluency: 2, accuracy: {}"])
def test_more_than_one_whole_number_is_none(value: str, template: str) -> None:
    assert reason(template.format(value)) in {"not_integer", "out_of_range"}


@pytest.mark.parametrize("value", ["3 points of 5", "2 of 5", "3/5", "3 out of 5", "2 (of 10)"])
@pytest.mark.parametrize(
    "template", ["Accuracy: {}" + BESIDE, '{{"accuracy": "{}", "fluency": 2}}']
)
def test_other_scales(value: str, template: str) -> None:
    assert reason(template.format(value)) == "out_of_range"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Accuracy (1-5): 3\nFluency (1-5): 2", "out_of_range"),
        ('{"accuracy": {"score": 3, "max": 5}, "fluency": 2}', "out_of_range"),
        ("Inaccuracy: 2\nFluency: 3", "missing_field"),
        ('{"accuracy": {"score": 3, "rating": 2}, "fluency": 2}', "ambiguous"),
        ('{"a": {"accuracy": 3, "fluency": 3}, "b": {"accuracy": 1, "fluency": 3}}', "ambiguous"),
        ("| Accuracy | Fluency |\n|---|---|\n| 3 | 2 |\n| 1 | 2 |", "ambiguous"),
        ("| Accuracy | Fluency |\n|---|---|\n| 3 |  |", "not_integer"),
        ('{"accuracy": [1, 2], "fluency": 2}', "not_integer"),
        ('{"accuracy": "1_0", "fluency": 2}', "not_integer"),
        ("<think>Accuracy: 3, fluency: 2", "refusal_or_no_score"),
        ("<|channel|>analysis<|message|>accuracy 3, fluency 2", "refusal_or_no_score"),
    ],
)
def test_reasons(text: str, right: str) -> None:
    assert reason(text) == right


@pytest.mark.parametrize(
    "value",
    [
        *("3", "3.", "3/3", "3 / 3", "3 out of 3", "3 of 3", "3 (out of 3)", "3.0", "**3**", "`3`"),
        *("3 (partly)", "3 - partly lost", "3 – all kept", "3—all kept", "3 — all 4 words kept"),
        *(
            "3, because of it",
            "3: partly",
            "3 = fine",
            "score of 3",
            "3 points",
            "3 because 2 words",
        ),
        *("[3]", "(3)", "3;", "3. All kept.", "3 // kept", "٣", "3 / 3 (all kept)", "“3”", "_3_"),
    ],
)
@pytest.mark.parametrize("template", ["Accuracy: {}" + BESIDE, "Fluency: 2; accuracy {}"])
def test_certain_numbers(value: str, template: str) -> None:
    assert parse_ratings(template.format(value)) == {"accuracy": 3, "fluency": 2}


@pytest.mark.parametrize(
    "text",
    [
        '{"ratings": {"accuracy": 3, "fluency": 2}}',
        '[{"accuracy": 3, "fluency": 2}]',
        '{"accuracy": "3/3", "fluency": "2/3"}',
        '{"accuracy": [3], "fluency": [2]}',
        '{"accuracy_score": 3, "fluency_score": 2}',
        "{'accuracy': 3, 'fluency': 2}",
        "accuracy: [3]\nfluency: [2]",
        "accuracy_score: 3, fluency_score: 2",
        "<accuracy>3</accuracy><fluency>2</fluency>",
        "| Accuracy | Fluency |\n|---|---|\n| 3 | 2 |",
        "| Text | Accuracy (1-3) | Fluency (1-3) |\n|---|---|---|\n| a | **3** | 2/3 |",
        "| Criterion | Score |\n|---|---|\n| Accuracy | 3 |\n| Fluency | 2 |",
        "Accuracy is a 3 and fluency is a 2",
        "(Accuracy: 3, Fluency: 2)",
        "1. **Accuracy**: 3 - all kept\n2. **Fluency**: 2 - stiff",
        "Accuracy: 3\nReason: 2 words.\nFluency: 2\nReason: 1",
        "accuracy 1, fluency 1</think>Accuracy: 3, fluency: 2",
        '<think hidden="1">accuracy: 1</think>Accuracy: 3, fluency: 2',
        "[THINK]accuracy: 1[/THINK]Accuracy: 3, fluency: 2",
        "<seed:think>accuracy: 1</seed:think>Accuracy: 3, fluency: 2",
        "<reasoning>accuracy: 1</reasoning>Accuracy: 3, fluency: 2",
        "<|channel|>analysis<|message|>accuracy: 1<|end|><|start|>assistant"
        "<|channel|>final<|message|>Accuracy: 3, fluency: 2<|return|>",
    ],
)
def test_usable_ways(text: str) -> None:
    assert parse_ratings(text) == {"accuracy": 3, "fluency": 2}


@pytest.mark.parametrize(
    "text",
    [
        *("un-changed: true", "unchanged: true", "not changed: yes", "hasn't changed: true"),
        *("No, they differ", "Changed: yes or no", "Changed: no, yes", "Changed: true/false"),
        *('{"changed": 1}', '{"changed": 0}', '{"unchanged": true}', "[THINK]changed: no"),
        '{"changed": true} if it differs, {"changed": false} if not',
    ],
)
def test_verdicts_that_are_uncertain(text: str) -> None:
    with pytest.raises(ParseError):
        parse_verdict(text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Yes", True),
        ("No", False),
        ('{"changed": "yes"}', True),
        ('{"result": {"changed": false}}', False),
        ("Changed? Yes", True),
        ("Changed: yes. No word is the same.", True),
        ("changed: no</think>Changed: yes", True),
        ('<think hidden="1">{"changed": false}</think>{"changed": true}', True),
        ("<|channel|>analysis<|message|>changed: no<|end|><|channel|>final<|message|>yes", True),
    ],
)
def test_verdicts(text: str, right: bool) -> None:
    assert parse_verdict(text) is right
