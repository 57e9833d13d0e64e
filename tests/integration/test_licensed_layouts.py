"""The configs for CLEF 2000-2003 and NeuCLIR 2022, on small files of the same form."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from polyray.config import load_config
from tasks.mqir.config import MqirConfig
from tasks.mqir.run import run_mqir
from tests.stores import new_store

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = "systems=[{kind: bm25}, {kind: dense, name: hash, model: 'hashing:128'}]"

LATIMES = """<DOC>
<DOCNO> LA010194-0001 </DOCNO>
<DOCID> 000001 </DOCID>
<DATE>
<P>
January 1, 1994, Saturday, Home Edition
</P>
</DATE>
<SECTION>
<P>
Part A; Page 1
</P>
</SECTION>
<HEADLINE>
<P>
HARBOR FERRY &amp; PIER REPAIRED
</P>
</HEADLINE>
<TEXT>
<P>
The ferry across the harbor runs again.
</P>
<P>
Divers mended the pier over the winter.
</P>
</TEXT>
</DOC>
<DOC>
<DOCNO> LA010194-0002 </DOCNO>
<DATE>
<P>
January 1, 1994, Saturday, Home Edition
</P>
</DATE>
<HEADLINE>
<P>
ORCHARDS FEAR FROST
</P>
</HEADLINE>
<TEXT>
<P>
Growers light fires between the apple trees at night.
</P>
</TEXT>
</DOC>
"""

TOPIC = """<top>
<num> {number} </num>
<{code}-title> {title} </{code}-title>
<{code}-desc> {description} </{code}-desc>
<{code}-narr> {narrative} </{code}-narr>
</top>
"""


def write_clef(home: Path) -> None:
    (home / "latimes94").mkdir(parents=True)
    (home / "latimes94" / "la010194.gz").write_bytes(gzip.compress(LATIMES.encode()))
    texts = {
        "en": [("C001", "Harbor ferry", "Find news on the ferry.", "Any ferry."),
               ("C002", "Frost in orchards", "How do growers fight frost?", "Fires count.")],
        "de": [("C001", "Hafenfähre", "Nachrichten über die Fähre.", "Jede Fähre."),
               ("C002", "Frost in Obstgärten", "Was tun Obstbauern gegen Frost?", "Auch Feuer.")],
    }  # fmt: skip
    for code, topics in texts.items():
        (home / "topics" / code).mkdir(parents=True)
        for number, (topic, title, description, narrative) in enumerate(topics):
            text = TOPIC.format(
                number=topic,
                code=code.upper(),
                title=title,
                description=description,
                narrative=narrative,
            )
            (home / "topics" / code / f"top-{number}.txt").write_text(text, encoding="utf-8")
    (home / "milq").mkdir()
    (home / "milq" / "de_en.tsv").write_text(
        "C001\tHarbor ferry Nachrichten\nC002\tFrost in den orchards\n", encoding="utf-8"
    )
    (home / "qrels_en.txt").write_text(
        "C001 0 LA010194-0001 1\nC001 0 LA010194-0002 0\nC002 0 LA010194-0002 1\n"
    )


def test_clef_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray_session: None) -> None:
    write_clef(tmp_path / "clef")
    monkeypatch.setenv("CLEF_HOME", str(tmp_path / "clef"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    overrides = [SYSTEMS, f"output={tmp_path}/runs", "languages=[de]"]
    result = run_mqir(load_config(ROOT / "configs/mqir/clef00_03.yaml", overrides, MqirConfig))
    assert result.collections["en"]["documents"] == 2
    found = {(s.system, s.condition.name): s for s in result.scores}
    assert found["bm25", "en.en.english"].evaluation.measures["AP@100"] == 1.0
    assert found["bm25", "en.de.mixed"].evaluation.measures["AP@100"] == 1.0
    run = (result.folder / "runs" / "bm25.en.en.english.trec").read_text().splitlines()
    assert run[0].split()[:3] == ["C001", "Q0", "LA010194-0001"]


def write_neuclir(home: Path) -> None:
    (home / "docs").mkdir(parents=True)
    (home / "milq").mkdir()
    documents = [
        ("ffaa-01", "Паром снова ходит", "Паром через гавань снова ходит после ремонта."),
        ("ffaa-02", "Заморозки в садах", "Садоводы жгут костры между яблонями."),
    ]
    rows = [
        {"id": i, "cc_file": "crawl/x.warc.gz", "time": None, "title": t, "text": x, "url": "u"}
        for i, t, x in documents
    ]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (home / "docs" / "rus.jsonl").write_text(lines, encoding="utf-8")
    english = [("1", "Ferry", "News on the ferry."), ("2", "Frost in orchards", "Fighting frost.")]
    russian = [("1", "Паром", "Новости о пароме."), ("2", "Заморозки в садах", "Борьба.")]
    topics = [
        {
            "topic_id": en[0],
            "languages_with_qrels": ["rus"],
            "topics": [
                _part("eng", "original", en),
                _part("rus", "human translation", ru),
                _part("rus", "google translate", ru),
            ],
        }
        for en, ru in zip(english, russian, strict=True)
    ]
    text = "\n".join(json.dumps(topic, ensure_ascii=False) for topic in topics)
    (home / "topics.jsonl").write_text(text, encoding="utf-8")
    (home / "milq" / "ru_en.tsv").write_text("1\tferry Паром\n2\tfrost в садах\n", encoding="utf-8")
    (home / "qrels.rus").write_text("1 0 ffaa-01 3\n1 0 ffaa-02 0\n2 0 ffaa-02 1\n")


def _part(code: str, source: str, topic: tuple[str, str, str]) -> dict[str, str]:
    return {
        "lang": code,
        "source": source,
        "topic_title": topic[1],
        "topic_description": topic[2],
    }


def test_neuclir_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray_session: None) -> None:
    write_neuclir(tmp_path / "neuclir")
    monkeypatch.setenv("NEUCLIR_HOME", str(tmp_path / "neuclir"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    overrides = [SYSTEMS, f"output={tmp_path}/runs", "languages=[ru]"]
    result = run_mqir(load_config(ROOT / "configs/mqir/neuclir22.yaml", overrides, MqirConfig))
    found = {(s.system, s.condition.name): s for s in result.scores}
    assert found["bm25", "ru.ru.native"].evaluation.measures["AP@100"] == 1.0
    assert found["bm25", "ru.ru.native"].described["bm25.analyzer"] == "ru"
    assert found["bm25", "ru.ru.english"].evaluation.topics["missing"] == 2
    assert found["bm25", "ru.ru.mixed"].evaluation.measures["AP@100"] == 1.0
    assert {s.condition.scenario for s in result.scores} == {"MonoIR", "CLIR", "MQIR"}
