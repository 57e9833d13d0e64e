"""Code switching. Expected texts: the code-switching case."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyray.errors import ConfigError
from polyray.records import Topic
from polyray.text.switching import switch, switch_topics

LEXICON = {
    "house": ["haus", "gebäude"],
    "green": ["grün"],
    "river": ["fluss", "strom"],
    "the": ["die"],
    "old": ["alt"],
    "bank": ["ufer", "bank"],
    "new": ["neu"],
}
TEXT = 'The "old" House, near the GREEN river; NEW-old bank.  Houses\tburn'


def test_texts_of_the_cases(cases: Path) -> None:
    folder = cases / "H18_code_switch"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    lines = (folder / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    sentences = {key: text for key, _, text in (line.partition("\t") for line in lines)}
    for key, text in sentences.items():
        assert switch(text, LEXICON, rate=0.0, key=key).text == text
    right = expected["rate_1.0"]
    for seed in range(20):
        made = {
            k: switch(text, LEXICON, rate=1.0, seed=seed, key=k) for k, text in sentences.items()
        }
        pattern = right["s1"].split(" ", 1)[1].split(" : ")[0]
        assert re.fullmatch(pattern, made["s1"].text)
        assert made["s2"].text == sentences["s2"]
        assert made["s3"].text in right["s3"]
        assert made["s3"].replaced == (made["s3"].text != "bank")
        assert made["s3"].replaceable == 1
        assert made["s4"] == ("", 0, 0, 0, ())
        assert re.fullmatch(right["s5"].split(" ", 1)[1], made["s5"].text)
        assert made["s6"].text == sentences["s6"]


def test_rate_out_of_range() -> None:
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match="rate"):
            switch("a", LEXICON, rate=rate, key="q")


def test_texts_do_not_depend_on_order_or_shards() -> None:
    topics = [Topic(f"q{n}", TEXT, f"the river {n}") for n in range(100)]
    whole, counts = switch_topics(topics, LEXICON, rate=0.5, seed=42, language="de")
    shuffled = random.Random(1).sample(topics, len(topics))
    for shards in (1, 2, 8):
        parts = [
            switch_topics(shuffled[at::shards], LEXICON, rate=0.5, seed=42, language="de")
            for at in range(shards)
        ]
        together = sorted((t for part, _ in parts for t in part), key=lambda t: int(t.topic_id[1:]))
        assert together == whole
        assert sum(c["replaced"] for _, c in parts) == counts["replaced"]
    assert {t.language for t in whole} == {"de"}
    assert len({t.title for t in whole}) > 20  # every query has its own draws
    other, _ = switch_topics(topics, LEXICON, rate=0.5, seed=43, language="de")
    assert other != whole


def test_rates_are_reported() -> None:
    topics = [Topic(f"q{n}", "the green house", "unknown river") for n in range(1000)]
    _, counts = switch_topics(topics, LEXICON, rate=0.5, seed=42, language="de")
    assert counts["tokens"] == 5000
    assert counts["replaceable"] == 4000
    # binomial(4000, 0.5): standard deviation of the share 0.0079, so 0.04 is five of them
    assert counts["rate_of_replaceable"] == pytest.approx(0.5, abs=0.04)
    assert counts["rate_of_tokens"] == counts["replaced"] / 5000
    _, none = switch_topics([], LEXICON, rate=0.5, seed=42, language="de")
    assert none["rate_of_replaceable"] == none["rate_of_tokens"] == 0.0


DRAWN = [
    'The "old" House, near the GRÜN river; NEU-old ufer.  Houses\tburn',
    'The "alt" Gebäude, near the GREEN river; NEU-old bank.  Houses\tburn',
    'Die "old" House, near die GRÜN river; NEU-old bank.  Houses\tburn',
]


def test_the_draws_stay_as_they_are() -> None:
    # Fixed by this implementation: results of earlier runs must come again.
    made = [switch(TEXT, LEXICON, seed=42, key=f"q{n}").text for n in range(3)]
    assert made == DRAWN


def test_keys_find_other_forms_of_a_word() -> None:
    lexicon = {"علی": ["Ali"], "zürich": ["Zurich"]}
    assert switch("علي Zu\u0308rich", lexicon, rate=1.0, key="q").text == "Ali Zurich"


def test_case_is_carried_over() -> None:
    lexicon = {"i": ["ich"], "street": ["straße"], "cat": ["Xalol"], "bbc": ["bbc"], "x": []}
    made = switch("I STREET Street cat BBC x", lexicon, rate=1.0, key="q")
    assert made.text == "Ich STRASSE Straße Xalol BBC x"
    assert (made.replaced, made.replaceable, made.tokens) == (4, 5, 6)


@given(st.text(), st.floats(0, 1))
def test_any_text_keeps_what_is_between_words(text: str, rate: float) -> None:
    assert switch(text, LEXICON, rate=0.0, key="k").text == text
    made = switch(text, LEXICON, rate=rate, key="k")
    assert 0 <= made.replaced <= made.replaceable <= made.tokens
    assert switch(text, {}, rate=1.0, key="k").text == text
