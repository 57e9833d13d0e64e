"""Documents in every format: what is read, what is refused, memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyray.collections import read_documents, write_documents
from polyray.errors import ConfigError, InputError
from polyray.records import Document

LA_TIMES = """<DOC>
<DOCNO> LA010194-0001 </DOCNO>
<DOCID> 000001 </DOCID>
<DATE>
<P>
January 1, 1994, Saturday, Home Edition
</P>
</DATE>
<SECTION>
<P>
Metro; Part B; Page 1
</P>
</SECTION>
<HEADLINE>
<P>
HARBOUR &amp; FERRY:
</P>
<P>
A NEW PIER
</P>
</HEADLINE>
<BYLINE>
<P>
By A WRITER
</P>
</BYLINE>
<TEXT>
<P>
The ferry &lt;Aurora&gt; leaves
every hour; AT&T built
the pier.
</P>
<P>
Gulls follow it &#8212; always.
</P>
</TEXT>
<GRAPHIC>
<P>
Photo
</P>
</GRAPHIC>
</DOC>
<DOC><DOCNO>LA010194-0002</DOCNO><TEXT>One line.</TEXT></DOC><DOC><DOCNO>X</DOCNO></DOC>
"""

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\n\r\0"))
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="\ufeff"),
    min_size=1,
)


def read(path: Path, text: str | bytes, **options: str) -> list[Document]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read_documents(str(path), **options))


def refused(path: Path, text: str | bytes, **options: str) -> InputError:
    with pytest.raises(InputError) as error:
        read(path, text, **options)
    return error.value


def test_tsv(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    assert read(path, "007\t two  words \n7\t") == [
        Document("007", " two  words "),
        Document("7", ""),
    ]
    assert read(path, "1\tT\tx\r\n2\t\ty\r\n") == [Document("1", "x", "T"), Document("2", "y")]


def test_tsv_refuses_all_bad_lines(tmp_path: Path) -> None:
    text = "1\ta\n2\n\n3\tb\tc\n4\tx\ty\tz\n1\tagain\n\tno id\na b\tspace\n"
    lines = [problem.line for problem in refused(tmp_path / "a.tsv", text).problems]
    assert {2, 3, 5, 6, 7, 8} <= set(lines)


def test_tsv_refuses_mixed_columns(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.tsv", "1\ta\n2\tb\tc\n")
    assert "a.tsv:2: 3 columns where the lines before have 2" in str(error)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_encodings(tmp_path: Path, encoding: str, end: str, last: bool) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    text = mark + f"a\tПаром уходит{end}b\t渡轮" + (end if last else "")
    expected = [Document("a", "Паром уходит"), Document("b", "渡轮")]
    assert read(tmp_path / "a.tsv", text.encode(encoding)) == expected
    assert read(tmp_path / "b.gz", gzip.compress(text.encode(encoding))) == expected


def test_jsonl_keys_and_ids(tmp_path: Path) -> None:
    text = (
        '{"id": "a", "title": "T", "text": "x", "url": "u"}\n'
        '{"docid": 12345678901234567890, "contents": "y"}\n'
        '{"doc_id": "c", "body": "z", "headline": null}\n{"_id": "d", "text": ""}'
    )
    assert read(tmp_path / "a.jsonl", text) == [
        Document("a", "x", "T"),
        Document("12345678901234567890", "y"),
        Document("c", "z"),
        Document("d", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "no id"}',
        '{"id": null, "text": "x"}',
        '{"id": 1.5, "text": "x"}',
        '{"id": true, "text": "x"}',
        '{"id": "", "text": "x"}',
        '{"id": "b", "text": 5}',
        '{"id": "b", "text": ["x"]}',
        '{"id": "b", "text": "\\ud800"}',
        '{"id": "a", "text": "again"}',
        '{"id": "b", "text": "x"',
        '["b", "x"]x',
        '"text"',
        "[" * 100_000,
        '{"id": "b", "text": "x"} {"id": "c"}',
    ],
)
def test_jsonl_refuses(tmp_path: Path, line: str) -> None:
    text = '{"id": "a", "text": "x"}\n' + line + '\n{"id": "z", "text": "x"}\n'
    problems = refused(tmp_path / "a.jsonl", text).problems
    assert {problem.line for problem in problems} <= {2, 3}


def test_jsonl_without_any_text_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.jsonl", '{"id": "a", "passage": "x"}\n')
    assert "no document has a text" in str(error)


def test_json_array(tmp_path: Path) -> None:
    text = '[\n {"id": "a",\n  "contents": "x"},\n {"id": "b", "contents": "y"}\n]\n'
    assert read(tmp_path / "a.json", text) == [Document("a", "x"), Document("b", "y")]
    assert "element 2" in str(refused(tmp_path / "b.json", '[{"id": "a", "text": "x"}, 5]'))


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"docid": ["007", "7"], "text": ["x", None], "n": [1, 2]}), path)
    assert list(read_documents(str(path))) == [Document("007", "x"), Document("7", "")]
    pq.write_table(pa.table({"id": [7, 8], "body": ["x", "y"], "title": ["t", None]}), path)
    assert list(read_documents(str(path))) == [Document("7", "x", "t"), Document("8", "y")]
    pq.write_table(pa.table({"id": ["a", None, "a"], "text": ["x", "y", "z"]}), path)
    with pytest.raises(InputError) as error:
        list(read_documents(str(path)))
    assert [problem.line for problem in error.value.problems] == [2, 3]
    pq.write_table(pa.table({"id": [1.5], "text": [["x"]]}), path)
    with pytest.raises(InputError) as error:
        list(read_documents(str(path)))
    assert len(error.value.problems) == 2
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a readable Parquet"):
        list(read_documents(str(path)))


def test_la_times_form(tmp_path: Path) -> None:
    """Written here in the form of the LA Times files: headline and text in <P> paragraphs."""
    text = "The ferry <Aurora> leaves every hour; AT&T built the pier.\nGulls follow it — always."
    assert read(tmp_path / "la010194", LA_TIMES) == [
        Document("LA010194-0001", text, "HARBOUR & FERRY: A NEW PIER"),
        Document("LA010194-0002", "One line."),
        Document("X", ""),
    ]


def test_sgml_refuses(tmp_path: Path) -> None:
    path = tmp_path / "a.sgml"
    assert "a.sgml:1: <DOC> is not closed" in str(refused(path, "<DOC>\n<DOCNO>1</DOCNO>\nx\n"))
    two = "<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\n<DOCNO>2</DOCNO>\n</DOC>\n"
    assert "a.sgml:1: <DOC> is not closed" in str(refused(path, two))
    assert "a.sgml:1: </DOC> without" in str(refused(path, "</DOC>\n<DOC id='x'>\nx</DOC>"))
    assert "no <DOCNO>" in str(refused(path, "<DOC>\nx</DOC>"))
    assert "no <DOC>" in str(refused(path, "words\n"))
    assert "unclosed <TEXT>" in str(refused(path, "<DOC id='x'><TEXT>cut</DOC>"))
    assert "not UTF-8" in str(refused(path, "<DOC id='x'>caf\xe9</DOC>".encode("latin-1")))


def test_case_string_ids(cases: Path) -> None:
    folder = cases / "H06_string_docids"
    expected = json.loads((folder / "expected.json").read_text("utf-8"))["pid_to_docid"]
    found = [document.doc_id for document in read_documents(str(folder / "collection.jsonl"))]
    assert found == list(expected.values())


def test_case_documents_without_text(cases: Path) -> None:
    from polyray.text.keys import is_blank

    folder = cases / "H07_empty_passages"
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    found = list(read_documents(str(folder / "collection.jsonl")))
    assert len(found) == expected["documents_read"]
    blank = [document.doc_id for document in found if is_blank(document.contents)]
    assert blank == expected["skipped_empty"]


def test_real_collections(data_root: Path) -> None:
    """Counts as the sets' SOURCE.md states them."""
    sample = data_root / "hc4_neuclir" / "patapsco_sample" / "cc-news-zho-1000.jsonl"
    found = list(read_documents(str(sample), format="neuclir"))
    assert len(found) == 998
    assert all(document.title and document.text for document in found[:10])
    vaswani = list(read_documents(str(data_root / "vaswani" / "doc-text.trec")))
    assert len(vaswani) == 11_429
    assert vaswani[0].doc_id == "1"
    assert vaswani[0].text.startswith("compact memories have flexible capacities a digital")
    assert len(list(read_documents(str(data_root / "xquad" / "docs" / "zh_docs.tsv")))) == 240


def test_archive_is_refused(data_root: Path) -> None:
    with pytest.raises(InputError, match="tar archive"):
        list(read_documents(str(data_root / "cacm" / "cacm.tar.gz")))


def test_folder_and_glob(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text("2\ty\n")
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "x"}\n')
    (tmp_path / ".hidden").write_text("")
    both = [Document("1", "x"), Document("2", "y")]
    assert list(read_documents(str(tmp_path))) == both
    assert list(read_documents(str(tmp_path / "*.*"))) == both
    (tmp_path / "c.tsv").write_text("1\tz\n")
    with pytest.raises(InputError, match=r"c\.tsv:1: the document id '1' is used a second time"):
        list(read_documents(str(tmp_path)))
    with pytest.raises(InputError, match="no files there"):
        list(read_documents(str(tmp_path / "*.none")))


def test_unknown_format(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words only\n")
    with pytest.raises(ConfigError, match="format cannot be told"):
        list(read_documents(str(tmp_path / "a.txt")))
    with pytest.raises(ConfigError, match="allowed: tsv"):
        list(read_documents(str(tmp_path / "a.txt"), format="csv"))
    (tmp_path / "b.tsv").write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        list(read_documents(str(tmp_path / "b.tsv")))
    (tmp_path / "c").write_text("1\tno name needed\n")
    assert len(list(read_documents(str(tmp_path / "c")))) == 1


@settings(max_examples=50, deadline=None)
@given(rows=st.dictionaries(IDS, st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.tsv", "a.tsv.gz", "a.parquet"])
def test_reading_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: dict[str, tuple[str, str]]
) -> None:
    titled = not name.startswith("a.tsv") or all(title for _, title in rows.values())
    documents = [Document(i, x, t if titled else "") for i, (x, t) in rows.items()]
    path = tmp_path_factory.mktemp("docs") / name
    write_documents(path, documents)
    assert list(read_documents(str(path))) == documents


def test_writing_refuses_what_cannot_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for bad in (
        [Document("1", "a\tb")],
        [Document("1", "a\r")],
        [Document("1", "a"), Document("2", "b", "title")],
        [Document("1", "a"), Document("1", "b")],
        [Document("a b", "a")],
    ):
        with pytest.raises(InputError):
            write_documents(path, bad)
    with pytest.raises(ConfigError):
        write_documents(path, [], format="csv")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """50 MB are read with less than 10 MB."""
    path = tmp_path / "large.jsonl"
    text = "word " * 600
    with path.open("w") as out:
        for number in range(17_000):
            out.write(f'{{"id": "d{number}", "text": "{text}"}}\n')
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_documents(str(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 17_000
    assert peak < 10_000_000
