"""Lexicon hygiene: entries that are no translations of a word, found by rules and counted.

Lexicons drawn from dictionaries hold remarks for readers beside translations. Every pair that goes
is counted under the first reason that holds, with examples, so that a rule that takes too much is
seen. The rules look at one pair at a time and know no grammar: a report is read, not believed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic import Field

from polyray.config import Settings
from polyray.evaluation.tables import Table
from polyray.languages import Language, language
from polyray.text.keys import compiled, word_spans
from polyray.text.stop_words import StopWords, packaged_stop_words, read_stop_words

__all__ = ["EXAMPLES", "HygieneReport", "HygieneSettings", "Reason", "clean_lexicon"]

Reason = Literal[
    "no word",
    "stop word",
    "markup",
    "affix",
    "gloss",
    "too long",
    "wrong script",
    "repeat",
    "sense",
]
"""Why a pair is dropped, in the order in which the rules are tried."""

EXAMPLES = 5
"""How many pairs of each reason a report shows: the first ones of the lexicon."""

AnyLexicon = TypeVar("AnyLexicon", Mapping[str, Sequence[str]], Mapping[str, Mapping[str, float]])

_REMARK = re.compile(r"\s*(?:\([^()]*\)|\[[^][]*\]|<[^<>]*>|\{[^{}]*\}|（[^（）]*）)\s*")
_LABEL = re.compile(r"\s*[A-Za-z][A-Za-z .'-]*:\s+|\s*:\s*")
_MARKUP = re.compile(r"[][(){}<>（）=+|*/;\\^~_…]|\.\.\.")
_AFFIX = re.compile(r"(?:^|\s)[-‐‑–ـ]\w|\w[-‐‑–](?:$|\s)")
_SAID = re.compile(
    r"\b(?:(?:not )?used (?:in|with|to|as|for|when|before|after|only)|expressed (?:with|by|as)"
    r"|use (?:a|an|of|the)|case of the|see also|forms? of)\b",
    re.IGNORECASE,
)
_GRAMMAR = re.compile(
    r"\b(?:headword|suffix|prefix|noun|adjective|adverb|pronoun|tense|plural|singular|verb"
    r"|conjugated|declined|inflected|conditional|imperfect|infinitive|participle|genitive"
    r"|partitive|accusative|dative|nominative|inessive|elative|illative|adessive|ablative"
    r"|allative|translated|expressed|paraphrase|literally|usually|mostly|equivalent|especially"
    r"|technical)\b"
)
"""In small letters alone: German writes its own words of this kind with a capital."""
_ENGLISH = frozenset(
    ("the", "of", "with", "and", "from", "for", "by", "which", "that", "used", "who", "whose")
)
"""English words that the other languages written in Latin letters here do not have."""
_SCRIPTS = {"Latn": "Latin", "Hans": "Han", "Arab": "Arabic", "Cyrl": "Cyrillic"}


class HygieneSettings(Settings):
    """Which rules are on; ``None`` switches a limit off.

    ``stop_words`` drops pairs whose headword is a function word: by ``stop_list`` (a file) or the
    packaged list of the language; so do translations into a language with a packaged list.
    ``remarks`` cuts bracketed remarks and leading labels off a translation that goes on without
    them. ``markup`` drops what still holds brackets, slashes, dots for something left out and the
    like; ``affixes`` bare suffixes and prefixes; ``glosses`` remarks in English about grammar or
    use; ``scripts`` pairs with less than half of their letters in the script of their language.
    ``max_words`` counts words between white space, in a language without spaces two characters as
    one. ``max_senses`` keeps the first translations of a headword, or those of most weight.
    """

    stop_words: bool = True
    stop_list: str | None = None
    remarks: bool = True
    markup: bool = True
    affixes: bool = True
    glosses: bool = True
    scripts: bool = True
    max_words: int | None = Field(default=4, gt=0)
    max_senses: int | None = Field(default=None, gt=0)


@dataclass(frozen=True, slots=True)
class HygieneReport:
    """What was dropped from a lexicon: counts of pairs by reason, and some of them.

    ``cut`` counts translations that lost a remark, kept or not. ``used`` names the stop lists and
    scripts that the rules went by.
    """

    headwords: int
    pairs: int
    headwords_kept: int
    pairs_kept: int
    cut: int
    dropped: dict[str, int]
    examples: dict[str, list[tuple[str, str]]]
    used: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """The report as JSON values."""
        return asdict(self)

    def table(self, caption: str = "lexicon hygiene") -> Table:
        """A row a reason with its pairs, their share of all pairs, and examples."""
        rows: list[tuple[str, int, float, str]] = []
        for reason, count in self.dropped.items():
            shown = "; ".join(f"{word} = {text}" for word, text in self.examples[reason])
            rows.append((reason, count, 100 * count / self.pairs if self.pairs else 0.0, shown))
        gone = self.pairs - self.pairs_kept
        rows.append(("all dropped", gone, 100 * gone / self.pairs if self.pairs else 0.0, ""))
        kept = f"{self.pairs_kept:,} of {self.pairs:,} pairs and "
        kept += f"{self.headwords_kept:,} of {self.headwords:,} headwords kept"
        columns = ("reason", "pairs", "% of pairs", "examples")
        return Table(columns, rows, f"{caption}: {kept}", decimals=2)


def clean_lexicon(
    lexicon: AnyLexicon,
    settings: HygieneSettings | None = None,
    *,
    source: str = "en",
    target: str = "",
) -> tuple[AnyLexicon, HygieneReport]:
    """A lexicon, with weights or without, after the rules of ``settings``, and the report.

    ``source`` is the language of the headwords, ``target`` that of the translations (any code of
    :mod:`polyray.languages`; where it is not given its script is not looked at). The order of
    headwords and translations stays; a headword without translations left goes.

    Raises :class:`~polyray.errors.ConfigError` for a language that is not known.
    """
    rules = _Rules(settings or HygieneSettings(), language(source), target)
    kept: dict[str, dict[str, float]] = {}
    weighted = isinstance(next(iter(lexicon.values()), ()), Mapping)
    examples: dict[str, list[tuple[str, str]]] = {}
    dropped: Counter[str] = Counter()
    pairs = cut = 0

    def drop(reason: Reason, word: str, translation: str) -> None:
        dropped[reason] += 1
        if len(shown := examples.setdefault(reason, [])) < EXAMPLES:
            shown.append((word, translation))

    for word, translations in lexicon.items():
        of_word = rules.against_headword(word)
        senses: dict[str, float] = {}
        for whole, weight in _weighted(translations):
            pairs += 1
            translation = rules.without_remarks(whole)
            cut += translation != whole
            if reason := of_word or rules.against(translation):
                drop(reason, word, whole)
            elif translation in senses:
                senses[translation] = max(weight, senses[translation])
                drop("repeat", word, whole)
            else:
                senses[translation] = weight
        for extra in rules.too_many(senses):
            drop("sense", word, extra)
            del senses[extra]
        if senses:
            kept[word] = senses
    cleaned: Any = kept if weighted else {word: list(senses) for word, senses in kept.items()}
    report = HygieneReport(
        len(lexicon),
        pairs,
        len(kept),
        sum(map(len, kept.values())),
        cut,
        {reason: dropped[reason] for reason in get_args(Reason) if dropped[reason]},
        examples,
        rules.used,
    )
    return cast("AnyLexicon", cleaned), report


def _weighted(translations: Sequence[str] | Mapping[str, float]) -> Iterator[tuple[str, float]]:
    if isinstance(translations, Mapping):
        yield from translations.items()
    else:
        yield from ((translation, 1.0) for translation in translations)


class _Rules:
    """The rules for one pair of languages."""

    def __init__(self, settings: HygieneSettings, source: Language, target: str) -> None:
        self._settings = settings
        self._source = source
        self._target = language(target) if target else None
        self.used: dict[str, str] = {}
        self._stop: StopWords | None = None
        self._stop_target: StopWords | None = None
        if settings.stop_words:
            path = settings.stop_list
            self._stop = read_stop_words(path) if path else packaged_stop_words(source.code)
            self._stop_target = packaged_stop_words(self._target.code if self._target else "")
            lists = [stop.source for stop in (self._stop, self._stop_target) if stop]
            self.used["stop words"] = "; ".join(lists) or "no list for these languages"
        if settings.scripts:
            into = self._target.script if self._target else "any"
            self.used["scripts"] = f"{source.script} to {into}"

    def without_remarks(self, translation: str) -> str:
        """A translation without bracketed remarks and labels, if something is left."""
        if not self._settings.remarks:
            return translation
        rest = " ".join(_REMARK.sub(" ", _LABEL.sub("", translation, count=1)).split())
        return rest if rest and _has_word(rest) else translation

    def too_many(self, senses: Mapping[str, float]) -> list[str]:
        """Translations beyond the limit: the last ones, or those of least weight."""
        limit = self._settings.max_senses
        if limit is None or len(senses) <= limit:
            return []
        ranked = sorted(senses, key=lambda one: -senses[one])
        return ranked[limit:]

    def against_headword(self, word: str) -> Reason | None:
        """The first reason against all pairs of a headword."""
        if not _has_word(word):
            return "no word"
        if self._stop and word in self._stop:
            return "stop word"
        if self._settings.affixes and _AFFIX.search(word):
            return "affix"
        if self._settings.scripts and not _written_in(word, self._source):
            return "wrong script"
        return None

    def against(self, translation: str) -> Reason | None:
        """The first reason against a translation."""
        on = self._settings
        if not _has_word(translation):
            return "no word"
        if self._stop_target and translation in self._stop_target:
            return "stop word"
        if on.markup and _MARKUP.search(translation):
            return "markup"
        if on.affixes and _AFFIX.search(translation):
            return "affix"
        if on.glosses and self._is_gloss(translation):
            return "gloss"
        if on.max_words is not None and self._length(translation) > on.max_words:
            return "too long"
        if on.scripts and not _written_in(translation, self._target):
            return "wrong script"
        return None

    def _is_gloss(self, translation: str) -> bool:
        """Whether an explanation in English stands where a translation should."""
        parts = translation.lower().split()
        if len(parts) < 2:
            return False
        if _SAID.search(translation):
            return True
        if self._target is None or self._target.code == "en":
            return False
        named = self._target.name.lower() in parts
        english = sum(part in _ENGLISH for part in parts)
        return named or english > 1 or _GRAMMAR.search(translation) is not None

    def _length(self, translation: str) -> int:
        if self._target is not None and not self._target.spaces:
            return (len(word_spans(translation)) + 1) // 2
        return len(translation.split())


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _written_in(text: str, of: Language | None) -> bool:
    """Whether at least half of the letters are of the language's script; True without letters."""
    if of is None or (text.isascii() and of.script == "Latn"):
        return True
    own = len(compiled(rf"[\p{{L}}&&\p{{Script={_SCRIPTS[of.script]}}}]").findall(text))
    return 2 * own >= len(compiled(r"\p{L}").findall(text))
