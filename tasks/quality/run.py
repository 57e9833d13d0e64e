"""The query-quality study from config to results; tags that are whole are not made again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyray.errors import InputError, Problem
from polyray.evaluation.tables import Table
from polyray.experiment import Experiment
from polyray.files import resolve
from polyray.languages import LANGUAGES
from polyray.llm.settings import answers_file
from polyray.llm.store import Usage
from polyray.llm.work import LlmWork, llm_work
from polyray.progress import Progress
from polyray.text.mixing import mixing_report, write_tags
from polyray.text.parts_of_speech import PosTagger, find_tagger
from polyray.text.token_languages import LinguaTagger, read_matching_tags
from tasks.quality.config import FileTags, LinguaTags, LlmTags, QualityConfig, TokenSource
from tasks.quality.data import QuerySet, SetKey, input_digests, read_query_sets, tags_path
from tasks.quality.human import Judgment, QueryKey, read_preferences, read_ratings
from tasks.quality.measure import Tags, english_words

__all__ = ["QualityResult", "Quality", "run_quality"]


@dataclass(slots=True)
class Quality:
    """Everything that was measured, before it is put in tables.

    ``tags``: source -> set -> tags; ``mixing`` likewise, as
    :func:`polyray.text.mixing.mixing_report` gives it. ``words``: set -> English words and their
    parts of speech by the first source; ``used``: what LLMs were asked.
    """

    config: QualityConfig
    sets: list[QuerySet]
    facts: dict[str, Any]
    tags: dict[str, dict[SetKey, Tags]] = field(default_factory=dict)
    mixing: dict[str, dict[SetKey, dict[str, Any]]] = field(default_factory=dict)
    words: dict[SetKey, dict[str, Any]] = field(default_factory=dict)
    tagger: str = ""
    used: dict[str, Usage] = field(default_factory=dict)
    ratings: list[Judgment] = field(default_factory=list)
    preferences: list[Judgment] = field(default_factory=list)
    llm_ratings: dict[QueryKey, dict[str, int]] = field(default_factory=dict)

    @property
    def main_source(self) -> str:
        """The source that the paper's tables are filled from."""
        return self.config.token_languages[0].name


@dataclass(frozen=True, slots=True)
class QualityResult:
    """The tables to show, the notes under them and the folder."""

    folder: Path
    tables: list[Table]
    quality: Quality
    notes: list[str]


def run_quality(config: QualityConfig) -> QualityResult:
    """Measure how much queries mix languages and how good they are, for LLM and people."""
    from tasks.quality.report import write_report

    tagger = find_tagger(config.tagger)
    sets, facts = read_query_sets(config)
    quality = Quality(config, sets, facts)
    _read_people(quality)
    output = Path(config.output).absolute()
    experiment = Experiment(config.name, config, input_digests(config), output)
    experiment.open()
    seconds: dict[str, float] = {}
    store = answers_file(config.output, config.answers)
    told = (config.engines, config.name, experiment.hash, config.tracking)
    with Progress(config.name) as progress, llm_work(store, progress, *told) as work:
        for source in config.token_languages:
            start = time.perf_counter()
            quality.tags[source.name] = _tagged(source, quality, experiment, work)
            seconds[f"tags.{source.name}"] = round(time.perf_counter() - start, 3)
        _measure(quality, tagger)
        _rate(quality, work)
    quality.used = work.used
    for each in sets:
        each.write(experiment.folder / "tokens")
    tables, notes = write_report(experiment, quality, seconds)
    return QualityResult(experiment.folder, tables, quality, notes + work.notes)


def _read_people(quality: Quality) -> None:
    config = quality.config
    if config.ratings is not None:
        quality.ratings = _known(quality, config.ratings, read_ratings(resolve(config.ratings)))
    if config.preferences is not None:
        read = read_preferences(resolve(config.preferences))
        quality.preferences = _known(quality, config.preferences, read)


def _known(quality: Quality, path: str, judgments: list[Judgment]) -> list[Judgment]:
    """The judgments in the config's languages; those of queries that are not there are refused.

    So are those in a language by another code; the others of a language that the config leaves out
    are counted in the notes.
    """
    languages = quality.config.languages
    own = [judgment for judgment in judgments if judgment.query.language in languages]
    others = Counter(j.query.language for j in judgments if j.query.language not in languages)
    left_out = {code: count for code, count in others.items() if code in LANGUAGES}
    if left_out:
        quality.facts.setdefault("judgments_left_out", {})[path] = left_out
    known = {
        QueryKey(each.key.queries, each.key.language, query_id)
        for each in quality.sets
        if each.key.variant == "mixed"
        for query_id in each.texts
    }
    problems = [
        Problem(path, judgment.line, f"no mixed query {', '.join(judgment.query)} in the config")
        for judgment in own
        if judgment.query not in known
    ]
    problems += [
        Problem(path, j.line, f"language {j.query.language!r}", f"use {', '.join(languages)}")
        for j in judgments
        if j.query.language not in LANGUAGES
    ]
    if problems:
        raise InputError(problems)
    return own


def _tagged(
    source: TokenSource, quality: Quality, experiment: Experiment, work: LlmWork
) -> dict[SetKey, Tags]:
    """Tags of every set; those that an earlier start wrote are read back."""
    if isinstance(source, LlmTags):
        return _by_llm(source, quality, experiment, work)
    tagger = LinguaTagger(source.stay, source.name) if isinstance(source, LinguaTags) else None
    found: dict[SetKey, Tags] = {}
    for number, each in enumerate(quality.sets, 1):
        code = each.key.language
        path = experiment.folder / "tags" / source.name / f"{each.key}.tsv"
        if path.is_file():
            found[each.key] = read_matching_tags(path, each.tokens, code)
        elif isinstance(source, FileTags):
            found[each.key] = read_matching_tags(tags_path(source, each.key), each.tokens, code)
        elif tagger is not None:
            found[each.key] = tagger.tag(each.tokens, code)
        write_tags(path, found[each.key])
        work.progress.update(f"{source.name}: query sets", number, len(quality.sets))
    return found


def _by_llm(
    source: LlmTags, quality: Quality, experiment: Experiment, work: LlmWork
) -> dict[SetKey, Tags]:
    """The store of answers is what a second start reads; the files are for others to use."""
    from tasks.quality.llm import ask_tags

    parts = ask_tags(quality.sets, source, work)
    missing: Mapping[SetKey, dict[str, int]] = {
        key: part.facts["missing"] for key, part in parts.items() if part.facts["missing"]
    }
    if missing:
        counts = {str(key): own for key, own in missing.items()}
        quality.facts.setdefault("missing_tags", {})[source.name] = counts
    for key, part in parts.items():
        write_tags(experiment.folder / "tags" / source.name / f"{key}.tsv", part.values)
    return {key: part.values for key, part in parts.items()}


def _measure(quality: Quality, tagger: PosTagger | None) -> None:
    for name, tags in quality.tags.items():
        quality.mixing[name] = {key: mixing_report(own, key.language) for key, own in tags.items()}
    quality.tagger = f"{tagger.name} ({tagger.tagset} tags)" if tagger is not None else ""
    main = quality.tags[quality.main_source]
    for each in quality.sets:
        if each.key.variant != "english":
            answered = {i: own for i, own in each.tokens.items() if i in main[each.key]}
            quality.words[each.key] = english_words(answered, main[each.key], tagger)


def _rate(quality: Quality, work: LlmWork) -> None:
    ratings = quality.config.llm_ratings
    if ratings is None:
        return
    from tasks.quality.llm import ask_ratings

    part = ask_ratings(quality.sets, ratings, work)
    quality.llm_ratings = part.values
    if part.facts["missing"]:
        quality.facts["missing_ratings"] = part.facts["missing"]
