"""Ratings and preferences of people, and what is computed of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyray.errors import InputError
from polyray.files import resolve
from tasks.quality.human import (
    QueryKey,
    krippendorff_alpha,
    mean_ratings,
    preference_summary,
    rating_summary,
    read_preferences,
    read_ratings,
)
from tasks.quality.measure import agreement, english_words, kendall_tau, share_tagged

RATINGS = "queries,language,query_id,annotator,accuracy,fluency,realism\n"
VOTES = "queries,language,query_id,annotator,native,mixed,english\n"


def _write(path: Path, *rows: str, header: str = RATINGS) -> Path:
    path.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_means_are_over_queries_not_over_ratings(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "r.csv",
        "title,de,q1,a,3,2,1",
        "title,de,q1,b,3,2,",
        "title,de,q1,c,2,2,1",
        "title,de,q2,a,1,2,3",
    )
    judgments = read_ratings(path)
    means = mean_ratings(judgments)
    assert means[QueryKey("title", "de", "q1")]["accuracy"] == pytest.approx(8 / 3)
    found = rating_summary(judgments)
    assert found["accuracy"]["mean"] == pytest.approx((8 / 3 + 1) / 2)
    assert found["accuracy"]["majority"] == 1.0
    assert (found["realism"]["mean"], found["realism"]["annotators"]) == (2.0, 2)
    assert found["fluency"]["alpha"] is None  # all the same


def test_alpha_is_one_for_equal_ratings_and_low_for_opposite_ones(tmp_path: Path) -> None:
    rows = [
        f"t,de,q{n},{who},{n},1,{n if who == 'a' else 4 - n}" for n in (1, 2, 3) for who in "ab"
    ]
    judgments = read_ratings(_write(tmp_path / "r.csv", *rows))
    assert krippendorff_alpha(judgments, "accuracy", "ordinal") == pytest.approx(1.0)
    opposite = krippendorff_alpha(judgments, "realism", "ordinal")
    assert opposite is not None
    assert opposite < 0


def test_votes_are_those_of_queries_with_a_majority(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "p.csv",
        "t,so,q1,a,0,1,0",
        "t,so,q1,b,1,1,0",
        "t,so,q1,c,0,0,1",  # mixed has two of three
        "t,so,q2,a,1,0,0",
        "t,so,q2,b,0,1,0",
        "t,so,q2,c,0,0,1",  # no majority
        header=VOTES,
    )
    found = preference_summary(read_preferences(path))
    assert (found["queries"], found["annotators"], found["agreed"]) == (2, 3, 0.5)
    assert found["votes"] == {"native": 1.0, "mixed": 2.0, "english": 1.0}
    assert found["votes_all"] == {"native": 1.0, "mixed": 1.5, "english": 1.0}
    assert preference_summary([])["votes"]["native"] is None


def test_an_empty_cell_is_no_vote_and_one_person_no_majority(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "p.csv",
        "t,so,q1,a,,1,0",
        "t,so,q1,b,,,",  # judged nothing
        "t,so,q2,a,1,0,",
        "t,so,q2,b,1,0,",
        "t,so,q3,a,,,",
        header=VOTES,
    )
    found = preference_summary(read_preferences(path))
    # q1 has one judge, so that q2 alone can show agreement; q3 is judged by nobody
    assert (found["queries"], found["annotators"], found["agreed"]) == (2, 2, 1.0)
    assert found["votes"] == {"native": 2.0, "mixed": 0.0, "english": None}
    assert found["votes_all"] == {"native": 2.0, "mixed": 0.5, "english": 0.0}
    blank = _write(tmp_path / "b.csv", "t,so,q1,a,,,", "t,so,q1,b,,,", header=VOTES)
    empty = preference_summary(read_preferences(blank))
    assert (empty["queries"], empty["agreed"]) == (0, None)
    assert set(empty["votes_all"].values()) == {None}


def test_every_bad_line_is_named(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "r.csv",
        "t,de,q1,a,4,2,1",
        "t,de,q1,b,3,2",
        "t,de,q1,c,2,2,1",
        "t,de,q1,c,2,2,1",
        "t,de,,c,2,x,1",
    )
    with pytest.raises(InputError) as error:
        read_ratings(path)
    assert [problem.line for problem in error.value.problems] == [2, 3, 5, 6, 6]
    with pytest.raises(InputError, match="needed: queries"):
        read_ratings(_write(tmp_path / "p.csv", "t,de,q1,a,1,0,0", header=VOTES))


def test_the_samples_are_whole() -> None:
    ratings = read_ratings(resolve("sample:quality/ratings.csv"))
    preferences = read_preferences(resolve("sample:quality/preferences.csv"))
    assert len(ratings) == len(preferences) == 2 * 3 * 8 * 3
    assert 0.5 < (preference_summary(preferences)["agreed"] or 0) < 1


def test_sources_are_compared_token_by_token() -> None:
    first = {"q1": ["de", "en", "u"], "q2": ["de"]}
    second = {"q1": ["de", "de", "u"]}
    (found,) = agreement({"a": first, "b": second})
    assert (found["tokens"], found["differences"]) == (3, {"en/de": 1})
    assert found["same"] == pytest.approx(2 / 3)
    assert found["alpha"] is not None
    (same,) = agreement({"a": first, "b": first})
    assert (same["same"], same["alpha"]) == (1.0, 1.0)
    assert share_tagged(first, "de") == pytest.approx(2 / 3)
    assert share_tagged({"q": ["u"]}, "de") is None


def test_no_tagger_no_tags() -> None:
    tokens = {"q1": ["das", "self-made", "river"]}
    tags = {"q1": ["de", "en", "en"]}
    assert english_words(tokens, tags, None) == {"english_words": 2, "parts": {}}

    from polyray.text.parts_of_speech import PosTagger

    nouns = PosTagger("nouns", "universal", lambda own: ["NOUN"] * len(own))
    found = english_words(tokens, tags, nouns)
    assert found == {"english_words": 2, "parts": {"PCW": 1, "NOUN": 1}}


def test_kendall_tau() -> None:
    assert kendall_tau([1, 2, 3], [1.0, 2.5, 2.6])["tau"] == pytest.approx(1.0)
    assert kendall_tau([1, 2, 3], [3, 2, 1])["tau"] == pytest.approx(-1.0)
    assert kendall_tau([2, 2], [1, 3]) == {"tau": None, "p": None, "n": 2}
