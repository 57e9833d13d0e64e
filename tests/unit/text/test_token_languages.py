"""Word tokens and their languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray.collections.topics import read_topics
from polyray.errors import InputError
from polyray.files import resolve
from polyray.text.mixing import code_mixing, write_tags
from polyray.text.token_languages import (
    LinguaTagger,
    most_probable,
    read_matching_tags,
    tag_by_script,
    word_tokens,
)


def test_tokens_are_those_of_nltk_and_jieba() -> None:
    assert word_tokens("Don't re-check, please (now).", "de") == [
        "Do", "n't", "re-check", ",", "please", "(", "now", ")", ".",
    ]  # fmt: skip
    assert word_tokens("我要 book 一张 票", "zh") == ["我要", "book", "一张", "票"]
    assert word_tokens(" ", "zh") == word_tokens("", "de") == []


def test_scripts_decide_where_they_can() -> None:
    assert [tag_by_script(token, "ru") for token in ("Путин", "NATO", "75%", "«", "北京")] == [
        "ru", "en", "u", "u", "u",
    ]  # fmt: skip
    assert tag_by_script("check-کردن", "fa") == "en"
    assert tag_by_script("疫情x", "zh") == "zh"
    assert [tag_by_script(token, "de") for token in ("Haus", "2019", "Путин")] == [None, "u", "u"]


def test_lingua_on_mixed_queries() -> None:
    queries = {"q": ["Lärm", "von", "noisy", "neighbours", ",", "Gutachten", "1998"]}
    for stay in (0.5, 0.6):
        (tags,) = LinguaTagger(stay).tag(queries, "de").values()
        assert tags == ["de", "de", "en", "en", "u", "de", "u"]
    queries = {"q": ["Wapi", "naweza", "kupata", "vaccination", "certificate", "?"]}
    assert LinguaTagger().tag(queries, "sw")["q"] == ["sw", "sw", "sw", "en", "en", "u"]


@pytest.mark.parametrize("code", ["de", "so", "ru"])
def test_native_and_english_queries_of_the_sample_come_out_as_such(code: str) -> None:
    def mean(name: str, native: str) -> float:
        topics = read_topics(str(resolve(f"sample:queries/{name}_queries.tsv")), format="tsv")
        tokens = {t.topic_id: word_tokens(t.description, code) for t in topics}
        found = LinguaTagger(0.6).tag(tokens, code)
        values = [code_mixing(tags, native).cmi_native or 0.0 for tags in found.values()]
        return sum(values) / len(values)

    assert mean(code, native=code) < 3
    assert mean("en", native="en") < 3


def test_neighbours_outweigh_a_doubtful_word_and_not_a_sure_one() -> None:
    assert most_probable([0.1, 0.6, 0.1], 0.5) == [False, True, False]
    assert most_probable([0.1, 0.6, 0.1], 0.7) == [False, False, False]
    assert most_probable([0.1, 0.99, 0.1], 0.7) == [False, True, False]
    assert most_probable([], 0.7) == []


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), max_size=8), st.floats(0.3, 0.9))
def test_the_sequence_is_the_most_probable_of_all(english: list[float], stay: float) -> None:
    def probability(path: list[bool]) -> float:
        product = 1.0
        for place, one in enumerate(path):
            product *= max(english[place] if one else 1.0 - english[place], 1e-6)
            if place:
                product *= stay if one == path[place - 1] else 1.0 - stay
        return product

    found = most_probable(english, stay)
    assert len(found) == len(english)
    every = [
        [bool(number >> place & 1) for place in range(len(english))]
        for number in range(2 ** len(english))
    ]
    assert probability(found) >= max(map(probability, every)) * (1 - 1e-9)


def test_tags_from_a_file_have_to_fit(tmp_path: Path) -> None:
    path = tmp_path / "tags.tsv"
    queries = {"q1": ["das", "Meeting"], "q2": ["ok"]}
    write_tags(path, {"q1": ["de", "en"], "q2": ["en"], "other": ["de"]})
    assert read_matching_tags(path, queries, "de") == {"q1": ["de", "en"], "q2": ["en"]}
    write_tags(path, {"q1": ["deu", "eng"], "q2": ["nl"]})
    with pytest.raises(InputError, match=r"tagged deu.*write de(.|\n)*tagged eng.*write en"):
        read_matching_tags(path, queries, "de")
    write_tags(path, {"q1": ["de"]})
    with pytest.raises(InputError, match="1 tags for 2 tokens") as error:
        read_matching_tags(path, queries, "de")
    assert len(error.value.problems) == 2
