"""Variants of code switching, and what is said of every switched word."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyray.collections.lexicon import read_lexicon, reversed_lexicon
from polyray.config import validated
from polyray.errors import ConfigError, InputError, MissingPrerequisite
from polyray.text import switch_units
from polyray.text.parts_of_speech import PosTagger
from polyray.text.stop_words import packaged_stop_words, read_stop_words
from polyray.text.switch_settings import SwitchSettings
from polyray.text.switching import Replacement, Switched, Switcher, switch

LEXICON = {
    "a lot": ["viel"],
    "a lot of": ["eine Menge"],
    "lot": ["Los"],
    "the": ["die"],
    "house": ["haus", "wohn haus"],
    "a-bomb": ["Atombombe"],
    "u.s.": ["USA"],
}


def made(text: str, lexicon: Any, **options: Any) -> Switched:
    return Switcher(lexicon, SwitchSettings(**{"rate": 1.0, **options}))(text, "q1")


def check(text: str, result: Switched, carry_case: bool = True) -> None:
    """Replacements are in order, their places right, and all else is as it was."""
    rest, reached = "", 0
    for one in result.replacements:
        assert reached <= one.start < one.end <= len(text)
        assert text[one.start : one.end] == one.word
        new = result.text[one.new_start : one.new_end]
        assert new.casefold() == one.translation.casefold()
        assert carry_case or new == one.translation
        rest += text[reached : one.start] + new
        reached = one.end
    assert rest + text[reached:] == result.text
    assert result.replaced == len(result.replacements)


def test_every_switched_word_is_told() -> None:
    text = 'The HOUSE, "the house".'
    result = switch(text, {"house": ["haus"], "the": ["the"]}, rate=1.0, key="q1")
    assert result.text == 'The HAUS, "the haus".'
    assert result.replacements == (
        Replacement(4, 9, "HOUSE", 4, 8, "haus"),
        Replacement(16, 21, "house", 15, 19, "haus"),
    )
    assert result[1:4] == (2, 4, 4)
    check(text, result)


def test_places_in_the_sentences_of_the_cases(cases: Path) -> None:
    folder = cases / "H18_code_switch"
    lexicon = read_lexicon(folder / "lexicon_en_de.txt")
    lines = (folder / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    total = 0
    for line in lines:
        key, _, text = line.partition("\t")
        for seed in range(10):
            result = switch(text, lexicon, rate=0.7, seed=seed, key=key)
            check(text, result)
            total += result.replaced
    assert total > 30


@given(st.text(alphabet="the house aA-.'\u200c北京我们خانه", max_size=40), st.booleans())
def test_places_in_any_text(text: str, carry_case: bool) -> None:
    lexicon = LEXICON | {"北京": ["Beijing"], "我": ["I"], "خانه": ["house"]}
    options = {"multiword_headwords": True, "carry_case": carry_case}
    check(text, made(text, lexicon, **options), carry_case)
    spaced = made(text, lexicon, segmenter="lexicon", rate=0.5)
    for one in spaced.replacements:
        assert text[one.start : one.end] == one.word
        assert spaced.text[one.new_start : one.new_end].casefold() == one.translation.casefold()


def test_longest_headword_first() -> None:
    text = "A lot  of the lot; a, lot"
    assert made(text, LEXICON).text == "A Los  of die Los; a, Los"
    result = made(text, LEXICON, multiword_headwords=True)
    assert result.text == "Eine Menge die Los; a, Los"
    assert (result.replaced, result.replaceable, result.tokens) == (4, 4, 5)
    assert result.replacements[0] == Replacement(0, 9, "A lot  of", 0, 10, "eine Menge")
    single = made("a lot", LEXICON, multiword_headwords=True, multiword_translations=False)
    assert single.text == "viel"
    assert made("THE A-BOMB of the U.S. A lot", LEXICON, multiword_headwords=True).text == (
        "DIE ATOMBOMBE of die USA. Viel"
    )


def test_translations_of_several_words() -> None:
    seen = {made(f"house {n}", LEXICON, seed=n).text.split(" ", 1)[0] for n in range(20)}
    assert seen == {"haus", "wohn"}
    for seed in range(20):
        assert made("house", LEXICON, seed=seed, multiword_translations=False).text == "haus"
    none = made("of house", {"house": ["a b"]}, multiword_translations=False)
    assert (none.text, none.replaceable) == ("of house", 0)


def test_function_words_stay(tmp_path: Path) -> None:
    result = made("The house. Don\u2019t", LEXICON | {"don't": ["nicht"]}, content_words=True)
    assert result.text.startswith("The ")
    assert result.text.endswith(" Don\u2019t")
    assert result.replaceable == 1
    own = tmp_path / "stop.txt"
    own.write_text("# mine\nHouse  # a remark\n\na  lot\n", encoding="utf-8")
    options = {"content_words": True, "stop_words": str(own), "multiword_headwords": True}
    assert made("the house a lot", LEXICON, **options).text == "die house a Los"
    switcher = Switcher(LEXICON, SwitchSettings(**options))
    assert switcher.used == {"stop words": "stop.txt, 2 words"}
    (tmp_path / "empty").write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(InputError):
        read_stop_words(tmp_path / "empty")
    with pytest.raises(ConfigError, match="'de'"):
        made("x", LEXICON, content_words=True, source_language="deu")
    packaged = packaged_stop_words("en")
    assert packaged is not None
    assert "Whose" in packaged
    assert "river" not in packaged
    assert all(word == word.lower() for word in packaged.words)


def test_parts_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    def tag(words: Any) -> list[str]:
        return [{"very": "ADP", "house": "NOUN"}.get(word.lower(), "DET") for word in words]

    def tagger(name: str) -> PosTagger | None:
        return PosTagger("scripted 1", "universal", tag) if name == "any" else None

    monkeypatch.setattr(switch_units, "find_tagger", tagger)
    switch_units._tagger.cache_clear()
    lexicon = LEXICON | {"near": ["nah"], "old": ["alt"]}
    options = {"rate": 1.0, "content_words": True, "multiword_headwords": True, "tagger": "any"}
    switcher = Switcher(lexicon, SwitchSettings(**options))
    result = switcher("The old house near a lot", "q1")
    switch_units._tagger.cache_clear()
    assert result.text in ("The old haus near viel", "The old wohn haus near viel")
    assert (result.replaceable, result.tokens) == (2, 5)
    assert switcher.used["parts of speech"] == "scripted 1"
    for wrong in ({"tagger": "any"}, {"tagger": "any", "source_language": "de"}):
        with pytest.raises(ConfigError, match="content_words"):
            validated(SwitchSettings, wrong)


def test_without_a_tagger_the_list_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_units, "find_tagger", lambda name: None)
    switch_units._tagger.cache_clear()
    switcher = Switcher(LEXICON, SwitchSettings(rate=1.0, content_words=True, tagger="any"))
    switch_units._tagger.cache_clear()
    assert list(switcher.used) == ["stop words"]
    assert switcher("The lot", "q").text == "The Los"


def test_choice_by_weight() -> None:
    lexicon = {"bank": {"ufer": 3.0, "geldhaus": 1.0, "bank": 0.0}, "old": {"alt": 0.0}}
    texts = Counter(
        Switcher(lexicon, SwitchSettings(rate=1.0, choice="weight"))("bank", f"q{n}").text
        for n in range(2000)
    )
    assert set(texts) == {"ufer", "geldhaus"}
    # binomial(2000, 0.75): standard deviation 19.4
    assert texts["ufer"] == pytest.approx(1500, abs=97)
    assert made("old", lexicon, choice="weight").text == "alt"
    uniform = Counter(
        Switcher(lexicon, SwitchSettings(rate=1.0))("bank", f"q{n}").text for n in range(3000)
    )
    assert min(uniform.values()) > 850  # a third each; standard deviation 25.8
    with pytest.raises(ConfigError, match="weights"):
        made("bank", LEXICON, choice="weight")


def test_case_is_not_carried_where_it_is_off() -> None:
    assert made("THE House", {"house": ["Haus"], "the": ["die"]}, carry_case=False).text == (
        "die Haus"
    )


def test_chinese_by_the_longest_headwords() -> None:
    lexicon = {"北京": ["Beijing"], "北京大学": ["Peking University"], "我": ["I"], "爱": ["love"]}
    assert made("我爱北京大学。", lexicon).text == "Ilove北京大学。"  # characters, as ever
    text = "我爱北京大学和北京，A我2"
    result = made(text, lexicon, segmenter="lexicon")
    assert result.text == "I love Peking University和Beijing，A I 2"
    assert (result.replaced, result.tokens) == (5, 8)
    # every place holds in spite of the spaces put in
    assert [result.text[r.new_start : r.new_end] for r in result.replacements] == [
        r.translation for r in result.replacements
    ]
    assert made("a lot 北京", LEXICON | lexicon, segmenter="lexicon").text == "a Los Beijing"


def test_chinese_into_english_is_put_where_the_word_was() -> None:
    result = made("The house, Old House.", {"house": ["房子"], "old": ["老"]})
    assert result.text == "The 房子, 老 房子."


def test_chinese_by_jieba() -> None:
    lexicon = {"北京": ["Beijing"], "大学": ["university"], "天": ["sky"], "我": ["I"]}
    switcher = Switcher(lexicon, SwitchSettings(rate=1.0, segmenter="jieba"))
    result = switcher("我来到北京。今天 ok", "q1")
    assert result.text == "I来到Beijing。今天 ok"  # 天 in 今天 is no word of its own
    assert result.tokens == 5
    assert switcher.used["segmenter"].startswith("jieba ")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    switch_units._jieba.cache_clear()
    switch_units._simplemma.cache_clear()
    for options in ({"segmenter": "jieba"}, {"lemmas": True}):
        with pytest.raises(MissingPrerequisite, match="pip install"):
            made("a", LEXICON, **options)


def test_persian_keeps_its_joiners_and_its_order() -> None:
    # zero-width non-joiners, a vowel mark, Arabic letter forms; text is in logical order
    text = "کتاب\u200cها را می\u200cخوانم، خانهٔ بزرگ"
    lexicon = {"میخوانم": ["read"], "بزرگ": ["big"], "کتاب": ["book"]}
    result = made(text, lexicon)
    assert result.text == "کتاب\u200cها را read، خانهٔ big"
    assert [one.word for one in result.replacements] == ["می\u200cخوانم", "بزرگ"]
    check(text, result)
    into = made("I read the books, read!", {"read": ["می\u200cخوانم"], "books": ["کتاب\u200cها"]})
    assert into.text == "I می\u200cخوانم the کتاب\u200cها, می\u200cخوانم!"
    check("I read the books, read!", into)


def test_inflected_forms() -> None:
    lexicon = {"house": ["Haus"], "be": ["sein"], "taxi": ["Taxi"]}
    text = "Houses were HOUSES, taxis"
    assert made(text, lexicon).replaceable == 0
    result = made(text, lexicon, lemmas=True)
    assert result.text == "Haus sein HAUS, taxis"  # a translation that is the headword stays out
    assert (result.replaced, result.replaceable) == (3, 4)
    kept = made(text, lexicon, lemmas=True, content_words=True)
    assert kept.text == "Haus were HAUS, taxis"
    german = made("Häuser", {"haus": ["house"]}, lemmas=True, source_language="de")
    assert german.text == "House"
    with pytest.raises(ConfigError, match="'so'"):
        made("x", lexicon, lemmas=True, source_language="so")


def test_both_directions(data_root: Path) -> None:
    there = read_lexicon(data_root / "lexicons" / "en-de.tsv")
    back = reversed_lexicon(there)
    assert "river" in back["fluss"]
    assert made("Am Fluss", {"fluss": back["fluss"][:1]}, source_language="de").text != "Am Fluss"
    pairs = {(word, one) for word, ones in there.items() for one in ones}
    assert sum(map(len, back.values())) <= len(pairs)


def test_settings_come_from_yaml_values() -> None:
    settings = validated(SwitchSettings, {"rate": 0.3, "choice": "weight", "lemmas": True})
    assert settings.model_dump(mode="json") == json.loads(settings.model_dump_json())
    for wrong in ({"rate": 2}, {"choice": "best"}, {"source_language": "xx"}, {"rates": 1}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            validated(SwitchSettings, wrong)


def test_a_switcher_travels() -> None:
    switcher = Switcher(LEXICON, SwitchSettings(content_words=True, multiword_headwords=True))
    copy = pickle.loads(pickle.dumps(switcher))
    texts = [f"a lot of the house {n}" for n in range(50)]
    assert [copy(t, t) for t in texts] == [switcher(t, t) for t in texts]
