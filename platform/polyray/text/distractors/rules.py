"""Distractors by rule, without an LLM: the same ones for the same seed and sentence id.

The CLSD paper names simpler ways than an LLM as open (its limitations); this is one: numbers
changed, names swapped, opposites, members of a series, words of another sense by back-translation,
negation set or taken away.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from polyray.errors import ConfigError
from polyray.text.distractors.checks import DistractorChecks
from polyray.text.distractors.edits import RULES, Edit, EditContext, Names, edits_of
from polyray.text.keys import matching_key, words

__all__ = ["Distractor", "Generated", "RuleGenerator"]

SEED = 42
"""Default seed."""

_TRIES = 24
"""Combinations of changes that are tried for each distractor before they are given up."""


@dataclass(frozen=True, slots=True)
class Distractor:
    """A distractor and the changes that made it; ``edits`` count in the original."""

    text: str
    edits: tuple[Edit, ...] = ()

    @property
    def rules(self) -> str:
        """The rules of its changes, such as ``entity+number``."""
        return "+".join(dict.fromkeys(edit.rule for edit in self.edits))


@dataclass(frozen=True, slots=True)
class Generated:
    """The distractors of one sentence, at most as many as asked, and what was rejected why."""

    items: list[Distractor]
    rejected: Counter[str] = field(default_factory=Counter)


class RuleGenerator:
    """Makes distractors of sentences in one language.

    ``sentences`` (with their translations, where there are some) are where names are taken from;
    ``lexicon`` gives words of another sense (:func:`polyray.text.distractors.edits.alternatives`).
    One or two places are changed in each distractor, three where that is not enough.

    Raises :class:`~polyray.errors.ConfigError` for a rule that does not exist.
    """

    def __init__(
        self,
        language: str,
        sentences: Sequence[tuple[str, str]] = (),
        lexicon: Mapping[str, Sequence[str]] | None = None,
        *,
        rules: Sequence[str] = RULES,
        seed: int = SEED,
    ) -> None:
        if unknown := [rule for rule in rules if rule not in RULES]:
            allowed = ", ".join(RULES)
            raise ConfigError(f"rules {', '.join(unknown)}: there are {allowed}")
        names = Names(language)
        for text, translation in sentences:
            names.learn(text, translation)
        common = _common(text for text, _ in sentences)
        self._context = EditContext(language, names, lexicon or {}, tuple(rules), common)
        self._seed = seed

    def generate(
        self,
        text: str,
        sentence_id: str,
        checks: DistractorChecks,
        *,
        n: int = 4,
        translation: str = "",
    ) -> Generated:
        """Up to ``n`` distractors that pass the checks.

        Rules take turns, so that the distractors of a sentence differ in kind where they can. The
        draws depend on the seed, the language and ``sentence_id`` alone.
        """
        label = f"{self._seed}\0{self._context.language}\0{sentence_id}"
        draw = random.Random(int.from_bytes(hashlib.sha256(label.encode()).digest()))
        made = Generated([])
        for relaxed in (False, True):
            if len(made.items) < n:
                edits = edits_of(text, self._context, draw, translation, relaxed=relaxed)
                _fill(made, text, edits, checks, n, draw)
        return made


def _fill(
    made: Generated,
    text: str,
    edits: Mapping[str, Sequence[Edit]],
    checks: DistractorChecks,
    n: int,
    draw: random.Random,
) -> None:
    """Add distractors up to ``n``, as far as the changes reach."""
    order = list(edits)
    draw.shuffle(order)
    tried: set[tuple[Edit, ...]] = set()
    for attempt in range(_TRIES * n if order else 0):
        if len(made.items) >= n:
            return
        first = order[attempt % len(order)]
        chosen = _chosen(edits, first, 1 + draw.randrange(2) + (attempt >= _TRIES), draw)
        if chosen in tried:
            continue
        tried.add(chosen)
        candidate = apply_edits(text, chosen)
        reason = checks.reason(candidate, text, [item.text for item in made.items])
        if reason is None:
            made.items.append(Distractor(candidate, chosen))
        else:
            made.rejected[reason] += 1


def _common(texts: Iterable[str]) -> frozenset[str]:
    """Keys of the words that more than one sentence in a hundred has, among a hundred or more."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        total += 1
        counts.update({matching_key(word) for word in words(text)})
    if total < 100:
        return frozenset()
    return frozenset(key for key, count in counts.items() if 100 * count > total)


def _chosen(
    edits: Mapping[str, Sequence[Edit]], first: str, count: int, draw: random.Random
) -> tuple[Edit, ...]:
    """One change by rule ``first`` and further ones of any rule elsewhere, in text order."""
    chosen = [draw.choice(edits[first])]
    others = [edit for rule in edits for edit in edits[rule]]
    for edit in draw.sample(others, min(len(others), 12)):
        if len(chosen) >= count:
            break
        if all(edit.end <= one.start or edit.start >= one.end for one in chosen):
            chosen.append(edit)
    return tuple(sorted(chosen))


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with changes that do not overlap; a capital first letter stays one.

    >>> apply_edits("He won 3 games.", [Edit(7, 8, "5", "number")])
    'He won 5 games.'
    """
    pieces: list[str] = []
    reached = 0
    for edit in sorted(edits):
        pieces += (text[reached : edit.start], edit.new)
        reached = edit.end
    made = "".join([*pieces, text[reached:]])
    return made[:1].upper() + made[1:] if text[:1].isupper() else made
