"""Lexicon hygiene: which pairs go, why, and what the report says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyray.collections.lexicon import read_lexicon
from polyray.errors import ConfigError
from polyray.text.lexicon_hygiene import EXAMPLES, HygieneSettings, clean_lexicon

LEXICON = {
    "to": ["kohti"],
    "headed": ["expressed with the case of the headword", "otsikoitu"],
    "ship": ["in inessive or illative case", "laiva (iso)", "laiva", "alus"],
    "kind": ["-ин", "-mainen", "laji"],
    "way": ["tapa/keino", "...", "tie"],
    "late": ["joka on hyvin kovin myöhässä", "myöhäinen"],
    "word": ["слово", "sana"],
    "-er": ["tekijä"],
    "слово": ["sana"],
    "odd": ["short: outo", "(vain huomautus)"],
}


def reasons(lexicon: Any, **options: Any) -> tuple[Any, dict[str, int]]:
    target = options.pop("target", "fi")
    source = options.pop("source", "en")
    made, report = clean_lexicon(lexicon, HygieneSettings(**options), source=source, target=target)
    return made, report.dropped


def test_every_rule() -> None:
    made, dropped = reasons(LEXICON)
    assert made == {
        "headed": ["otsikoitu"],
        "ship": ["laiva", "alus"],
        "kind": ["laji"],
        "way": ["tie"],
        "late": ["myöhäinen"],
        "word": ["sana"],
        "odd": ["outo"],
    }
    assert dropped == {
        "no word": 1,
        "stop word": 1,
        "markup": 2,
        "affix": 3,
        "gloss": 2,
        "too long": 1,
        "wrong script": 2,
        "repeat": 1,
    }


def test_each_rule_can_be_off() -> None:
    rules = ("stop_words", "remarks", "markup", "affixes", "glosses", "scripts")
    nothing = dict.fromkeys(rules, False)
    made, dropped = reasons(LEXICON, **nothing, max_words=None)
    assert dropped == {"no word": 1}
    assert sum(map(len, made.values())) == sum(map(len, LEXICON.values())) - 1
    for name, reason in (
        ("stop_words", "stop word"),
        ("affixes", "affix"),
        ("glosses", "gloss"),
        ("scripts", "wrong script"),
    ):
        _, dropped = reasons(LEXICON, **{name: False})
        assert reason not in dropped


def test_true_translations_stay() -> None:
    kept: dict[str, dict[str, list[str]]] = {
        "de": {"verb": ["finites Verb"], "of age": ["in der Tat"], "e-mail": ["E-Mail", "A-Dur"]},
        "fr": {"box": ["case à cocher"], "gold": ["or"], "egg": ["l'œuf"]},
        "zh": {"karaoke": ["卡拉OK"], "reasonable": ["通情达理的"]},
        "fa": {"books": ["کتاب\u200cها"], "read": ["خواندن"]},
        "ru": {"broadcast": ["TV-передача"], "1990": ["1990"]},
    }
    for code, lexicon in kept.items():
        assert reasons(lexicon, target=code) == (lexicon, {})
    assert reasons({"house": ["the case"]}, target="en", source="de")[0] == {"house": ["the case"]}
    assert reasons({"der": ["the"], "haus": ["house"]}, target="en", source="de") == (
        {"haus": ["house"]},
        {"stop word": 1},
    )


def test_senses() -> None:
    assert reasons({"run": ["a", "b", "c"]}, max_senses=2) == ({"run": ["a", "b"]}, {"sense": 1})
    weighted = {"run": {"a": 1.0, "b": 3.0, "c (x)": 2.0, "c": 9.0}}
    made, dropped = reasons(weighted, max_senses=2)
    assert made == {"run": {"b": 3.0, "c": 9.0}}
    assert dropped == {"repeat": 1, "sense": 1}


def test_long_entries_of_a_language_without_spaces() -> None:
    _, dropped = reasons({"x": ["第二次世界大战后生育高峰期", "战争"]}, target="zh", max_words=5)
    assert dropped == {"too long": 1}


def test_own_stop_list_and_language(tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("ship\n", encoding="utf-8")
    made, report = clean_lexicon(
        {"ship": ["laiva"], "to": ["kohti"]}, HygieneSettings(stop_list=str(tmp_path / "stop"))
    )
    assert made == {"to": ["kohti"]}
    assert report.used == {"stop words": "stop, 1 words", "scripts": "Latn to any"}
    with pytest.raises(ConfigError):
        clean_lexicon(LEXICON, target="xx")


def test_the_report_adds_up(data_root: Path) -> None:
    lexicon = read_lexicon(data_root / "lexicons" / "en-fa.tsv")
    made, report = clean_lexicon(lexicon, target="fa")
    assert (report.headwords, report.pairs) == (8_837, 13_100)
    assert (len(made), sum(map(len, made.values()))) == (report.headwords_kept, report.pairs_kept)
    assert sum(report.dropped.values()) == report.pairs - report.pairs_kept
    # transliterations in Latin letters and the like; a twentieth of all, not half of it
    assert report.dropped["wrong script"] > 100
    assert 0.01 < 1 - report.pairs_kept / report.pairs < 0.10
    assert "to" in lexicon
    assert "to" not in made
    for word, translations in made.items():
        assert translations
        assert word in lexicon
    for reason, shown in report.examples.items():
        assert 0 < len(shown) <= min(EXAMPLES, report.dropped[reason])
        for word, translation in shown:
            assert translation in lexicon[word]
    facts = json.loads(json.dumps(report.facts(), ensure_ascii=False))
    assert facts["dropped"] == report.dropped
    table = report.table("en-fa")
    assert [row[0] for row in table.rows] == [*report.dropped, "all dropped"]
    assert table.caption.startswith("en-fa: ")
    again, second = clean_lexicon(made, target="fa")
    assert (again, second.pairs) == (made, second.pairs_kept)


def test_finnish_glosses(data_root: Path) -> None:
    lexicon = read_lexicon(data_root / "lexicons" / "en-fi.tsv")
    gloss = "expressed with the case of the headword"
    assert gloss in lexicon["to"]
    made, report = clean_lexicon(lexicon, HygieneSettings(stop_words=False), target="fi")
    assert gloss not in made["to"]
    assert report.dropped["gloss"] < 100
