"""Parsers of what models write. Right results: the cases of lists, ratings and token tags."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray.llm.parsing import (
    ParseError,
    is_refusal,
    parse_distractors,
    parse_ratings,
    parse_tags,
    parse_verdict,
)

ORIGINAL = "The council approved the new cycling path on Tuesday."
FOUR = ["The first dog.", "The second cow.", "The third cat.", "The fourth hen."]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lists_of_the_cases(cases: Path) -> None:
    folder = cases / "H13_llm_list_parsing"
    right = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    for row in lines_of(folder / "responses.jsonl"):
        got = parse_distractors(
            row["content"],
            n=row["n_requested"],
            original=row["original"],
            lang="en",
            finish_reason=row["finish_reason"],
        )
        expected = right[row["case"]]
        assert got.items == expected["items"], row["case"]
        assert got.status == expected["status"], row["case"]
        assert got.rejected == expected.get("rejected", {}), row["case"]
        assert len(got.spare) == (2 if row["case"] == "h_six" else 0)


@pytest.mark.parametrize(
    "template",
    [
        "{n}. {item}",
        "{n}) {item}",
        "({n}) {item}",
        "[{n}] {item}",
        "{n}: {item}",
        "{n} - {item}",
        "**{n}.** {item}",
        "{n}. **{item}**",
        "### {n}. {item}",
        "#{n}: {item}",
        "Distractor {n}: {item}",
        "**Distractor {n}:** {item}",
        "Satz {n}: {item}",
        "{n}.\t{item}",
        "  {n}.  {item}  ",
        "> {n}. {item}",
        "{n}.{item}",
        "- {item}",
        "* {item}",
        "• {item}",
        "– {item}",
        "- [ ] {item}",
        "{n}. “{item}”",
        "{n}. „{item}“",
        "{n}. «{item}»",
        "{n}. 「{item}」",
        "{n}. `{item}`",
        "{n}. **Other animal:** {item}",
        "{n}. __Other animal__: {item}",
        "{item}",
        "{item}\n",
    ],
)
def test_ways_of_writing_a_list(template: str) -> None:
    text = "\n".join(template.format(n=n, item=item) for n, item in enumerate(FOUR, 1))
    got = parse_distractors(text, n=4, original=ORIGINAL, lang="en")
    assert (got.items, got.status, got.rejected) == (FOUR, "ok", {})


@pytest.mark.parametrize("digits", ["٠١٢٣٤", "۰۱۲۳۴", "０１２３４", "०१२३४"])
def test_digits_of_any_script(digits: str) -> None:
    text = "\n".join(f"{digits[n]}. {item}" for n, item in enumerate(FOUR, 1))
    assert parse_distractors(text, n=4, original=ORIGINAL).items == FOUR


@pytest.mark.parametrize("marks", ["一二三四", "①②③④", "１２３４"])
def test_chinese_marks(marks: str) -> None:
    items = ["市长否决了计划。", "市长批准了旧路。", "市长周五批准。", "议员批准了计划。"]
    text = "以下是句子：\n" + "\n".join(f"{m}、{i}" for m, i in zip(marks, items, strict=True))
    got = parse_distractors(text, n=4, original="市长批准了计划。", lang="zh")
    assert (got.items, got.status) == (items, "ok")


def test_persian_list() -> None:
    items = ["شورا طرح را رد کرد.", "شورا طرح قدیمی را پذیرفت."]
    text = f"۱. {items[0]}\n۲. {items[1]}"
    assert parse_distractors(text, n=2, original="شورا طرح را پذیرفت.", lang="fa").items == items


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FOUR),
        json.dumps({"distractors": FOUR}),
        json.dumps({"sentences": [{"text": item, "change": "animal"} for item in FOUR]}),
        json.dumps({str(n): item for n, item in enumerate(FOUR, 1)}),
        "Here you are:\n```json\n" + json.dumps(FOUR, indent=2) + "\n```\nAnything else?",
        "<think>1. no\n2. this neither</think>\n" + json.dumps(FOUR),
        "<think>1. no</think>" + "\n".join(f"{n}. {i}" for n, i in enumerate(FOUR, 1)),
        " ".join(f"{n}. {item}" for n, item in enumerate(FOUR, 1)),
        "a) " + "\nb) ".join(FOUR[:2]) + "\nc) " + "\nd) ".join(FOUR[2:]),
        "\n".join(f"{n}. {i}\n   - animal changed" for n, i in enumerate(FOUR, 1)),
        "\n".join(f"{n}. {i}\n   (animal changed)" for n, i in enumerate(FOUR, 1)),
        "\n\n".join(f"{n}.\n{i}" for n, i in enumerate(FOUR, 1)),
        "\r\n".join(f"1. {i}" for i in FOUR),
    ],
)
def test_wrappings(text: str) -> None:
    got = parse_distractors(text, n=4, original=ORIGINAL, lang="en")
    assert (got.items, got.status) == (FOUR, "ok")


def test_wrapped_lines_and_numbers_that_are_no_markers() -> None:
    text = "1. It was signed on the\n3rd of May.\n2. In 2.5 years\nit ends."
    got = parse_distractors(text, n=2, original=ORIGINAL)
    assert got.items == ["It was signed on the 3rd of May.", "In 2.5 years it ends."]


def test_cut_json_keeps_whole_strings_only() -> None:
    text = json.dumps({"distractors": FOUR})[:-20]
    got = parse_distractors(text, n=4, original=ORIGINAL, finish_reason="length")
    assert (got.items, got.status) == (FOUR[:3], "truncated")


def test_enough_before_the_cut_is_enough() -> None:
    text = "\n".join(f"{n}. {item}" for n, item in enumerate(FOUR, 1))
    got = parse_distractors(text, n=3, original=ORIGINAL, finish_reason="length")
    assert (got.items, got.status, got.spare) == (FOUR[:3], "ok", [])


def test_cut_thoughts_are_no_list() -> None:
    got = parse_distractors("<think>1. one\n2. two", n=2, original=ORIGINAL, finish_reason="length")
    assert (got.items, got.status) == ([], "truncated")


def test_rejects_are_counted_by_reason() -> None:
    text = f"1. {ORIGINAL.upper()}\n2. ...\n3. Новая дорога.\n4. A cow.\n5. “A cow”"
    got = parse_distractors(text, n=4, original=ORIGINAL, lang="en")
    assert got.items == ["A cow."]
    assert got.rejected == {
        "equals_original": 1,
        "empty": 1,
        "wrong_script": 1,
        "duplicate": 1,
    }


def test_differences_in_numbers_and_marks_are_differences() -> None:
    items = ["It cost 2.5 euros.", "It cost 25 euros.", "It cost -25 euros.", "कि", "की"]
    text = "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    got = parse_distractors(text, n=5, original="It cost 3 euros.")
    assert got.items[:2] == items[:2]
    assert got.items[-2:] == items[-2:]


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't do that.",
        "I cannot assist.",
        "Es tut mir leid, das geht nicht.",
        "Ich kann das nicht.",
        "Je suis désolé.",
        "对不起，我不能。",
        "К сожалению, нет.",
        "متأسفم",
        "Samahani, siwezi.",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)
    assert parse_distractors(text, n=4, original=ORIGINAL).status == "refusal"


def test_a_quoted_original_keeps_its_quotes() -> None:
    got = parse_distractors('1. "No," he said, "never"', n=1, original='"Yes," he said, "now"')
    assert got.items == ['"No," he said, "never"']


WORDS = st.text(
    st.characters(categories=("Lu", "Ll", "Lo", "Nd"), min_codepoint=65), min_size=1, max_size=12
)
SENTENCES = st.lists(WORDS, min_size=2, max_size=6).map(
    lambda words: "Die " + " ".join(words) + "."
)


@settings(deadline=None)
@given(
    st.lists(SENTENCES, min_size=2, max_size=6), st.sampled_from(["{}. ", "{}) ", "({}) ", "{}: "])
)
def test_number_list_round_trip(items: list[str], mark: str) -> None:
    text = "\n".join(mark.format(n) + item for n, item in enumerate(items, 1))
    got = parse_distractors(text, n=len(items), original="Etwas ganz anderes?")
    found = got.items + got.spare
    assert all(item in [" ".join(one.split()) for one in items] for item in found)
    assert len(found) + sum(got.rejected.values()) == len(items)


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(["stop", "length", "content_filter", None]))
def test_any_text_gives_a_result(text: str, finish: str | None) -> None:
    got = parse_distractors(text, n=4, original=ORIGINAL, lang="en", finish_reason=finish)
    assert len(got.items) <= 4
    assert (got.status == "ok") == (len(got.items) == 4)
    for parse in (parse_ratings, parse_verdict, lambda t: parse_tags(t, ["a", "b"])):
        with suppress(ParseError):
            parse(text)


@pytest.mark.parametrize(
    "unit", ["1. a ", "[", '{"a":', "<think>", "1. 2. ", "- \n", '["x",', "accuracy ", "``` "]
)
def test_time_grows_with_the_length(unit: str) -> None:
    def took(text: str) -> float:
        best = 1e9
        for _ in range(3):
            start = time.perf_counter()
            parse_distractors(text, n=4, original=ORIGINAL)
            for parse in (parse_ratings, lambda t: parse_tags(t, ["a"])):
                with suppress(ParseError):
                    parse(text)
            best = min(best, time.perf_counter() - start)
        return best

    took(unit * 10)
    assert took(unit * 4000) < max(0.05, 4 * took(unit * 2000))


def test_ratings_of_the_cases(cases: Path) -> None:
    folder = cases / "H14_llm_judge_parsing"
    right = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    parsed = []
    for row in lines_of(folder / "responses.jsonl"):
        expected = right[row["case"]]
        if isinstance(expected, list):
            got = parse_ratings(row["content"])
            assert [got["accuracy"], got["fluency"]] == expected, row["case"]
            parsed.append(got)
            continue
        with pytest.raises(ParseError) as caught:
            parse_ratings(row["content"])
        reason, _, field = expected.removeprefix("error:").partition(" ")
        assert caught.value.reason == reason, row["case"]
        assert field.strip("()") in caught.value.detail
    for name, mean in right["mean_parsed"].items():
        assert sum(one[name] for one in parsed) / len(parsed) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "Accuracy: 2\nFluency: 3",
        "- Accuracy score: **2**\n- Fluency score: **3**",
        "Accuracy (1-3): 2\nFluency (1-3): 3",
        "accuracy = 2, fluency = 3",
        "| accuracy | 2 |\n| fluency | 3 |",
        "I would give an accuracy of 2 out of 3 and a fluency of 3 out of 3.",
        '{"accuracy": {"score": 2, "why": "x"}, "fluency": {"score": 3}}',
        '{"accuracy": "2", "fluency": 3.0}',
        "<think>accuracy 1, fluency 1</think>Accuracy: 2. Fluency: 3.",
        "Accuracy: ٢\nFluency: ٣",
    ],
)
def test_ways_of_writing_ratings(text: str) -> None:
    assert parse_ratings(text) == {"accuracy": 2, "fluency": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "refusal_or_no_score"),
        ("Accuracy: 2-3, fluency: 3", "not_integer"),
        ("Accuracy: three, fluency: 3", "not_integer"),
        ("Accuracy: 4/5\nFluency: 2/5", "out_of_range"),
        ('{"accuracy": true, "fluency": 2}', "not_integer"),
        ('{"accuracy": null, "fluency": 2}', "missing_field"),
        ('{"accuracy": 0, "fluency": 2}', "out_of_range"),
        ('{"accuracy": 1, "accuracy": 3, "fluency": 2}', "ambiguous"),
        ('The text says {"accuracy": 3, "fluency": 3}. {"accuracy": 1, "fluency": 1}', "ambiguous"),
        ("Accuracy: 3, fluency: 3. No: accuracy: 1, fluency: 1", "ambiguous"),
    ],
)
def test_ratings_that_are_none(text: str | None, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_ratings(text)
    assert caught.value.reason == reason


def test_tags_of_the_cases(cases: Path) -> None:
    folder = cases / "H15_cmi"
    right = json.loads((folder / "expected_tagging.json").read_text(encoding="utf-8"))
    for row in lines_of(folder / "llm_tagging.jsonl"):
        expected = right[row["id"]]
        if isinstance(expected, dict):
            assert parse_tags(row["response"], row["tokens"]) == expected["tags"]
            continue
        with pytest.raises(ParseError) as caught:
            parse_tags(row["response"], row["tokens"])
        assert expected.startswith(f"error:{caught.value.reason}"), row["id"]


TOKENS = ["das", "re-check", "2:1", "Berlin"]


@pytest.mark.parametrize(
    "text",
    [
        "de en u ne",
        "de, en, u, ne",
        "Tags: de en u ne",
        '["de", "en", "u", "ne"]',
        '```json\n{"tags": ["DE", "en", "u", "ne"]}\n```',
        '[{"token": "das", "tag": "de"}, {"token": "re-check", "tag": "en"}, '
        '{"token": "2:1", "tag": "u"}, {"token": "Berlin", "tag": "ne"}]',
        '[["das", "de"], ["re-check", "en"], ["2:1", "u"], ["Berlin", "ne"]]',
        '{"das": "de", "re-check": "en", "2:1": "u", "Berlin": "ne"}',
        "das\tde\nre-check\ten\n2:1\tu\nBerlin\tne",
        "1. das: de\n2. re-check: en\n3. 2:1: u\n4. Berlin: ne",
        "- das -> de\n- re-check -> en\n- 2:1 -> u\n- Berlin -> ne",
        "de\nen\nu\nne",
        "1. de\n2. en\n3. u\n4. ne",
    ],
)
def test_ways_of_writing_tags(text: str) -> None:
    assert parse_tags(text, TOKENS) == ["de", "en", "u", "ne"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "refusal_or_no_tags"),
        ("I cannot tell the languages of these words.", "refusal_or_no_tags"),
        ("re-check: en\ndas: de\n2:1: u\nBerlin: ne", "token_mismatch"),
        ("de en u", "count_mismatch"),
        ("de en u english", "unknown_tag"),
    ],
)
def test_tags_that_are_none(text: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_tags(text, TOKENS)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"changed": true}', True),
        ('```json\n{"Changed": "no"}\n```', False),
        ("Changed: **yes**", True),
        ("No.", False),
    ],
)
def test_verdicts(text: str, right: bool) -> None:
    assert parse_verdict(text) is right


@pytest.mark.parametrize("text", ["perhaps", '{"changed": true, "changed": false}', ""])
def test_verdicts_that_are_none(text: str) -> None:
    with pytest.raises(ParseError):
        parse_verdict(text)
