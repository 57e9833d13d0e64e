"""Examples: what is read, what is left out, and that nothing depends on who reads it."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyray.errors import IndexDamaged, InputError
from polyray.training.examples import Examples, ExampleSource
from polyray.training.offsets import hash_ids
from polyray.training.recipes import Recipe

ENGLISH = {f"q{n}": f"old house {n}" for n in range(20)}
GERMAN = {key: f"altes Haus {key}" for key in ENGLISH}
PASSAGES = {f"p{n}": f"passage {n} — текст" for n in range(50)}


class Folder:
    """A folder with queries, passages and a lexicon; examples are written by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.texts("en.tsv", ENGLISH)
        self.texts("de.tsv", GERMAN)
        self.texts("passages.tsv", PASSAGES)
        (path / "en-de.tsv").write_text("old\talt\nhouse\tHaus\n")

    def texts(self, name: str, texts: dict[str, str]) -> None:
        lines = "".join(f"{key}\t{text}\n" for key, text in texts.items())
        (self.path / name).write_text(lines, encoding="utf-8")

    def lines(self, lines: Sequence[Any], name: str = "examples.jsonl") -> None:
        text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        (self.path / name).write_text(text, encoding="utf-8")

    def source(self, examples: str = "examples.jsonl", **given: Any) -> ExampleSource:
        values = {"queries": "{language}.tsv", "passages": "passages.tsv"}
        paths = {k: str(self.path / v) for k, v in {**values, "examples": examples}.items()}
        return ExampleSource(**{**paths, "nway": 3, **given})

    def recipes(self) -> list[Recipe]:
        lexicon = str(self.path / "en-{language}.tsv")
        return [
            Recipe(kind="mono", query_languages=("de",)),
            Recipe(kind="cross", query_languages=("de",)),
            Recipe(kind="mixed", query_languages=("de",), lexicon=lexicon, rate=1.0),
        ]

    def prepare(self, source: ExampleSource, seed: int = 1, **given: Any) -> list[Examples]:
        recipes = self.recipes()
        indexes = self.path / "indexes"
        return [
            Examples.prepare(source, one, indexes, seed=seed, alongside=recipes, **given)
            for one in recipes
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def scored(count: int = 20, pairs: int = 8) -> list[list[Any]]:
    draw = random.Random(5)
    return [
        [f"q{n}", *([f"p{p}", draw.random()] for p in draw.sample(range(50), pairs))]
        for n in range(count)
    ]


def test_the_recipes_differ_in_the_query_alone(folder: Folder) -> None:
    rows = scored()
    folder.lines(rows)
    mono, cross, mixed = folder.prepare(folder.source())
    by_query = {row[0]: dict(row[1:]) for row in rows}
    for i in range(len(mono)):
        one, two, three = mono[i], cross[i], mixed[i]
        number = one.query_id.removeprefix("q")
        assert one.query == f"old house {number}"
        assert two.query == f"altes Haus {one.query_id}"
        assert three.query == f"alt Haus {number}"
        assert one._replace(query="") == two._replace(query="") == three._replace(query="")
        assert one.language == "de"
        assert one.passages == tuple(PASSAGES[p] for p in one.passage_ids)
        assert one.scores == tuple(by_query[one.query_id][p] for p in one.passage_ids)
        assert one.passage_ids[0] == next(iter(by_query[one.query_id]))
    assert {mono.pair(i) for i in range(20)} == {(key, "de") for key in ENGLISH}
    assert len(list((folder.path / "indexes").iterdir())) == 1  # one folder serves all three


def test_examples_do_not_depend_on_process_or_order(folder: Folder) -> None:
    folder.lines(scored())
    mixed = folder.prepare(folder.source())[2]
    straight = [mixed.at(i) for i in range(60)]
    copy = pickle.loads(pickle.dumps(mixed))
    order = random.Random(1).sample(range(60), 60)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(40):  # files are opened anew, by several threads at the same time
            fresh = pickle.loads(pickle.dumps(copy))
            assert list(threads.map(fresh.at, order)) == [straight[i] for i in order]
    assert len(pickle.dumps(mixed)) < 4000
    assert straight[:20] != straight[20:40]  # another pass, another order and choice
    assert folder.prepare(folder.source(), seed=2)[2].at(0) != straight[0]
    assert mixed[:3] == straight[:3]
    assert mixed[-1] == straight[19]
    with pytest.raises(IndexError):
        mixed[20]


def test_every_choice_of_passages(folder: Folder) -> None:
    rows = scored(pairs=8)
    folder.lines(rows)
    order = {row[0]: [pair[0] for pair in row[1:]] for row in rows}
    drawn: dict[str, set[tuple[str, ...]]] = {}
    for choice in ("positive", "first", "random"):
        mono = folder.prepare(folder.source(choice=choice))[0]
        for i in range(200):
            example = mono.at(i)
            there = order[example.query_id]
            places = [there.index(p) for p in example.passage_ids]
            assert places == sorted(places)
            assert len(set(places)) == 3
            assert choice != "first" or places == [0, 1, 2]
            assert choice != "positive" or places[0] == 0
            drawn.setdefault(choice, set()).add(tuple(map(str, places)))
    assert len(drawn["positive"]) == 21  # 7 choose 2
    assert len(drawn["random"]) > 40  # of 56


def test_bad_lines_are_counted_and_listed_and_the_good_ones_used(folder: Folder) -> None:
    good = [["p0", 3.0], ["p1", 2.0], ["p2", 1.0]]
    folder.texts("en.tsv", {**ENGLISH, "blank": " \u200b"})
    folder.texts("de.tsv", {**{k: v for k, v in GERMAN.items() if k != "q3"}, "blank": "da"})
    folder.lines(
        [
            ["q0", *good],  # 1: fine
            ["nobody", *good],  # 2
            ["q1", *good, ["p99", 1.0]],  # 3: one passage less, still fine
            ["q2", ["p0", 1.0], ["p1", None], ["p2", "2.5"]],  # 4: too few
            '["q4", ["p0", 1.0], ["p1", NaN], ["p2", 1.0], ["p3", 1.0]]',  # 5: fine
            ["q3", *good],  # 6: not in German
            ["blank", *good],  # 7
            ["q5", ["p0", 1.0], ["p0", 2.0], ["p1", 1.0], ["p2", 1]],  # 8: the first p0 counts
            "no json",  # 9
            ["q6"],  # 10
            ["q6", ["p98", 1.0], *good],  # 11: its positive is missing
            "",  # 12
            ["q7", "p0", "p1"],  # 13: no scores
            {"a": 1},  # 14
            [True, *good],  # 15
        ]
    )
    mono = folder.prepare(folder.source())[0]
    report = mono.report
    assert sorted(example.query_id for example in mono) == ["q0", "q1", "q4", "q5"]
    assert (report.lines, report.used, report.pairs) == (15, 4, 12)
    assert report.counts == {
        "empty text in queries": 1,
        "not [qid, [pid, score], ...] or qid, pid+, pid-": 5,
        "query id does not exist": 1,
        "query is not there in every language": 1,
        "query has no text": 1,
        "passage id does not exist": 2,
        "score is not a finite number": 3,
        "passage twice in a line": 1,
        "fewer than 3 usable passages": 1,
        "first passage unusable": 1,
    }
    name = str(folder.path / "examples.jsonl")
    assert report.places["passage id does not exist"] == [
        f"{name}:3: passage id does not exist: 'p99'",
        f"{name}:11: passage id does not exist: 'p98'",
    ]
    assert report.places["query id does not exist"][0].startswith(f"{name}:2: ")
    assert report.places["fewer than 3 usable passages"] == [
        f"{name}:4: fewer than 3 usable passages: 1"
    ]
    assert report.places["empty text in queries"][0].startswith(f"{folder.path / 'en.tsv'}:21: ")
    five = next(example for example in mono if example.query_id == "q5")
    assert five.scores == (1.0, 1.0, 1.0)
    assert "p98" in "\n".join(report.notes())
    assert report.table("x").rows[1] == ("lines used", 4, "")


def test_only_twenty_of_a_kind_are_listed_and_nothing_left_is_one_error(folder: Folder) -> None:
    folder.lines([["q0", ["p0", 1], ["p1", 1], [f"none{n}", 1]] for n in range(50)])
    with pytest.raises(InputError) as caught:
        folder.prepare(folder.source())
    text = str(caught.value)
    assert text.count("passage id does not exist: 'none") == 20
    assert "passage id does not exist: 30 more" in text
    assert "nothing is left" in text
    assert not list((folder.path / "indexes").iterdir())


@pytest.mark.parametrize("form", ["tsv", "jsonl", "tsv.gz", "crlf"])
def test_triples_have_no_scores(folder: Folder, form: str) -> None:
    triples = [(f"q{n}", f"p{n}", f"p{n + 1}") for n in range(20)]
    end = "\r\n" if form == "crlf" else "\n"
    make = json.dumps if form == "jsonl" else "\t".join
    text = "".join(make(list(triple)) + end for triple in triples) + ("" if "j" in form else "q\tp")
    data = text.encode()
    name = f"triples.{form}"
    (folder.path / name).write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    mono = folder.prepare(folder.source(name, nway=2))[0]
    assert not mono.has_scores
    seen = {(x.query_id, *x.passage_ids) for x in mono}
    assert seen == set(triples)
    assert {x.scores for x in mono} == {()}
    assert mono.report.counts.get("not [qid, [pid, score], ...] or qid, pid+, pid-", 0) == (
        0 if form == "jsonl" else 1
    )


def test_packed_files_json_lines_marks_and_titles(folder: Folder) -> None:
    """Gzip, a byte order mark, CR LF, no last line end, number ids and titles are all read."""
    lines = [json.dumps({"id": n, "title": f"t{n}", "text": f"x{n}"}) for n in range(9)]
    (folder.path / "passages.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder.path / "en.tsv").write_bytes(b"\xef\xbb\xbf007\tone\ttwo\r\n7\tseven")
    rows = [["007", [1, 0.5], [2, 1], [3, 1e-3]], [7, [4, 1], [5, 2], [6, 3]]]
    packed = gzip.compress("\n".join(map(json.dumps, rows)).encode())
    (folder.path / "examples.jsonl.gz").write_bytes(packed)
    passages = str(folder.path / "passages.jsonl.gz")
    source = folder.source("examples.jsonl.gz", passages=passages)
    recipe = Recipe(kind="mono", query_languages=("en",))
    mono = Examples.prepare(source, recipe, folder.path / "indexes", seed=1)
    by_id = {example.query_id: example for example in mono}
    assert by_id["007"].query == "one two"
    assert by_id["007"].scores == (0.5, 1.0, 0.001)
    assert by_id["7"].query == "seven"
    assert by_id["7"].passages == ("t4\nx4", "t5\nx5", "t6\nx6")
    moved = folder.path / "moved"
    mono.folder.rename(moved)
    assert Examples(moved, recipe, 1)[0] == mono[0]


def test_the_first_usable_lines_alone(folder: Folder) -> None:
    folder.lines([["none", ["p0", 1], ["p1", 1], ["p2", 1]], *scored()])
    mono = folder.prepare(folder.source(max_examples=5))[0]
    assert {mono.pair(i)[0] for i in range(len(mono))} == {f"q{n}" for n in range(5)}


def test_prepared_once_and_anew_when_a_file_changes(folder: Folder) -> None:
    folder.lines(scored())
    source = folder.source()
    first = folder.prepare(source)[0]
    before = (first.folder / "manifest.json").stat().st_mtime_ns
    assert folder.prepare(source)[0].folder == first.folder
    assert (first.folder / "manifest.json").stat().st_mtime_ns == before
    folder.texts("passages.tsv", {**PASSAGES, "p50": "new"})
    assert folder.prepare(source)[0].folder != first.folder
    with pytest.raises(IndexDamaged, match=r"passages\.tsv has changed"):
        pickle.loads(pickle.dumps(first))[0]


def test_wrong_files_are_named(folder: Folder) -> None:
    folder.lines([{"query": "q0"}])
    with pytest.raises(InputError, match=r"examples\.jsonl:1: an object"):
        folder.prepare(folder.source())
    folder.lines(scored())
    with pytest.raises(InputError, match="no such file"):
        folder.prepare(folder.source(passages="elsewhere.tsv"))
    (folder.path / "en.tsv").write_text("\n\n")
    with pytest.raises(InputError, match=r"en\.tsv: the file is empty"):
        folder.prepare(folder.source())
    (folder.path / "en.tsv").write_bytes(b"q0\tx\nq1\t\xff\nq2 x\nq0\ty\n")
    report = folder.prepare(folder.source())[0].report
    name = folder.path / "en.tsv"
    assert report.places["not UTF-8"] == [f"{name}:2: not UTF-8"]
    assert report.places["not id TAB text"] == [f"{name}:3: not id TAB text"]
    assert report.places["id used a second time"] == [f"{name}:4: id used a second time"]
    assert report.used == 1


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


@given(st.lists(st.text(max_size=12), max_size=20))
def test_hashes_are_those_of_the_definition(ids: list[str]) -> None:
    ids = [identifier.encode("utf-8", "replace").decode() for identifier in ids]
    expected = np.array([fnv1a(one.encode()) for one in ids], np.uint64)
    assert (hash_ids(ids) == expected).all()


def test_blocks_cut_anywhere_read_the_same(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.lines(scored())
    whole = [list(one) for one in folder.prepare(folder.source())]
    monkeypatch.setattr("polyray.training.offsets.BLOCK", 37)
    monkeypatch.setattr("polyray.training.examples_lines.BATCH", 3)
    again = folder.path / "again"
    recipes = folder.recipes()
    pieces = [
        list(Examples.prepare(folder.source(), one, again, seed=1, alongside=recipes))
        for one in recipes
    ]
    assert pieces == whole
