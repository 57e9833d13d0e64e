"""The tables of what people say of mixed queries: preferences and agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyray.evaluation.tables import Cell, Table
from tasks.quality.human import (
    CRITERIA,
    FORMULATIONS,
    mean_ratings,
    preference_summary,
    rating_summary,
)
from tasks.quality.measure import kendall_tau
from tasks.quality.tables import averaged, those_of

if TYPE_CHECKING:
    from tasks.quality.run import Quality

__all__ = ["human_table", "preferences_table", "tau_rows", "tau_table"]


def preferences_table(quality: Quality) -> Table | None:
    """Table 2: share of queries with a majority, and mean votes for each formulation."""
    if not quality.preferences:
        return None
    config = quality.config
    rows: list[list[Cell]] = []
    columns = ["language"]
    for queries in config.queries:
        columns += [f"{queries.name} {name}" for name in ("Agr. (%)", "Nat.", "Mix.", "Eng.")]
    for code in config.languages:
        row: list[Cell] = [code]
        for queries in config.queries:
            own = those_of(quality.preferences, queries.name, code)
            found = preference_summary(own)
            share = found["agreed"]
            row.append(None if share is None else 100 * share)
            row += [found["votes"][name] for name in FORMULATIONS]
        if any(cell is not None for cell in row[1:]):
            rows.append(row)
    caption = (
        f"{config.name}: preferred formulations. Agr.: queries where more than half of the"
        " annotators chose the same formulation; mean votes over those queries"
    )
    decimals = {name: 1 if name.endswith("(%)") else 2 for name in columns}
    return Table(columns, averaged(rows), caption, decimals)


def human_table(quality: Quality) -> Table | None:
    """How far annotators agree, by language, query set and criterion."""
    if not quality.ratings:
        return None
    rows: list[list[Cell]] = []
    for queries in quality.config.queries:
        for code in quality.config.languages:
            found = rating_summary(those_of(quality.ratings, queries.name, code))
            for name, own in found.items():
                majority = own["majority"]
                rows.append(
                    [
                        queries.name,
                        code,
                        name,
                        own["queries"],
                        own["annotators"],
                        own["mean"],
                        None if majority is None else 100 * majority,
                        own["alpha"],
                    ]
                )
    columns = ["queries", "language", "criterion", "rated", "annotators", "mean"]
    columns += ["% majority", "alpha"]
    caption = (
        f"{quality.config.name}: agreement of annotators; majority: more than half gave the same"
        " rating; alpha: Krippendorff, ordinal (empty where all ratings are the same)"
    )
    decimals = {"mean": 2, "% majority": 1, "alpha": 3}
    return Table(columns, rows, caption, decimals)


def tau_rows(quality: Quality) -> list[dict[str, Any]]:
    """Kendall's tau-b between the LLM's ratings and the annotators' means, by query set."""
    means = mean_ratings(quality.ratings)
    found = []
    for queries in quality.config.queries:
        for name in CRITERIA[:2]:
            pairs = [
                (float(own[name]), means[key][name])
                for key, own in quality.llm_ratings.items()
                if key.queries == queries.name and name in means.get(key, {})
            ]
            first, second = [a for a, _ in pairs], [b for _, b in pairs]
            found.append({"queries": queries.name, "criterion": name, **kendall_tau(first, second)})
    return found


def tau_table(quality: Quality) -> Table | None:
    """How the LLM's ratings go with people's."""
    if not quality.llm_ratings or not quality.ratings:
        return None
    rows: list[list[Cell]] = [
        [row["queries"], row["criterion"], row["n"], row["tau"], row["p"]]
        for row in tau_rows(quality)
    ]
    columns = ["queries", "criterion", "rated by both", "tau-b", "p"]
    caption = f"{quality.config.name}: Kendall's tau of the LLM's ratings and people's means"
    return Table(columns, rows, caption, decimals=3)
