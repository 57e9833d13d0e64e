from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from polyray.errors import PolyrayError
from polyray.evaluation._panels import Scale, panel
from polyray.evaluation.explanation import Explanation
from polyray.evaluation.heatmap import heat_map, heat_maps

QUERY = ("[CLS]", "schutz", "property", "[SEP]", "[MASK]", "[MASK]", "[MASK]")


def made(
    n_p: int = 12,
    query: tuple[str, ...] = QUERY,
    passage: tuple[str, ...] = (),
    seed: int = 1,
    text: str = "schutz property",
) -> Explanation:
    passage = passage or tuple(f"p{j}" for j in range(n_p))
    similarity = np.random.default_rng(seed).uniform(-0.2, 0.9, (len(query), len(passage)))
    return Explanation(text, "the passage", query, passage, similarity)


class Cells(HTMLParser):
    """Collects the tags, the title attributes with their background, and the text of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.colours: list[tuple[str, str]] = []
        self.best: list[str] = []
        self.text: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if tag == "td" and "title" in given:
            title, style = str(given["title"]), str(given["style"])
            self.colours.append((title, style.split(";")[0]))
            if given.get("class") == "best":
                self.best.append(title)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_writes_a_picture_and_a_page(tmp_path: Path) -> None:
    explanation = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paths = heat_map(tmp_path / "new" / "one.png", explanation, "A title")
    assert paths == [tmp_path / "new" / "one.png", tmp_path / "new" / "one.html"]
    width, height = png_size(paths[0])
    assert width > 500
    assert height > 300
    assert sorted(p.name for p in paths[0].parent.iterdir()) == ["one.html", "one.png"]
    cells = Cells(paths[1])
    # Four rows that match one token each, and the folded one.
    assert len(cells.colours) == 5 * 12
    assert [title.split(":")[0] for title in cells.best] == [
        f"{token} / p{best}" for token, best in zip(QUERY[:4], explanation.best[:4], strict=True)
    ]
    assert f"{explanation.score:.3f}" in cells.text
    assert f"{explanation.contributions[1]:.3f}" in cells.text
    assert "A title" in cells.text
    assert "script" not in cells.tags


def test_picture_grows_with_the_passage(tmp_path: Path) -> None:
    small = png_size(heat_map(tmp_path / "small.png", made(12))[0])
    large = png_size(heat_map(tmp_path / "large.png", made(60))[0])
    assert large[0] > small[0] + 40 * 20


def test_folded_masks_keep_the_total() -> None:
    explanation = made()
    folded = panel(explanation, "", masks=False, max_columns=80)
    every = panel(explanation, "", masks=True, max_columns=80)
    assert [row.label for row in folded.rows] == [*QUERY[:4], "[MASK] ×3"]
    assert [row.label for row in every.rows] == list(QUERY)
    total = explanation.score
    assert sum(row.contribution for row in folded.rows) == pytest.approx(total, abs=1e-12)
    assert sum(row.contribution for row in every.rows) == pytest.approx(total, abs=1e-12)
    last = folded.rows[-1]
    assert last.best is None
    np.testing.assert_allclose(last.values, explanation.similarity[4:].mean(axis=0), rtol=1e-6)
    assert last.contribution == pytest.approx(explanation.contributions[4:].sum(), abs=1e-12)


def test_all_masks_are_drawn_when_asked(tmp_path: Path) -> None:
    page = heat_map(tmp_path / "m.png", made(), masks=True)[1]
    assert len(Cells(page).best) == len(QUERY)
    assert "drawn as one" not in page.read_text(encoding="utf-8")


def test_a_long_passage_keeps_the_best_matches(tmp_path: Path) -> None:
    explanation = made(300)
    shown = panel(explanation, "", masks=False, max_columns=20)
    kept = [column.start for column in shown.columns if len(column) == 1]
    assert set(explanation.best.tolist()) <= set(kept)
    assert sum(map(len, shown.columns)) == 300
    assert 20 <= len(kept) <= 20 + len(shown.columns) // 2
    gaps = [column for column in shown.columns if len(column) > 1]
    assert shown.labels.count("…") == len(gaps) > 0
    page = heat_map(tmp_path / "long.png", explanation, max_columns=20)[1]
    assert f"{len(gaps[0])} tokens left out" in page.read_text(encoding="utf-8")


def test_best_matches_outnumber_the_columns() -> None:
    explanation = made(300)
    shown = panel(explanation, "", masks=False, max_columns=1)
    kept = {column.start for column in shown.columns if len(column) == 1}
    assert set(explanation.best.tolist()) <= kept


def test_a_short_passage_is_whole() -> None:
    assert len(panel(made(80), "", masks=False, max_columns=80).columns) == 80


def test_one_colour_scale_for_all_panels(tmp_path: Path) -> None:
    low = Explanation("a", "p", ("a", "b"), ("x", "y"), np.array([[0.1, 0.2], [0.5, 0.3]]))
    high = Explanation("b", "p", ("a", "b"), ("x", "y"), np.array([[0.5, 0.9], [0.2, 0.6]]))
    assert Scale.of([low, high]) == pytest.approx((0.1, 0.9), abs=1e-7)
    page = heat_maps(tmp_path / "two.png", [low, high], ["native", "mixed"])[1]
    colours: dict[str, set[str]] = {}
    for title, colour in Cells(page).colours:
        colours.setdefault(title.rsplit(": ")[-1], set()).add(colour)
    assert set(colours) == {"0.100", "0.200", "0.300", "0.500", "0.600", "0.900"}
    assert all(len(seen) == 1 for seen in colours.values())
    assert len(set.union(*colours.values())) == 6


def test_one_similarity_everywhere(tmp_path: Path) -> None:
    same = Explanation("a", "b", ("a",), ("b",), np.array([[-0.3]]))
    paths = heat_map(tmp_path / "same.png", same)
    assert png_size(paths[0])[0] > 300
    assert Cells(paths[1]).best == ["a / b: -0.300"]


def test_hostile_and_foreign_text(tmp_path: Path) -> None:
    bad = '<script>alert("1")</script>'
    tokens = (bad, "$x_$", "版权", "محمد", "{0}", "\ud800\x00", 'a"b')
    explanation = Explanation(
        bad, f"{bad} & {{x}}", tokens, tokens, np.eye(len(tokens), dtype=np.float32)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture, page = heat_map(tmp_path / "bad.png", explanation, bad)
    assert png_size(picture)[0] > 300
    cells = Cells(page)
    assert "script" not in cells.tags
    assert cells.best[0] == f"{bad} / {bad}: 1.000"
    assert cells.text.count(bad) >= 4
    assert {"版权", "محمد", "$x_$", "{0}", "\ufffd\ufffd", 'a"b'} <= set(cells.text)
    text = page.read_text(encoding="utf-8")
    assert re.search(r'<dd dir="auto">&lt;script&gt;', text)
    assert "http:" not in text
    assert "https:" not in text


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(PolyrayError, match="no explanations"):
        heat_maps(tmp_path / "x.png", [])
    with pytest.raises(PolyrayError, match="2 titles for 1 explanations"):
        heat_maps(tmp_path / "x.png", [made()], ["a", "b"])
    with pytest.raises(PolyrayError, match="max_columns is 0"):
        heat_map(tmp_path / "x.png", made(), max_columns=0)
    assert not list(tmp_path.iterdir())
