"""Distractors of one language: by rule, or by an LLM that is asked again for what failed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from polyray.collections.lexicon import read_lexicon
from polyray.languages import LANGUAGES
from polyray.models.nli import NliModel, NliSettings
from polyray.text.distractors.checks import DistractorChecks
from polyray.text.distractors.edits import alternatives
from polyray.text.distractors.rules import RuleGenerator
from polyray.text.distractors.similarity import edit_similarity, jaccard
from tasks.distractors.config import (
    DistractorsConfig,
    JudgeSettings,
    LlmGenerator,
    RulesGenerator,
)
from tasks.distractors.data import Made, Pair, lexicon_path

if TYPE_CHECKING:
    from polyray.llm.request import Item
    from polyray.llm.store import Answer, Usage
    from polyray.llm.work import LlmWork
    from polyray.progress import Progress

__all__ = [
    "Part",
    "by_llm",
    "by_rules",
    "judge_items",
    "judged",
    "llm_items",
    "parse_items",
    "parse_judgment",
    "stand_ins",
]


class Part(NamedTuple):
    """What came out for one language: distractors, rejects by reason, and what was said of them.

    ``said`` has the first message of each reason that came with one, as of a server that refuses;
    ``used`` what LLMs were asked for it.
    """

    made: list[Made]
    rejected: Counter[str]
    said: Mapping[str, str] = {}
    used: Mapping[str, Usage] = {}


def by_rules(
    config: DistractorsConfig,
    generator: RulesGenerator,
    pairs: Sequence[Pair],
    code: str,
    progress: Progress,
) -> Part:
    """Rule-based distractors of every sentence in language ``code``."""
    other = config.other(code)
    sentences = [(pair.sentences[code], pair.sentences[other]) for pair in pairs]
    lexicon = {}
    if generator.lexicon is not None:
        read = read_lexicon(lexicon_path(config, code))
        lexicon = alternatives(_turned(read) if code == "en" else read)
    maker = RuleGenerator(code, sentences, lexicon, rules=generator.rules, seed=generator.seed)
    checks = DistractorChecks(code, config.checks)
    part = Part([], Counter())
    for count, (pair, (text, translation)) in enumerate(zip(pairs, sentences, strict=True), 1):
        found = maker.generate(text, pair.row_id, checks, n=config.n, translation=translation)
        part.rejected.update(found.rejected)
        for number, item in enumerate(found.items, 1):
            edits = json.dumps(item.edits, ensure_ascii=False)
            part.made.append(_made(pair, code, number, item.text, "rules", item.rules, edits))
        progress.update(f"{code}: sentences", count, len(pairs))
    return part


def _turned(lexicon: dict[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for word, translations in lexicon.items():
        for translation in translations:
            found.setdefault(translation, {})[word] = None
    return {translation: list(words) for translation, words in found.items()}


def _made(
    pair: Pair, code: str, number: int, text: str, generator: str, how: str, edits: str = ""
) -> Made:
    original = pair.sentences[code]
    return Made(
        pair.row_id,
        code,
        number,
        original,
        text,
        generator,
        how,
        edits,
        edit_similarity(text, original),
        jaccard(text, original),
    )


def llm_items(
    config: DistractorsConfig, generator: LlmGenerator, pairs: Sequence[Pair], code: str, turn: int
) -> list[Item]:
    """One item a sentence; ``turn`` makes it another sample."""
    from polyray.llm.prompts import load_prompt

    prompt = load_prompt(generator.prompt)
    return [
        prompt.item(
            f"{code}\x1f{pair.row_id}",
            sample=turn,
            context=(pair.sentences[code], code, config.n),
            language=LANGUAGES[code].name,
            text=pair.sentences[code],
            n=config.n,
        )
        for pair in pairs
    ]


def parse_items(item: Item, answer: Answer) -> tuple[list[str], dict[str, int]]:
    """Distractors of an answer, spare ones at the end, and what the parser rejected."""
    from polyray.llm.parsing import ParseError, parse_distractors

    original, code, n = item.context
    found = parse_distractors(
        answer.content, n=n, original=original, lang=code, finish_reason=answer.finish_reason
    )
    if not found.items:
        raise ParseError(found.status)
    return [*found.items, *found.spare], found.rejected


def by_llm(
    config: DistractorsConfig,
    generator: LlmGenerator,
    pairs: Sequence[Pair],
    code: str,
    work: LlmWork,
) -> Part:
    """Distractors by an LLM; in each round only sentences that lack some are asked for.

    Rejects count what the parser, the checks and the judge refused; ``answer: REASON`` counts
    sentences whose answer was of no use in a round.
    """
    rounds = _Rounds(config, code, work)
    for turn in range(generator.rounds):
        short = [pair for pair in pairs if len(rounds.kept[pair.row_id]) < config.n]
        if not short:
            break
        rounds.round(generator, short, turn)
    made = [one for pair in pairs for one in rounds.kept[pair.row_id]]
    return Part(made, rounds.rejected, rounds.said)


class _Rounds:
    """What is kept and refused so far; a sentence refused once is never taken again."""

    def __init__(self, config: DistractorsConfig, code: str, work: LlmWork) -> None:
        self._config, self._code, self._work = config, code, work
        self._checks = DistractorChecks(code, config.checks)
        self._seen: dict[str, list[str]] = defaultdict(list)
        self.kept: dict[str, list[Made]] = defaultdict(list)
        self.rejected: Counter[str] = Counter()
        self.said: dict[str, str] = {}

    def round(self, generator: LlmGenerator, pairs: Sequence[Pair], turn: int) -> None:
        """Ask once for each of ``pairs`` and keep what stands."""
        items = llm_items(self._config, generator, pairs, self._code, turn)
        name = f"{self._code}, round {turn + 1}"
        asked = self._work.ask(name, items, generator.engine, parse_items)
        model = generator.engine.provider.model
        new: list[Made] = []
        for pair, item in zip(pairs, items, strict=True):
            outcome = asked[item.id]
            if outcome.ok:
                texts, refused = outcome.parsed
                self.rejected.update(refused)
                how = f"{item.prompt}, round {turn + 1}"
                new += self._checked(pair, texts, model, how)
            else:
                reason = f"answer: {outcome.reason}"
                self.rejected[reason] += 1
                if outcome.detail:
                    self.said.setdefault(reason, outcome.detail)
        part = judged(self._config, Part(new, Counter()), self._work)
        self.rejected.update(part.rejected)
        for one in part.made:
            own = self.kept[one.row_id]
            own.append(replace(one, number=len(own) + 1))

    def _checked(self, pair: Pair, texts: Sequence[str], model: str, how: str) -> list[Made]:
        new: list[Made] = []
        for text in texts:
            if len(self.kept[pair.row_id]) + len(new) == self._config.n:
                break
            seen = self._seen[pair.row_id]
            reason = self._checks.reason(text, pair.sentences[self._code], seen)
            if reason is None:
                seen.append(text)
                new.append(_made(pair, self._code, len(new) + 1, text, model, how))
            else:
                self.rejected[reason] += 1
        return new


def judge_items(judge: JudgeSettings, made: Sequence[Made]) -> list[Item]:
    """One item a distractor: whether its meaning differs from the original's."""
    from polyray.llm.prompts import load_prompt

    prompt = load_prompt(judge.prompt)
    return [
        prompt.item(
            f"{one.language}\x1f{one.row_id}\x1f{one.number}",
            language=LANGUAGES[one.language].name,
            original=one.original,
            changed=one.text,
        )
        for one in made
    ]


def parse_judgment(item: Item, answer: Answer) -> bool:
    """Whether the judge says that the meaning changed."""
    from polyray.llm.parsing import parse_verdict

    return parse_verdict(answer.content)


def stand_ins(pair: Pair, code: str, count: int) -> list[Made]:
    """As many distractors, all like the original: for an estimate of what a judge costs."""
    text = pair.sentences[code]
    return [
        Made(pair.row_id, code, number, text, f"{text} {number}", "", "", "", 1.0, 1.0)
        for number in range(count)
    ]


def judged(config: DistractorsConfig, part: Part, work: LlmWork) -> Part:
    """Ask the judge about every distractor; one whose meaning is the same is taken out.

    Without a usable answer a distractor stays, its verdict empty, and ``unjudged`` counts it.
    """
    if config.judge is None or not part.made:
        return part
    rejected = Counter(part.rejected)
    kept: list[Made] = []
    numbers: Counter[str] = Counter()
    for one, changed in zip(part.made, _verdicts(config.judge, part.made, work), strict=True):
        if changed is False:
            rejected["same_meaning"] += 1
            continue
        if changed is None:
            rejected["unjudged"] += 1
        numbers[one.row_id] += 1
        kept.append(replace(one, number=numbers[one.row_id], verdict=changed))
    return Part(kept, rejected)


def _verdicts(judge: JudgeSettings, made: Sequence[Made], work: LlmWork) -> list[bool | None]:
    """Of each distractor whether its meaning changed, None without a usable answer."""
    name = f"{made[0].language}, judge"
    if judge.engine is not None:
        items = judge_items(judge, made)
        asked = work.ask(name, items, judge.engine, parse_judgment)
        return [bool(asked[i.id].parsed) if asked[i.id].ok else None for i in items]
    if judge.nli is None:
        return [None] * len(made)
    work.progress.update(name, 0, len(made))
    same = _nli(judge.nli).same_meaning([(one.original, one.text) for one in made])
    work.progress.update(name, len(made), len(made))
    return [not own for own in same]


@lru_cache(maxsize=1)
def _nli(settings: NliSettings) -> NliModel:
    return NliModel(settings)
