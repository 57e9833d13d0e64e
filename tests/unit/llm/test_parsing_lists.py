"""Lists of distractors in the ways that models write them, and what is no list of them."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from polyray.llm.parsing import (
    ParseError,
    parse_distractors,
    parse_ratings,
    parse_tags,
    parse_verdict,
)

GERMAN = "Der Rat hat das neue Gesetz am Montag angenommen."
FOUR = [
    "Der Rat hat das neue Gesetz am Freitag angenommen.",
    "Der Rat hat das alte Gesetz am Montag angenommen.",
    "Der Rat hat das neue Gesetz am Montag abgelehnt.",
    "Der Bund hat das neue Gesetz am Montag angenommen.",
]
CHINESE = "市长周一批准了新的自行车道计划。"
FOUR_CHINESE = [
    "市长周五批准了新的自行车道计划。",
    "市长周一否决了新的自行车道计划。",
    "市长周一批准了旧的自行车道计划。",
    "议员周一批准了新的自行车道计划。",
]
PERSIAN = "شورا طرح جدید مسیر دوچرخه را در روز دوشنبه پذیرفت."
FOUR_PERSIAN = [
    "شورا طرح جدید مسیر دوچرخه را در روز جمعه پذیرفت.",
    "شورا طرح قدیمی مسیر دوچرخه را در روز دوشنبه پذیرفت.",
    "شورا طرح جدید مسیر دوچرخه را در روز دوشنبه رد کرد.",
    "شهردار طرح جدید مسیر دوچرخه را در روز دوشنبه پذیرفت.",
]
RUSSIAN = "Совет принял новый закон о дорогах в понедельник."
FOUR_RUSSIAN = [
    "Совет принял новый закон о дорогах в пятницу.",
    "Совет отклонил новый закон о дорогах в понедельник.",
    "Совет принял старый закон о дорогах в понедельник.",
    "Мэр принял новый закон о дорогах в понедельник.",
]


def written(template: str, items: list[str], marks: str | list[str] = "1234") -> str:
    pairs = zip(marks, items, strict=False)
    return "\n".join(template.format(n=mark, x=item) for mark, item in pairs)


def check(
    text: str, items: list[str], original: str = GERMAN, n: int = 4, status: str = "ok"
) -> None:
    got = parse_distractors(text, n=n, original=original)
    assert (got.items, got.status, got.spare) == (items, status, [])


MARKS = [
    *("\u200f{n}. {x}", "\u200e{n}. {x}", "\u202b{n}. {x}\u202c", "\u2067{n}. {x}\u2069"),
    *("\ufeff{n}. {x}", "\u200b{n}) {x}", "\u00a0{n}. {x}", "\u3000{n}. {x}", "> {n}. {x}"),
    *("{n}- {x}", "{n}– {x}", "{n}/ {x}", "{n}/4: {x}", "({n}/4) {x}", "{n}º {x}", "№{n}. {x}"),
    *("№ {n} {x}", "{n}\\. {x}", "{n}，{x}", "{n}\ufe0f\u20e3 {x}", "{n}.) {x}", "{n}.- {x}"),
    *("Satz {n}. {x}", "S{n}: {x}", "Sentence {n} - {x}", "Distractor {n}: {x}", "句子{n}：{x}"),
    *('{n}, "{x}"', "{n} {x}", "**{n}. {x}**", "{n}. _{x}_", "`{n}. {x}`", "- {n}. {x}"),
    *("<li>{x}</li>", "<sentence>{x}</sentence>", '<sentence id="{n}">{x}</sentence>'),
    *("{n}. <sentence>{x}</sentence>", "<s{n}>{x}</s{n}>", "| {n} | {x} |"),
    *('{{"id": {n}, "text": "{x}"}}', '{{"text": "{x}"}}', '"{x}",', '{n}. "{x}",', '{n}. "{x}".'),
    *("{n}. {x} (changed the day)", "{n}. {x} → Datum geändert", "{n}. {x} — changed the day"),
    *("{n}. Datum geändert: {x}", "{n}. “{x}” (Tag geändert)", "- {x} -> anderer Tag"),
    *("### Distractor {n}\n{x}", "**Distractor {n}**\n{x}", "### Distractor {n}\n\n{x}\n"),
    *("{n}. **Anderes Wort:**\n   {x}", "{n}. {x}\n   Änderung: ein Wort"),
]


@pytest.mark.parametrize("template", MARKS)
@pytest.mark.parametrize("frame", ["{}", "Hier sind die Sätze:\n\n{}\n\nIch hoffe, das hilft!"])
def test_marks(template: str, frame: str) -> None:
    check(frame.format(written(template, FOUR)), FOUR)


@pytest.mark.parametrize(
    ("template", "marks", "items", "original"),
    [
        ("{n}. {x}", ["I", "II", "III", "IV"], FOUR, GERMAN),
        ("({n}) {x}", ["i", "ii", "iii", "iv"], FOUR, GERMAN),
        ("Variante {n}: {x}", "ABCD", FOUR, GERMAN),
        ("**{n})** {x}", "ABCD", FOUR, GERMAN),
        ("{n}) {x}", "абвг", FOUR_RUSSIAN, RUSSIAN),
        ("{n}. {x}", "АБВГ", FOUR_RUSSIAN, RUSSIAN),
        ("Вариант {n}: {x}", "1234", FOUR_RUSSIAN, RUSSIAN),
        ("\u202b{n}. {x}", "۱۲۳۴", FOUR_PERSIAN, PERSIAN),
        ("{n}- {x}", "۱۲۳۴", FOUR_PERSIAN, PERSIAN),
        ("{n}) {x}", ["الف", "ب", "ج", "د"], FOUR_PERSIAN, PERSIAN),
        ("جمله {n}: {x}", "۱۲۳۴", FOUR_PERSIAN, PERSIAN),
        ("第{n}句：{x}", "一二三四", FOUR_CHINESE, CHINESE),
        ("句子{n}：{x}", "一二三四", FOUR_CHINESE, CHINESE),
        ("（{n}）{x}", "一二三四", FOUR_CHINESE, CHINESE),
        ("{n}，{x}", "1234", FOUR_CHINESE, CHINESE),
    ],
)
def test_marks_of_other_scripts(
    template: str, marks: str | list[str], items: list[str], original: str
) -> None:
    check(written(template, items, marks), items, original)


def test_marks_beside_numbers_of_the_sentence() -> None:
    times = ["10:30 Uhr kam der Zug an.", "11:45 Uhr kam der Zug an."]
    check(f"1.{times[0]}\n2.{times[1]}", times, "9:30 Uhr kam der Zug an.", 2)
    check(f"1. {times[0]}\n2.{times[1]}", times, "Um neun kam der Zug an.", 2)
    years = ["2018 war gut.", "2017 war gut."]
    check("1. 2018 war gut.\n2.2017 war gut.", years, "Das Jahr 2016 war gut.", 2)


def test_emphasis_inside_goes_and_stars_of_sums_stay() -> None:
    check(written("{n}. {x}", [one.replace("Rat", "**Rat**") for one in FOUR[:3]]), FOUR[:3], n=3)
    sums = ["Das kostet 5 * 3 Euro.", "Das kostet 5 * 4 Euro."]
    check(written("{n}. {x}", sums), sums, "Das kostet 5 * 2 Euro.", 2)


@pytest.mark.parametrize(
    ("text", "item", "original"),
    [
        ("1. Er ging zu M & Co. (Berlin).", "Er ging zu M & Co. (Berlin).", "Er ging zu K & Co."),
        ("1. Er heißt „Bob“ (Robert).", "Er heißt „Bob“ (Robert).", "Er heißt Bernd."),
        ("1. Es war gut (2018).", "Es war gut (2018).", "Es war gut (2020)."),
        ('1. "Nein." – sagte er.', '"Nein." – sagte er.', '"Ja." – sagte er.'),
        ("1. Köln: Der Rat tagt.", "Köln: Der Rat tagt.", "Bonn: Der Rat tagt."),
        ("1. Aus A → B wird C.", "Aus A → B wird C.", "Aus A → D wird C."),
    ],
)
def test_what_the_sentence_itself_may_have(text: str, item: str, original: str) -> None:
    check(text, [item], original, 1)


@pytest.mark.parametrize(
    "text",
    [
        f"1- {GERMAN}\n2- {GERMAN}",
        f"<sentence>{GERMAN}</sentence>\n<sentence>{GERMAN}</sentence>",
        f"Original: {GERMAN}\nOriginal: {GERMAN}",
        f"1. {GERMAN} (unverändert)\n2. {GERMAN} (unchanged)",
        f"1. {GERMAN[:-1]} (unverändert).\n2. „{GERMAN}“ (unverändert)",
        f"1. {GERMAN} → unverändert\n2. Original: {GERMAN}",
    ],
)
def test_the_original_is_never_taken(text: str) -> None:
    got = parse_distractors(text, n=2, original=GERMAN)
    assert (got.items, got.status, got.rejected) == ([], "short", {"equals_original": 2})


def test_a_table_with_a_header() -> None:
    rows = "\n".join(f"| {n} | {item} | Tag |" for n, item in enumerate(FOUR, 1))
    check(f"| Nr | Satz | Änderung |\n|---|---|---|\n{rows}", FOUR)


WORDS = ["Montag", "alt", "ab", "Bund"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"changes": WORDS, "sentences": FOUR}),
        json.dumps({"wechsel": WORDS, "liste": FOUR}),
        json.dumps({"language": "German", **{str(n): one for n, one in enumerate(FOUR, 1)}}),
        json.dumps({"n": 4, **{str(n): one for n, one in enumerate(FOUR, 1)}}),
        json.dumps({"original": GERMAN, **{f"satz_{n}": one for n, one in enumerate(FOUR, 1)}}),
        json.dumps({"sentence": GERMAN, "distractors": FOUR}),
        json.dumps({"distractors": {str(n): one for n, one in enumerate(FOUR, 1)}}),
        json.dumps([{"explanation": "Der Tag ist anders", "satz": one} for one in FOUR]),
        json.dumps([{"original": GERMAN, "modified": one} for one in FOUR]),
        json.dumps([f"{n}. {one}" for n, one in enumerate(FOUR, 1)]),
        json.dumps({"answer": written("{n}. {x}", FOUR)}),
        "\ufeff" + json.dumps(FOUR),
        str(FOUR),
        "{'distractors': " + str(FOUR) + "}",
        "```python\nsätze = " + str(FOUR) + "\n```",
        "[" + ", ".join(f"“{one}”" for one in FOUR) + "]",
        "<answer>" + written("{n}. {x}", FOUR) + "</answer>",
        "<br>".join(FOUR),
    ],
)
def test_structured_lists(text: str) -> None:
    check(text, FOUR)


NUMBERED = written("{n}. {x}", FOUR)
OPEN = [one[:-1] for one in FOUR]


@pytest.mark.parametrize(
    "text",
    [
        "Wichtige Elemente:\n1. Rat\n2. Gesetz\n3. Montag\n\nSätze:\n" + NUMBERED,
        "Plan:\n" + written("{n}. {x}", FOUR[::-1]) + "\n\nFinal list:\n" + NUMBERED,
        NUMBERED + "\n\nErklärungen:\n1. Der Tag.\n2. Das Wort neu.\n3. Das Verb.\n4. Der Rat.",
        NUMBERED + "\n\nErklärungen:\n5. Der Tag wurde geändert.\n6. Das Wort neu.",
        "Wer:\n" + written("{n}. {x}", FOUR[:2]) + "\n\nWann:\n" + written("{n}. {x}", FOUR[2:]),
        "Änderungen:\n- Montag\n- neu\n- ab\n- Rat\n\nSätze:\n- " + "\n- ".join(FOUR),
        "\n".join(FOUR) + "\nMelde dich, wenn du mehr brauchst!",
        "Hier ist die Liste: 1. " + FOUR[0] + "\n" + written("{n}. {x}", FOUR[1:], "234"),
    ],
)
def test_the_right_list_is_taken(text: str) -> None:
    check(text, FOUR)


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_the_last_sentence_takes_no_closing_words(gap: str) -> None:
    check(written("{n}. {x}", OPEN) + gap + "Let me know if you need more", OPEN)


@pytest.mark.parametrize(
    "thoughts",
    [
        "1. x y\n2. z</think>\n",
        '<think hidden="1">1. a\n2. b</think>',
        "[THINK]1. a[/THINK]",
        "<seed:think>1. a</seed:think>",
        "<thinking>1. a</thinking>",
        "<reasoning>1. a</reasoning>",
        "<|channel|>analysis<|message|>1. a<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_thoughts_are_no_list(thoughts: str) -> None:
    check(thoughts + NUMBERED, FOUR)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, I can't do that. Reasons:\n1. It may mislead.\n2. It may harm people.",
        "1. I'm sorry, but I cannot help with that.",
        "Es tut mir leid, das geht nicht. Gründe:\n1. Es ist falsch.\n2. Es schadet.",
        "1. Je suis désolé, je ne peux pas.\n2. Autre.",
        "1. 对不起，我不能。",
        "1. К сожалению, нет.\n2. Нельзя.",
        "- متأسفم، نمی‌توانم.",
        '["I\'m sorry, I cannot do that."]',
    ],
)
def test_refusals_in_lists(text: str) -> None:
    check(text, [], status="refusal")


def test_good_items_behind_an_apology_are_kept() -> None:
    check("Sorry for the wait! Here:\n" + NUMBERED, FOUR)
    items = ["I can't come to the meeting on Monday.", "I can come to the party on Monday."]
    check(written("{n}. {x}", items), items, "I can come to the meeting on Monday.", 2)


@pytest.mark.parametrize(
    ("text", "items", "original"),
    [
        (" ".join(f"{n}. {x}" for n, x in zip("1234", FOUR, strict=True)), FOUR, GERMAN),
        (" ".join(f"({n}) {x}" for n, x in zip("1234", FOUR, strict=True)), FOUR, GERMAN),
        ("Hier: " + " ".join(f"{n}. {x}" for n, x in enumerate(OPEN, 1)), OPEN, GERMAN),
        ("".join(f"{n}、{x}" for n, x in enumerate(FOUR_CHINESE, 1)), FOUR_CHINESE, CHINESE),
        (
            "以下：" + "".join(f"{n}、{x}" for n, x in enumerate(FOUR_CHINESE, 1)),
            FOUR_CHINESE,
            CHINESE,
        ),
        ("".join(map("{}{}".format, "①②③④", FOUR_CHINESE)), FOUR_CHINESE, CHINESE),
        (" ".join(map("{}. {}".format, "۱۲۳۴", FOUR_PERSIAN)), FOUR_PERSIAN, PERSIAN),
        (" ".join(map("{}) {}".format, "1234", FOUR_RUSSIAN)), FOUR_RUSSIAN, RUSSIAN),
    ],
)
def test_lists_in_one_line(text: str, items: list[str], original: str) -> None:
    check(text, items, original)


def test_a_short_list_in_one_line_is_cut_at_its_sentences() -> None:
    text = " ".join(f"{n}. {x}" for n, x in enumerate(FOUR[:3], 1))
    check(text, FOUR[:3], status="short")
    check(
        "1. Der Rat hat am 2. Mai das neue Gesetz angenommen.",
        ["Der Rat hat am 2. Mai das neue Gesetz angenommen."],
        status="short",
    )


@pytest.mark.parametrize(
    ("lines", "original"),
    [
        (
            ["3. Mai war der Tag der Wahl.", "12. Oktober war der Tag der Wahl."],
            "2. Mai war der Tag der Wahl.",
        ),
        (
            ["1. Mai war der Tag der Wahl.", "3. Mai war der Tag der Wahl."],
            "2. Mai war der Tag der Wahl.",
        ),
        (
            ["2019 war das Jahr der Wahl.", "2018 war das Jahr der Wahl."],
            "2017 war das Jahr der Wahl.",
        ),
        (
            ["1 Mensch starb am Montag.", "2 Menschen starben am Montag."],
            "4 Menschen starben am Montag.",
        ),
        (["A. Müller kam am Montag.", "B. Müller kam am Montag."], "C. Müller kam am Montag."),
    ],
)
def test_numbers_and_letters_of_the_sentences_stay(lines: list[str], original: str) -> None:
    check("\n".join(lines), lines, original, 2)
    check(written("{n}. {x}", lines), lines, original, 2)


@pytest.mark.parametrize("marks", ["01", "13", "34"])
def test_numbers_that_begin_elsewhere(marks: str) -> None:
    check(written("{n}. {x}", FOUR[:2], marks), FOUR[:2], n=2)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_finish_reasons_of_cut_answers(finish: str) -> None:
    text = written("{n}. {x}", FOUR[:3])
    got = parse_distractors(text, n=4, original=GERMAN, finish_reason=finish)
    assert (got.items, got.status) == (FOUR[:2], "truncated")


HOSTILE = [
    *("1. a ", "1. x\n", "- x\n", "x\n", "1\n", "> ", "①", "1、", "I. a\n", "а) a\n", "1 a\n"),
    *("Satz 1. ", "第一", "1️⃣ ", "| 1 | x |\n", "<li>a", "<sentence>", "<think ", "</think>"),
    *(
        "**a ",
        "_a ",
        "`a",
        "→ ",
        "x. (",
        "a: ",
        "['a', ",
        "[“a”",
        '{"id":1,"text":"x"}\n',
        "\u200f",
    ),
    *(
        "accuracy: 3 ",
        "accuracy (",
        "accuracy\n'\"",
        "| accuracy | fluency |\n",
        "1 of ",
        "changed ",
    ),
    *("[THINK]", "<|channel|>analysis<|message|>", '"accuracy": [', '{"tags": ["de"]} ', "de en\n"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_long_hostile_answers_take_less_than_a_second(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    parse_distractors("1. a", n=4, original=GERMAN)
    for parse in (
        lambda: parse_distractors(text, n=4, original=GERMAN),
        lambda: parse_ratings(text),
        lambda: parse_tags(text, ["a", "b"]),
        lambda: parse_verdict(text),
    ):
        start = time.process_time()
        with suppress(ParseError):
            parse()
        assert time.process_time() - start < 1.0
