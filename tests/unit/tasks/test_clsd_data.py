"""The published CLSD files, and what is wrong or odd in files like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyray.errors import ConfigError, InputError
from tasks.clsd.config import ClsdConfig
from tasks.clsd.data import match_pivot, read_clsd, read_datasets

HEADER = "Index,French,German,de_adv1,de_adv2,de_adv3,de_adv4,fr_adv1,fr_adv2,fr_adv3,fr_adv4"
BARE = HEADER.removeprefix("Index,")


def cells(row: str) -> str:
    """One whole record whose cells say where they stand."""
    return ",".join(f"{name} {row}" for name in BARE.split(","))


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def messages(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_clsd(path)
    return [f"{problem.line}: {problem.what}" for problem in caught.value.problems]


def test_plain_file(tmp_path: Path) -> None:
    file = read_clsd(write(tmp_path / "a.csv", HEADER, f"x7,{cells('x7')}"))
    row = file.rows[0]
    assert file.languages == ("de", "fr")
    assert row.row_id == "x7"
    assert row.sentences == {"de": "German x7", "fr": "French x7"}
    assert row.distractors["de"] == tuple(f"de_adv{n} x7" for n in range(1, 5))
    assert (file.blank_records, file.missing) == (0, {"de": 0, "fr": 0})


def test_all_quirks_together_read_the_same_rows(tmp_path: Path) -> None:
    plain = read_clsd(write(tmp_path / "a.csv", HEADER, f"0,{cells('0')}", f"1,{cells('1')}"))
    lines = [f",{HEADER}", f"0,0,{cells('0')}", f"1,1,{cells('1')}", ""]
    odd = read_clsd(write(tmp_path / "b.csv", *lines, end="\r\n"))
    assert [(r.row_id, r.sentences, r.distractors) for r in odd.rows] == [
        (r.row_id, r.sentences, r.distractors) for r in plain.rows
    ]
    assert odd.blank_records == 1


def test_without_index_records_are_numbered_from_0(tmp_path: Path) -> None:
    lines = [BARE, cells("a"), "", "," * 9, cells("b")]
    file = read_clsd(write(tmp_path / "a.csv", *lines))
    assert [(row.row_id, row.line) for row in file.rows] == [("0", 2), ("1", 5)]
    assert file.blank_records == 2


def test_a_blank_record_may_carry_the_unnamed_number(tmp_path: Path) -> None:
    file = read_clsd(write(tmp_path / "a.csv", f",{HEADER}", f"0,0,{cells('0')}", "1" + "," * 11))
    assert (len(file.rows), file.blank_records) == (1, 1)


def test_quotes_commas_and_line_breaks_in_cells(tmp_path: Path) -> None:
    first = cells("0").replace("French 0", '"Il dit ""oui"",\npuis part"')
    file = read_clsd(write(tmp_path / "a.csv", HEADER, f"0,{first}", f"1,{cells('1')}"))
    assert file.rows[0].sentences["fr"] == 'Il dit "oui",\npuis part'
    assert [row.line for row in file.rows] == [2, 4]


def test_a_missing_distractor_is_counted_and_not_filled(tmp_path: Path) -> None:
    line = f"0,{cells('0')}".replace("de_adv2 0", "").replace("fr_adv4 0", "  ")
    file = read_clsd(write(tmp_path / "a.csv", HEADER, line))
    assert file.rows[0].distractors["de"] == ("de_adv1 0", None, "de_adv3 0", "de_adv4 0")
    assert file.missing == {"de": 1, "fr": 1}
    assert len(file.texts) == 8


def test_other_languages_need_no_code(tmp_path: Path) -> None:
    header = HEADER.replace("French", "Finnish").replace("fr_", "fi_")
    file = read_clsd(write(tmp_path / "a.csv", header, f"0,{cells('0')}"))
    assert file.languages == ("de", "fi")


def test_all_problems_at_once(tmp_path: Path) -> None:
    lines = [
        f"0,{cells('0')}".replace("French 0", " "),
        "1,too,short",
        f"0,{cells('2')}",
        f",{cells('3')}".replace("German 3", ""),
    ]
    assert messages(write(tmp_path / "a.csv", HEADER, *lines)) == [
        "2: the French sentence is empty",
        "3: 3 cells where the header has 11",
        "4: the Index '0' stands on line 2, too",
        "5: the German sentence is empty",
        "5: the Index is empty",
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (HEADER.replace("fr_adv4", "fr_adv5"), ["no column fr_adv4", "unknown column 'fr_adv5'"]),
        (HEADER.replace("fr_adv4", "fr_adv3"), ["no column fr_adv4", "column 'fr_adv3' stands"]),
        (HEADER.replace("French,", ""), ["found: German"]),
        (HEADER.replace(",", ";"), ["found: none"]),
        ("", ["no header"]),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, header: str, expected: list[str]) -> None:
    found = "\n".join(messages(write(tmp_path / "a.csv", header, f"0,{cells('0')}")))
    for text in expected:
        assert text in found


def test_no_rows_and_broken_quotes(tmp_path: Path) -> None:
    assert messages(write(tmp_path / "a.csv", HEADER)) == ["None: no sentence pairs"]
    broken = write(tmp_path / "b.csv", HEADER, f'0,"{cells("0")}', f"1,{cells('1')}")
    assert messages(broken)[0].startswith("2: not CSV")


def test_pivot_is_matched_by_id(tmp_path: Path) -> None:
    original = read_clsd(write(tmp_path / "a.csv", HEADER, f"0,{cells('0')}", f"1,{cells('1')}"))
    turned = read_clsd(write(tmp_path / "b.csv", HEADER, f"1,{cells('B')}", f"0,{cells('A')}"))
    matched = match_pivot(original, turned)
    assert [row.sentences["de"] for row in matched.rows] == ["German A", "German B"]


def test_pivot_that_does_not_fit(tmp_path: Path) -> None:
    original = read_clsd(write(tmp_path / "a.csv", HEADER, f"0,{cells('0')}", f"1,{cells('1')}"))
    short = read_clsd(write(tmp_path / "b.csv", HEADER, f"9,{cells('9')}"))
    with pytest.raises(InputError) as caught:
        match_pivot(original, short)
    text = str(caught.value)
    assert "1 pairs, but" in text
    assert "row '0' of" in text
    assert "row '9' is not in" in text


def test_problems_of_all_files_come_together(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", HEADER, f"0,{cells('0')}")
    bad = write(tmp_path / "bad.csv", HEADER, "0,short")
    config = ClsdConfig.model_validate(
        {
            "name": "two",
            "modes": ["direct", "pivot"],
            "encoders": [{"name": "h", "model": "hashing:64"}],
            "datasets": [
                {"name": "one", "path": str(good), "pivot": str(bad)},
                {"name": "two", "path": str(tmp_path / "absent.csv"), "pivot": str(good)},
            ],
        }
    )
    with pytest.raises(InputError) as caught:
        read_datasets(config)
    assert "bad.csv:2: 2 cells" in str(caught.value)
    assert "absent.csv: no such file" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"modes": ["pivot"]}, "needs a pivot file for d"),
        ({"modes": ["direct", "direct"]}, "stands twice"),
        ({"encoders": [{"name": "h", "model": "hashing:64"}] * 2}, "stands twice"),
        ({"wrong": 1}, "Extra inputs"),
    ],
)
def test_configs_that_make_no_sense(change: dict[str, object], expected: str) -> None:
    values = {
        "name": "x",
        "datasets": [{"name": "d", "path": "d.csv"}],
        "encoders": [{"name": "h", "model": "hashing:64"}],
    }
    ClsdConfig.model_validate(values)
    with pytest.raises((ValueError, ConfigError), match=expected):
        ClsdConfig.model_validate({**values, **change})


@pytest.mark.parametrize(("year", "rows", "blank"), [("2019", 1473, 1), ("2021", 893, 0)])
def test_published_files(data_root: Path, year: str, rows: int, blank: int) -> None:
    """Counts as the data's SOURCE.md and the paper state them: nothing is missing."""
    folder = data_root / "clsd"
    original = read_clsd(folder / f"CLSD_wmt{year}_adversarial_dataset.csv")
    english = read_clsd(folder / f"MT_M2M_CLSD_wmt{year}_adversarial_dataset.csv")
    pivot = match_pivot(original, english)
    assert [len(file.rows) for file in (original, pivot)] == [rows, rows]
    assert [file.blank_records for file in (original, pivot)] == [0, blank]
    for file in (original, pivot):
        assert file.missing == {"de": 0, "fr": 0}
        assert len(file.texts) == 10 * rows
        assert [row.row_id for row in file.rows] == [str(number) for number in range(rows)]


def test_published_distractors_number_9464_a_language(data_root: Path) -> None:
    files = [
        read_clsd(data_root / "clsd" / f"CLSD_wmt{year}_adversarial_dataset.csv")
        for year in ("2019", "2021")
    ]
    for code in ("de", "fr"):
        found = [text for file in files for row in file.rows for text in row.distractors[code]]
        assert len([text for text in found if text]) == 9464
