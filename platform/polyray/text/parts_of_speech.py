"""Parts of speech of English words, by whichever tagger is installed.

HanTa comes with polyray and carries its English model. spaCy, with an English pipeline package, or
stanza, with its English models on disk, goes before it where it is installed. simplemma is not
among them: it lemmatises and has no tags.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from polyray.errors import MissingPrerequisite
from polyray.text.keys import compiled

__all__ = ["PCW", "PosTagger", "TaggerName", "find_tagger", "part_of_speech"]

TaggerName = Literal["any", "none", "spacy", "stanza", "hanta"]

PCW = "PCW"
"""A word combined with punctuation, as figure 9 of the MiLQ paper counts them apart."""

INSTALL = (
    "install one of: HanTa; spacy with an English pipeline such as en_core_web_sm;"
    " stanza with its English models"
)


@dataclass(frozen=True, slots=True)
class PosTagger:
    """A tagger under the name that tables give it; ``tag`` gives one part of speech a token.

    ``tagset`` says where the universal parts of speech come from.
    """

    name: str
    tagset: str
    tag: Callable[[Sequence[str]], list[str]]


def find_tagger(name: TaggerName = "any") -> PosTagger | None:
    """The English tagger asked for, or the first one that is installed; None where none is.

    Raises :class:`~polyray.errors.MissingPrerequisite` where a tagger is asked for by its name and
    cannot be used.
    """
    if name == "none":
        return None
    makers = {"spacy": _spacy, "stanza": _stanza, "hanta": _hanta}
    for key, make in makers.items():
        if name in ("any", key) and (tagger := make()) is not None:
            return tagger
    if name != "any":
        raise MissingPrerequisite(f"the tagger {name} is not installed with English; {INSTALL}")
    return None


def part_of_speech(token: str, tag: str) -> str:
    """``tag``, or :data:`PCW` for letters and punctuation in one token.

    >>> part_of_speech("self-made", "ADJ"), part_of_speech("river", "NOUN")
    ('PCW', 'NOUN')
    """
    both = compiled(r"\p{L}").search(token) and compiled(r"[\p{P}\p{S}]").search(token)
    return PCW if both else tag


def _spacy() -> PosTagger | None:
    if importlib.util.find_spec("spacy") is None:
        return None
    import spacy
    from spacy.tokens import Doc

    found = sorted(model for model in spacy.util.get_installed_models() if model.startswith("en_"))
    if not found:
        return None
    pipeline = spacy.load(found[0], exclude=["ner", "parser", "lemmatizer"])

    def tag(tokens: Sequence[str]) -> list[str]:
        document: Any = Doc(pipeline.vocab, words=list(tokens))
        for _, component in pipeline.pipeline:
            document = component(document)
        return [token.pos_ for token in document]

    return PosTagger(f"spaCy {spacy.__version__}, {found[0]}", "universal", tag)


def _stanza() -> PosTagger | None:
    if importlib.util.find_spec("stanza") is None:
        return None
    import stanza

    try:
        pipeline = stanza.Pipeline(
            "en",
            processors="tokenize,pos",
            tokenize_pretokenized=True,
            download_method=None,
            verbose=False,
        )
    except Exception:  # what it raises without its models differs from version to version
        return None

    def tag(tokens: Sequence[str]) -> list[str]:
        (sentence,) = pipeline([list(tokens)]).sentences
        return [word.upos for word in sentence.words]

    return PosTagger(f"stanza {stanza.__version__}", "universal", tag)


def _hanta() -> PosTagger | None:
    if importlib.util.find_spec("HanTa") is None:
        return None
    from importlib.metadata import version

    from HanTa import HanoverTagger

    tagger = HanoverTagger.HanoverTagger("morphmodel_en.pgz")

    def tag(tokens: Sequence[str]) -> list[str]:
        return [_universal(row[2]) for row in tagger.tag_sent(list(tokens))]

    return PosTagger(f"HanTa {version('HanTa')}", "universal, of BNC's C5", tag)


_C5 = {
    beginning: universal
    for universal, beginnings in {
        "ADJ": ("AJ", "ORD"),
        "ADP": ("IN", "PR"),
        "ADV": ("AV",),
        "AUX": ("VB", "VD", "VH", "VM"),
        "CCONJ": ("CJC",),
        "DET": ("AT", "DP", "DT"),
        "INTJ": ("ITJ",),
        "NOUN": ("NN",),
        "NUM": ("CRD",),
        "PART": ("POS", "TO", "XX"),
        "PRON": ("EX", "PN"),
        "PROPN": ("NP",),
        "PUNCT": ("PU",),
        "SCONJ": ("CJ",),
        "VERB": ("VV",),
    }.items()
    for beginning in beginnings
}
"""Universal parts of speech by how tags of the British National Corpus (C5) begin."""


def _universal(tag: str) -> str:
    """The universal part of speech of a C5 tag; ``X`` for what has none.

    >>> _universal("NN2"), _universal("CJC"), _universal("CJS"), _universal("UNC")
    ('NOUN', 'CCONJ', 'SCONJ', 'X')
    """
    return _C5.get(tag, _C5.get(tag[:2], "X"))
