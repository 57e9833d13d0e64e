"""The tagger that comes with polyray, and what its tags become."""

from __future__ import annotations

from polyray.text.parts_of_speech import find_tagger, part_of_speech
from polyray.text.switch_settings import SwitchSettings
from polyray.text.switching import Switcher


def test_hanta_tags_english_with_universal_parts_of_speech() -> None:
    """A sentence tagged by hand; numbers, determiners and prepositions are no content words."""
    tagger = find_tagger("hanta")
    assert tagger is not None
    assert tagger.name.startswith("HanTa ")
    words = ["the", "old", "river", "quickly", "flows", "through", "three", "Swiss", "cities"]
    assert tagger.tag(words) == ["DET", "ADJ", "NOUN", "ADV", "VERB", "ADP", "NUM", "ADJ", "NOUN"]
    assert tagger.tag([]) == []
    assert part_of_speech("self-made", tagger.tag(["self-made"])[0]) == "PCW"


def test_content_words_by_hanta() -> None:
    """Every word has a translation; only those that the tagger calls content words are switched."""
    german = {"the": "der", "old": "alt", "river": "fluss", "flows": "fliesst", "through": "durch"}
    lexicon = {word: [other] for word, other in german.items()}
    options = {"rate": 1.0, "content_words": True, "tagger": "hanta"}
    switcher = Switcher(lexicon, SwitchSettings(**options))
    assert (
        switcher("the old river flows through it", "q").text == "the alt fluss fliesst through it"
    )
    assert switcher.used["parts of speech"].startswith("HanTa ")
