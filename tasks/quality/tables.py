"""The tables of the query-quality study, in the form of the MiLQ paper's where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Cell, Table
from polyray.text.parts_of_speech import INSTALL
from tasks.quality.config import Variant
from tasks.quality.data import SetKey
from tasks.quality.human import CRITERIA, rating_summary
from tasks.quality.measure import agreement, share_tagged

if TYPE_CHECKING:
    from tasks.quality.run import Quality

__all__ = [
    "agreement_rows",
    "averaged",
    "controls_table",
    "mean_of",
    "mixing_table",
    "parts_table",
    "quality_table",
    "sources_table",
    "those_of",
]

VARIANTS: tuple[Variant, Variant] = ("native", "mixed")
DEFINITIONS = ("cmi_native", "cmi_max")


def mean_of(values: Sequence[Cell]) -> float | None:
    """The mean of the numbers among the cells of a column."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers else None


def averaged(rows: list[list[Cell]], label: str = "average") -> list[list[Cell]]:
    """The rows and, where there are several, one with the mean of each column."""
    if len(rows) < 2:
        return rows
    columns = list(zip(*rows, strict=True))
    return [*rows, [label, *(mean_of(column) for column in columns[1:])]]


def quality_table(quality: Quality, only: str | None = None) -> Table:
    """Table 1: one row a language; for each query set CMI and ratings by LLM and people.

    ``only`` names one query set. Columns that nothing is known of are left out.
    """
    config = quality.config
    names = [queries.name for queries in config.queries if only in (None, queries.name)]
    rows: list[list[Cell]] = []
    for code in config.languages:
        row: list[Cell] = [code]
        for name in names:
            row += _quality_cells(quality, name, code)
        rows.append(row)
    columns = ["language"]
    for name in names:
        columns += [f"{name} {column}" for column in _QUALITY_COLUMNS]
    rows = averaged(rows)
    kept = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    decimals = {name: 1 if "CMI" in name or "queries" in name else 2 for name in columns}
    caption = (
        f"{config.name}: quality of mixed queries. Code-Mixing Index 0 to 100 with the native"
        f" language as primary (cmi_native), tokens by {quality.main_source}; ratings 1 to 3"
    )
    return Table(
        [columns[i] for i in kept], [[row[i] for i in kept] for row in rows], caption, decimals
    )


_QUALITY_COLUMNS = (
    "queries",
    "CMI native",
    "CMI mixed",
    "LLM Acc.",
    "LLM Flu.",
    "human Acc.",
    "human Flu.",
    "human Real.",
)


def _quality_cells(quality: Quality, queries: str, code: str) -> list[Cell]:
    reports = quality.mixing[quality.main_source]
    native, mixed = (reports[SetKey(queries, code, variant)] for variant in VARIANTS)
    llm = [
        value
        for key, value in quality.llm_ratings.items()
        if (key.queries, key.language) == (queries, code)
    ]
    people = rating_summary(those_of(quality.ratings, queries, code))
    return [
        mixed["counts"]["queries"],
        native["mean_all"]["cmi_native"],
        mixed["mean_all"]["cmi_native"],
        *(mean_of([own[name] for own in llm]) for name in CRITERIA[:2]),
        *(people[name]["mean"] if name in people else None for name in CRITERIA),
    ]


def those_of(judgments: Sequence[Any], queries: str, code: str) -> list[Any]:
    """The judgments of one query set in one language."""
    return [j for j in judgments if (j.query.queries, j.query.language) == (queries, code)]


def mixing_table(quality: Quality, queries: str) -> Table:
    """Both definitions of the index for one query set, by the first source."""
    reports = quality.mixing[quality.main_source]
    rows: list[list[Cell]] = []
    for code in quality.config.languages:
        row: list[Cell] = [code]
        for variant in VARIANTS:
            report = reports[SetKey(queries, code, variant)]
            row += [report["mean_all"][name] for name in DEFINITIONS]
            share = report["share_mixed"]
            row += [report["mean_mixed"]["cmi_max"], None if share is None else 100 * share]
        rows.append(row)
    columns = ["language"]
    for variant in VARIANTS:
        columns += [f"{variant} {name}" for name in DEFINITIONS]
        columns += [f"{variant} cmi_max of mixed", f"{variant} % mixed"]
    caption = (
        f"{quality.config.name}, {queries}: Code-Mixing Index, mean over queries, tokens by"
        f" {quality.main_source}; mixed: queries with words of both languages"
    )
    return Table(columns, averaged(rows), caption, decimals=1)


def agreement_rows(quality: Quality) -> list[dict[str, Any]]:
    """How two sources of token languages agree, by query set."""
    found = []
    for key in quality.tags[quality.main_source]:
        sources = {name: tags[key] for name, tags in quality.tags.items()}
        found += [{**key._asdict(), **row} for row in agreement(sources)]
    return found


def sources_table(quality: Quality) -> Table | None:
    """The sources of token languages beside each other, over all languages and query sets."""
    if len(quality.tags) < 2:
        return None
    rows: list[list[Cell]] = []
    for variant in (*VARIANTS, "english"):
        for queries in quality.config.queries:
            some = [
                row
                for row in agreement_rows(quality)
                if (row["queries"], row["variant"]) == (queries.name, variant)
            ]
            for pair in dict.fromkeys((row["first"], row["second"]) for row in some):
                own = [row for row in some if (row["first"], row["second"]) == pair]
                tokens = sum(row["tokens"] for row in own)
                same = sum(row["tokens"] * (row["same"] or 0.0) for row in own)
                rows.append(
                    [
                        f"{queries.name}, {variant}",
                        *pair,
                        tokens,
                        100 * same / tokens if tokens else None,
                        mean_of([row["alpha"] for row in own]),
                        *(_mean_index(quality, name, queries.name, variant) for name in pair),
                    ]
                )
    columns = ["queries", "first", "second", "tokens", "% same tag", "alpha"]
    columns += ["cmi_native first", "cmi_native second"]
    caption = (
        f"{quality.config.name}: sources of token languages compared; alpha (Krippendorff,"
        " nominal) and cmi_native are means over languages"
    )
    decimals = {"% same tag": 1, "alpha": 3, "cmi_native first": 1, "cmi_native second": 1}
    return Table(columns, rows, caption, decimals)


def _mean_index(quality: Quality, source: str, queries: str, variant: str) -> float | None:
    reports = quality.mixing[source]
    return mean_of(
        [
            report["mean_all"]["cmi_native"]
            for key, report in reports.items()
            if (key.queries, key.variant) == (queries, variant)
        ]
    )


def controls_table(quality: Quality) -> Table:
    """How often each source is right where the language is known: native and English queries."""
    rows: list[list[Cell]] = []
    for code in quality.config.languages:
        row: list[Cell] = [code]
        for tags in quality.tags.values():
            for variant, wanted in (("native", code), ("english", "en")):
                shares = [
                    share_tagged(own, wanted)
                    for key, own in tags.items()
                    if (key.language, key.variant) == (code, variant)
                ]
                mean = mean_of(shares)
                row.append(None if mean is None else 100 * mean)
        rows.append(row)
    columns = ["language"]
    for name in quality.tags:
        columns += [f"{name}: native", f"{name}: English"]
    caption = (
        f"{quality.config.name}: percent of words tagged as native in native queries and as English"
        " in English queries; names and borrowed words count against both"
    )
    return Table(columns, averaged(rows), caption, decimals=1)


def parts_table(quality: Quality) -> Table:
    """Figure 9: English words in native and mixed queries by part of speech."""
    totals = {variant: _parts(quality, variant) for variant in VARIANTS}
    words = {variant: own["english_words"] for variant, own in totals.items()}
    if not quality.tagger:
        caption = (
            f"{quality.config.name}: English words; no part of speech, since no tagger is"
            f" installed ({INSTALL})"
        )
        rows: list[list[Cell]] = [["all English words", *words.values()]]
        return Table(["part of speech", *VARIANTS], rows, caption)
    parts = totals["mixed"]["parts"] | totals["native"]["parts"]
    order = sorted(parts, key=lambda name: (-totals["mixed"]["parts"].get(name, 0), name))
    rows = [
        [
            name,
            *(
                100 * totals[v]["parts"].get(name, 0) / words[v] if words[v] else None
                for v in VARIANTS
            ),
        ]
        for name in order
    ]
    caption = (
        f"{quality.config.name}: parts of speech of English words, percent, by {quality.tagger};"
        f" {words['native']:,} words in native and {words['mixed']:,} in mixed queries;"
        " PCW: combined with punctuation"
    )
    return Table(["part of speech", *VARIANTS], rows, caption, decimals=1)


def _parts(quality: Quality, variant: str) -> dict[str, Any]:
    parts: dict[str, int] = {}
    words = 0
    for key, own in quality.words.items():
        if key.variant == variant:
            words += own["english_words"]
            for name, count in own["parts"].items():
                parts[name] = parts.get(name, 0) + count
    return {"english_words": words, "parts": parts}
