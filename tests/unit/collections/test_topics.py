"""Topics in every form: texts, languages, translations, what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from polyray.collections import empty_topics, read_topics
from polyray.collections.topics import all_topics
from polyray.errors import ConfigError, InputError
from polyray.records import Topic


def read(tmp_path: Path, text: str, name: str = "topics", **options: str) -> list[Topic]:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return read_topics(str(path), **options)  # type: ignore[arg-type]


def refused(tmp_path: Path, text: str, **options: str) -> str:
    with pytest.raises(InputError) as error:
        read(tmp_path, text, **options)
    return str(error.value)


def test_tsv(tmp_path: Path) -> None:
    assert read(tmp_path, "051\t two \u3000 words\r\n51\t\r\n") == [
        Topic("051", "two words"),
        Topic("51", ""),
    ]
    assert read(tmp_path, "1\ta\tb c\n", language="deu") == [Topic("1", "a", "b c", language="de")]
    assert "topics:2: no tab" in refused(tmp_path, "1\ta\n2 b\n")
    assert "topics:2: 3 columns" in refused(tmp_path, "1\ta\n2\tb\tc\n")
    assert "topics:2: topic '1' is already in line 1" in refused(tmp_path, "1\ta\n1\tb\n")
    assert "the id is empty" in refused(tmp_path, "\ta\n")
    assert "empty" in refused(tmp_path, "")
    assert read(tmp_path, "1 one\n2 two words\n", format="singleline")[1].title == "two words"
    with pytest.raises(ConfigError, match="allowed: tsv"):
        read(tmp_path, "1\ta\n", format="csv")


def test_case_xml(cases: Path) -> None:
    folder = cases / "H20_topics_xml"
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    path = str(folder / "topics.xml")
    for code in ("en", "fa"):
        topics = read_topics(path, language=code)
        assert [topic.topic_id for topic in topics] == expected["topics.xml"]["ids"]
        texts = {topic.topic_id: topic.title for topic in topics if topic.title}
        assert texts == expected["topics.xml"][code]
    assert empty_topics(topics, "title") == expected["topics.xml"]["fa_empty"]
    english = read_topics(path, language="en")
    assert english[0].description == "What was changed after the winter?"
    assert topics[0].description == ""
    assert len(read_topics(path)) == 8


def test_case_bare_ampersand(cases: Path) -> None:
    """Refused, naming line 2."""
    path = cases / "H20_topics_xml" / "topics_bare_ampersand.xml"
    with pytest.raises(InputError) as error:
        read_topics(str(path))
    assert f"{path}:2: not XML" in str(error.value)
    assert "&amp;" in str(error.value)


def test_case_classic(cases: Path) -> None:
    topics = read_topics(str(cases / "H20_topics_xml" / "topics_classic.txt"))
    assert [(topic.topic_id, topic.title) for topic in topics] == [
        ("301", "coastal erosion"),
        ("302", ""),
    ]
    assert empty_topics(topics, "title") == ["302"]
    assert empty_topics(topics) == []
    assert topics[1].text("title+description") == "Find notes on bee keeping."
    assert topics[0].narrative == "Reports with figures are relevant."


def test_real_classic_topics(data_root: Path) -> None:
    """NIST's files of 50 topics each; ids to the letter; no lead-in is left."""
    folder = data_root / "dirty" / "anserini-tools"
    old = read_topics(str(folder / "topics.adhoc.51-100.txt"))
    assert [topic.topic_id for topic in old] == [f"{i:03}" for i in range(51, 101)]
    assert old[0].title == "Airbus Subsidies"
    assert old[0].description.startswith("Document will discuss government assistance to Airbus")
    assert old[0].description.endswith("over the issue of subsidies.")
    new = read_topics(str(folder / "topics.adhoc.301-350.txt"))
    assert [topic.topic_id for topic in new] == [str(i) for i in range(301, 351)]
    for topic in old + new:
        assert topic.title
        assert topic.description
        assert topic.narrative
        for text in (topic.title, topic.description, topic.narrative):
            assert "<" not in text
            assert not text.startswith(("Topic:", "Description:", "Narrative:"))


def test_other_real_dialects(data_root: Path) -> None:
    dirty = data_root / "dirty"
    covid = read_topics(str(dirty / "anserini-tools" / "topics.covid-round1.xml"))
    assert len(covid) == 30
    assert covid[0].title == "coronavirus origin"
    assert covid[0].description == "what is the origin of COVID-19"
    clef = read_topics(str(dirty / "patapsco" / "topics.xml"), language="eng")
    assert clef[0] == Topic(
        "1-ZZ", "Test 1", "This is a test.", "Narrative of first test", language="en"
    )
    child = read_topics(str(dirty / "pyterrier" / "topics.trecxml"))
    assert [topic.topic_id for topic in child] == ["1", "2", "3"]
    closed = read_topics(str(dirty / "pyterrier" / "topics.trec"))
    assert closed[0] == Topic("1", "light", "lights")
    assert len(read_topics(str(data_root / "vaswani" / "query-text.trec"))) == 93


def test_clef_language_tags(tmp_path: Path) -> None:
    """CLEF 2000-2003: one file a language, the language in the tags."""
    text = (
        "<top>\n<num> C041 </num>\n<DE-title> Pestizide in der Babykost </DE-title>\n"
        "<DE-desc> Berichte über Pestizide. </DE-desc>\n<DE-narr> Alle. </DE-narr>\n</top>\n"
    )
    topic = Topic("C041", "Pestizide in der Babykost", "Berichte über Pestizide.", "Alle.", "de")
    assert read(tmp_path, text) == [topic]
    xml = "<?xml version='1.0'?>\n<topics>\n" + text + "</topics>\n"
    assert read(tmp_path, xml) == [topic]


def test_classic_refuses(tmp_path: Path) -> None:
    assert "topics:1: <top> is not closed" in refused(tmp_path, "<top>\n<num> 1\n<title> a\n")
    two = "<top>\n<num> 1\n<title> a\n<top>\n<num> 2\n<title> b\n</top>\n"
    assert "topics:1: <top> is not closed" in refused(tmp_path, two)
    assert "topics:1: the topic has no number" in refused(tmp_path, "<top>\n<title> a\n</top>\n")
    twice = "<top>\n<num> 1\n<title> a\n<title> b\n</top>\n"
    assert "two <title>" in refused(tmp_path, twice)


def test_xml_refuses(tmp_path: Path) -> None:
    def topics(inside: str) -> str:
        return f"<topics>\n<topic number='1'>{inside}</topic>\n</topics>"

    assert "has no id" in refused(tmp_path, "<topics>\n<topic><title>a</title></topic></topics>")
    assert "has no text" in refused(tmp_path, topics("<x>a</x>"))
    assert "two fields title" in refused(tmp_path, topics("<title>a</title><query>b</query>"))
    mixed = topics("<title lang='en'>a</title><title>b</title>")
    assert "with and without a language" in refused(tmp_path, mixed)
    assert "topics:3: the entity &foo; is not known" in refused(
        tmp_path, "<!DOCTYPE topics SYSTEM 'topics.dtd'>\n" + topics("<title>&foo;</title>")
    )
    kept = "<!DOCTYPE topics SYSTEM 'none.dtd'>\n" + topics("<title>a<!-- no -->b</title>")
    assert read(tmp_path, kept) == [Topic("1", "ab")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_never_expanded(tmp_path: Path, encoding: str) -> None:
    """A bomb of nested entities, and a file that an external entity would read: refused fast."""
    secret = tmp_path / "secret"
    secret.write_text("canary")
    nested = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    for declared in (f'<!ENTITY a0 "ha">{nested}', f'<!ENTITY a11 SYSTEM "file://{secret}">'):
        text = f"<!DOCTYPE t [{declared}]>\n<t><topic number='1'><title>&a11;</title></topic></t>"
        path = tmp_path / "bomb.xml"
        path.write_bytes(text.encode(encoding))
        start = time.perf_counter()
        with pytest.raises(InputError, match="an entity declaration") as error:
            read_topics(str(path))
        assert time.perf_counter() - start < 5
        assert "canary" not in str(error.value)


@pytest.mark.parametrize(("name", "count"), [("train", 27), ("dev", 15), ("test", 118)])
def test_hc4_topics(data_root: Path, name: str, count: int) -> None:
    """Counts as SOURCE.md of the set states them."""
    path = str(data_root / "hc4_neuclir" / "hc4" / f"{name}.topics.v1-0.jsonl")
    english = read_topics(path, language="eng")
    assert len(english) == count
    assert {topic.source for topic in english} == {"original"}
    assert read_topics(path, language="en", source="human") == english
    machine = "20220114-scale21-sockeye2-tm1"
    assert len(read_topics(path, language="fa", source=machine)) == count
    human = read_topics(path, language="zho", source="human")
    assert {topic.source for topic in human} == {"human translation"}
    assert {topic.language for topic in human} == {"zh"}
    assert 0 < len(human) < count
    assert human == read_topics(path, language="zh", source="human translation")
    with pytest.raises(InputError) as error:
        read_topics(path, language="zh")
    assert f"'human translation', '{machine}'" in str(error.value)
    with pytest.raises(InputError, match="no topic in language sw; the file has: en, fa, ru, zh"):
        read_topics(path, language="sw")
    with pytest.raises(InputError, match="no topic of source 'klingon'"):
        read_topics(path, language="zh", source="klingon")


def test_neuclir_topics(data_root: Path) -> None:
    """114 topics in every file; the English ones lack the final newline."""
    files = sorted((data_root / "hc4_neuclir" / "neuclir22").glob("topics.*"))
    assert len(files) == 21
    for file in files:
        assert len(read_topics(str(file))) == 114


def test_jsonl_forms(tmp_path: Path) -> None:
    flat = '{"_id": "q1", "text": "one  two"}\n{"qid": 7, "title": "a", "description": "b"}\n'
    assert read(tmp_path, flat) == [Topic("q1", "one two"), Topic("7", "a", "b")]
    hc4 = {
        "topic_id": "001",
        "topics": [
            {"lang": "eng", "source": "original", "topic_title": None, "topic_description": "d"},
            {"lang": "kor", "source": "x", "topic_title": "t", "topic_description": None},
        ],
    }
    assert read(tmp_path, json.dumps(hc4)) == [
        Topic("001", "", "d", language="en", source="original"),
        Topic("001", "t", language="kor", source="x"),
    ]
    assert "topics:1: the topic has no id" in refused(tmp_path, '{"text": "a"}\n')
    assert "topics:1: the topic has no text" in refused(tmp_path, '{"id": "a"}\n')
    assert "topics:1: not JSON" in refused(tmp_path, "{x}\n")
    assert "not a string" in refused(tmp_path, '{"id": "a", "text": ["x"]}\n')
    assert "'topics' is not a list" in refused(tmp_path, '{"topic_id": "a", "topics": "x"}\n')


def test_several_machine_translations(data_root: Path) -> None:
    path = str(data_root / "hc4_neuclir" / "hc4" / "train.topics.v1-0.jsonl")
    with pytest.raises(InputError, match="choose one as source"):
        read_topics(path, language="fa", source="machine")
    assert len(read_topics(path, language="ru", source="machine")) == 27
    assert len(all_topics(path)) == 269


def test_documents_are_no_topics(data_root: Path) -> None:
    with pytest.raises(InputError, match="documents, not topics"):
        read_topics(str(data_root / "cacm" / "topics.cacm.txt"))
