"""Options of lexicon-made queries in a config: what they do, and that they change no old hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from polyray.collections.query_sources import LexiconMix
from polyray.config import canonical, validated
from polyray.text.switch_settings import SwitchOptions
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import read_queries
from tasks.quality.config import QualityConfig
from tasks.quality.data import read_query_sets

PLAIN = {"kind": "lexicon", "lexicon": "en-{language}.tsv"}


def test_options_that_are_not_given_stand_in_no_dump() -> None:
    mix = LexiconMix.model_validate(PLAIN)
    text = '{"kind":"lexicon","lexicon":"en-{language}.tsv","rate":0.5,"seed":42}'
    assert canonical(mix) == text
    more = LexiconMix.model_validate({**PLAIN, "options": {"lemmas": True}, "clean": {}})
    dumped = more.model_dump(mode="json")
    assert dumped["options"]["lemmas"] is True
    assert dumped["clean"]["max_words"] == 4
    assert LexiconMix.model_validate(yaml.safe_load(yaml.safe_dump(dumped))) == more


def config(folder: Path, **mix: Any) -> MqirConfig:
    (folder / "en.tsv").write_text("1\tThe old house\n", encoding="utf-8")
    (folder / "de.tsv").write_text("1\tDas alte Haus\n", encoding="utf-8")
    lexicon = "the\tdas\t1\nold\talt\t1\nold\tdom (x)\t0\nhouse\tдом\t5\nhouse\thaus\t1\n"
    (folder / "en-de.tsv").write_text(lexicon, encoding="utf-8")
    values = {
        "kind": "mqir",
        "name": "x",
        "languages": ["de"],
        "documents": {"path": "x"},
        "qrels": {"path": "x"},
        "queries": {
            "english": {"path": str(folder / "en.tsv")},
            "native": {"path": str(folder / "{language}.tsv")},
            "mixed": {
                "kind": "lexicon",
                "lexicon": str(folder / "en-{language}.tsv"),
                "rate": 1.0,
                **mix,
            },
        },
        "systems": [{"kind": "bm25", "name": "bm25"}],
    }
    return validated(MqirConfig, values)


def test_options_reach_the_queries(tmp_path: Path) -> None:
    mix = {"options": {"content_words": True, "choice": "weight"}, "clean": {}}
    sets = read_queries(config(tmp_path, **mix))
    assert [query.text for query in sets.queries["de", "mixed"]] == ["The alt haus"]
    facts = sets.facts["switched"]["de"]
    assert facts["clean"]["dropped"] == {"stop word": 1, "wrong script": 1}
    assert facts["used"]["stop words"].startswith("packaged English")
    assert (facts["replaced"], facts["replaceable"], facts["tokens"]) == (2, 2, 3)


def test_quality_measures_the_same_mixed_queries(tmp_path: Path) -> None:
    values = config(tmp_path, options={"content_words": True}, clean={}).queries.model_dump()
    studied = read_queries(config(tmp_path, options={"content_words": True}, clean={}))
    values["name"] = "title"
    del values["field"]
    given = {"kind": "quality", "name": "x", "languages": ["de"], "queries": [values]}
    sets, facts = read_query_sets(validated(QualityConfig, given))
    (measured,) = [made.texts for made in sets if made.key.variant == "mixed"]
    assert measured == {q.query_id: q.text for q in studied.queries["de", "mixed"]}
    assert facts["switched"]["title.de"] == studied.facts["switched"]["de"]


def test_defaults_as_options_change_nothing(tmp_path: Path) -> None:
    plain = read_queries(config(tmp_path))
    assert set(plain.facts["switched"]["de"]) == {
        "replaced",
        "replaceable",
        "tokens",
        "rate_of_replaceable",
        "rate_of_tokens",
    }
    options = SwitchOptions().model_dump()
    assert read_queries(config(tmp_path, options=options)) == plain
