"""Distractors: similarities, checks, and the generator by rule."""

from __future__ import annotations

import csv
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray.errors import ConfigError
from polyray.files import resolve
from polyray.text.distractors.checks import DistractorChecks, DistractorLimits
from polyray.text.distractors.edits import EditContext, Names, alternatives, edits_of
from polyray.text.distractors.rules import RuleGenerator, apply_edits
from polyray.text.distractors.similarity import bin_of, edit_similarity, sibling_jaccard
from polyray.text.distractors.wordlists import WORDLISTS, word_swaps
from polyray.text.keys import matching_key

LEXICON = {
    "house": ["Haus", "Gebäude"],
    "building": ["Haus", "Gebäude", "Bau"],
    "bank": ["Bank", "Ufer"],
    "bench": ["Bank"],
    "shore": ["Ufer", "Küste"],
    "coast": ["Küste"],
}


def _sentences() -> list[dict[str, str]]:
    with resolve("sample:clsd/sample.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_figures_of_the_published_data(data_root: Path) -> None:
    """Mean and deviation of the Jaccard, and the bins: the paper's own figures."""
    bins: dict[str, int] = {}
    values: list[float] = []
    for year in ("2019", "2021"):
        path = data_root / "clsd" / f"CLSD_wmt{year}_adversarial_dataset.csv"
        with path.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                for code in ("de", "fr"):
                    values += sibling_jaccard([row[f"{code}_adv{k}"] for k in range(1, 5)])
                for k in range(1, 5):
                    name = bin_of(edit_similarity(row["French"], row[f"fr_adv{k}"]))
                    bins[name] = bins.get(name, 0) + 1
    assert round(statistics.fmean(values), 2) == 0.47
    assert round(statistics.pstdev(values), 2) == 0.17
    counts = [bins[name] for name in ("0.9-1.0", "0.8-0.9", "0.7-0.8", "0.6-0.7", "0.3-0.6")]
    assert counts == [1120, 2138, 2951, 2394, 861]


def test_reasons_of_the_checks() -> None:
    original = "Der Bundestag hat das neue Gesetz am Donnerstag angenommen."
    checks = DistractorChecks("de", DistractorLimits(edit_similarity=(0.5, 1.0)))

    def reason(text: str, *siblings: str) -> str | None:
        return checks.reason(text, original, siblings)

    good = "Der Bundestag hat das neue Gesetz am Donnerstag abgelehnt."
    assert reason(good) is None
    assert reason("\u200b ") == "empty"
    assert (
        reason("der Bundestag hat das neue GESETZ am Donnerstag angenommen!") == "equals_original"
    )
    assert reason(good.upper(), good) == "duplicate"
    assert reason("Es schneit.") == "edit_similarity_low"
    english = "The Bundestag has passed the new act on Thursday, as was announced."
    assert DistractorChecks("de").reason(english, original) == "wrong_language"
    lenient = DistractorChecks("de", DistractorLimits(language=False))
    assert lenient.reason(english, original) is None
    narrow = DistractorChecks("de", DistractorLimits(jaccard=(0.95, 1.0)))
    assert narrow.reason(good, original) == "jaccard_low"
    close = DistractorChecks("de", DistractorLimits(edit_similarity=(0.1, 0.6)))
    assert close.reason(good, original) == "edit_similarity_high"
    with pytest.raises(ValueError, match="lower one first"):
        DistractorLimits(jaccard=(0.9, 0.1))


def test_alternatives_are_of_another_sense() -> None:
    found = alternatives(LEXICON)
    assert "gebäude" not in found  # "house" and "building" say that it is the same as Haus
    assert found["bank"] == ["Ufer"]
    assert found["ufer"] == ["Bank", "Küste"]


def test_each_rule_changes_what_it_says() -> None:
    names = Names("en")
    names.learn("They met in Paris and in Rome.")
    context = EditContext("en", names, {"festival": ["holiday"]})
    text = "On Monday 1,500 people came to the large festival in Berlin and it was not cold."
    found = edits_of(text, context, random.Random(1))
    assert {edit.new for edit in found["entity"]} == {"Paris", "Rome"}
    assert {text[edit.start : edit.end] for edit in found["number"]} == {"1,500"}
    assert all(len(edit.new) == 5 and edit.new[1] == "," for edit in found["number"])
    assert {"small", "hot"} <= {edit.new for edit in found["opposite"]}
    assert {text[edit.start : edit.end] for edit in found["series"]} == {"Monday"}
    assert all(edit.new.endswith("day") and edit.new[0].isupper() for edit in found["series"])
    assert [edit.new for edit in found["lexicon"]] == ["holiday"]
    (negation,) = found["negation"]
    assert apply_edits(text, [negation]).endswith("it was cold.")


@pytest.mark.parametrize(
    ("code", "text", "changed"),
    [
        ("en", "She has seen it.", "She has not seen it."),
        ("de", "Er hat ein Haus.", "Er hat kein Haus."),
        ("de", "Er kommt nicht heute.", "Er kommt heute."),
        ("fr", "Il est parti.", "Il n'est pas parti."),
        ("fr", "Elle n'a pas fini.", "Elle a fini."),
        ("fr", "Ils ne sont plus seuls.", "Ils sont seuls."),
    ],
)
def test_negation(code: str, text: str, changed: str) -> None:
    context = EditContext(code, Names(code), {}, ("negation",))
    edits = edits_of(text, context, random.Random(0)).get("negation", [])
    assert changed in [apply_edits(text, [edit]) for edit in edits]


def test_names_in_german_are_those_of_the_translation() -> None:
    names = Names("de")
    spans = names.spans(
        "Der Minister sprach mit Angela Merkel in Berlin.", "A Berlin, Angela Merkel"
    )
    text = "Der Minister sprach mit Angela Merkel in Berlin."
    assert [text[start:end] for start, end, _ in spans] == ["Angela Merkel", "Berlin"]


@pytest.mark.parametrize("code", sorted(WORDLISTS))
def test_word_lists_never_swap_a_word_for_itself(code: str) -> None:
    for kind in ("opposites", "series"):
        for word, others in word_swaps(code, kind).items():
            assert word == word.lower()
            assert word not in others
            assert others


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 43), st.sampled_from(["de", "fr"]), st.integers(0, 5), st.integers(1, 5))
def test_the_same_seed_and_id_give_the_same_distractors(
    place: int, code: str, seed: int, n: int
) -> None:
    """In whatever order; and what comes out passes the checks and is made by its edits."""
    rows = _sentences()
    own, other = ("German", "French") if code == "de" else ("French", "German")
    pairs = [(row[own], row[other]) for row in rows]
    checks = DistractorChecks(code, DistractorLimits(language=False))

    def made(before: int) -> list[str]:
        generator = RuleGenerator(code, pairs, seed=seed)
        for text, translation in pairs[:before]:
            generator.generate(text, "other", checks, translation=translation)
        text, translation = pairs[place]
        found = generator.generate(text, rows[place]["Index"], checks, n=n, translation=translation)
        keys = {matching_key(item.text) for item in found.items} | {matching_key(text)}
        assert len(found.items) <= n
        assert len(keys) == len(found.items) + 1
        for item in found.items:
            assert item.text == apply_edits(text, item.edits)
            assert edit_similarity(item.text, text) >= 0.3
        return [item.text for item in found.items]

    assert made(0) == made(3)


def test_most_sentences_get_all_their_distractors() -> None:
    rows = _sentences()
    pairs = [(row["German"], row["French"]) for row in rows]
    generator, checks = RuleGenerator("de", pairs), DistractorChecks("de")
    found = [
        generator.generate(t, str(at), checks, translation=f) for at, (t, f) in enumerate(pairs)
    ]
    assert sum(len(one.items) == 4 for one in found) >= 38
    other = RuleGenerator("de", pairs, seed=7)
    again = [other.generate(t, str(at), checks, translation=f) for at, (t, f) in enumerate(pairs)]
    assert [one.items for one in again] != [one.items for one in found]


def test_a_rule_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="rhyme"):
        RuleGenerator("de", rules=["rhyme"])


@given(st.text(max_size=60))
@settings(deadline=None)
def test_no_text_breaks_the_rules(text: str) -> None:
    for code in ("en", "de", "fr", "zh"):
        generator = RuleGenerator(code, [(text, "")], {"abc": ["def"]})
        checks = DistractorChecks(code, DistractorLimits(language=False))
        for item in generator.generate(text, "x", checks).items:
            assert item.text != text
