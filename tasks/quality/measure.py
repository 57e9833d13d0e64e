"""What is measured of query sets: mixing by each source, how sources agree, English words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from polyray.text.mixing import INDEPENDENT, NAMED_ENTITY
from polyray.text.parts_of_speech import PosTagger, part_of_speech
from polyray.text.token_languages import ENGLISH

__all__ = ["Tags", "agreement", "english_words", "kendall_tau", "share_tagged"]

Tags = Mapping[str, Sequence[str]]
"""Query id -> one tag a token."""


def share_tagged(tags: Tags, wanted: str) -> float | None:
    """The share of the words (tokens of some language) that are tagged ``wanted``."""
    found = [t for own in tags.values() for t in own if t not in (INDEPENDENT, NAMED_ENTITY)]
    return found.count(wanted) / len(found) if found else None


def agreement(sources: Mapping[str, Tags]) -> list[dict[str, Any]]:
    """For each two sources, over the tokens of the queries that both have tagged.

    ``first``, ``second``, ``tokens``, ``same`` (share of equal tags), ``alpha`` (Krippendorff's,
    nominal; None where there is only one tag) and ``differences`` (the commonest, as ``a/b``).
    """
    found = []
    for first, second in combinations(sources, 2):
        shared = [query_id for query_id in sources[first] if query_id in sources[second]]
        pairs = [
            pair
            for query_id in shared
            for pair in zip(sources[first][query_id], sources[second][query_id], strict=True)
        ]
        different = Counter(f"{a}/{b}" for a, b in pairs if a != b)
        found.append(
            {
                "first": first,
                "second": second,
                "tokens": len(pairs),
                "same": sum(a == b for a, b in pairs) / len(pairs) if pairs else None,
                "alpha": _alpha(pairs),
                "differences": dict(different.most_common(5)),
            }
        )
    return found


def _alpha(pairs: Sequence[tuple[str, str]]) -> float | None:
    import krippendorff
    import numpy as np

    numbers = {tag: number for number, tag in enumerate(sorted({t for p in pairs for t in p}))}
    if len(numbers) < 2:
        return None
    data = np.array([[numbers[a] for a, _ in pairs], [numbers[b] for _, b in pairs]])
    return float(krippendorff.alpha(reliability_data=data, level_of_measurement="nominal"))


def english_words(
    tokens: Mapping[str, Sequence[str]], tags: Tags, tagger: PosTagger | None
) -> dict[str, Any]:
    """How many words are English, and of which parts of speech (figure 9 of the MiLQ paper).

    Every query is tagged as a whole and the tags of its English words are counted. Without a
    tagger ``parts`` is empty: nothing is guessed.
    """
    parts: Counter[str] = Counter()
    words = 0
    for query_id, own in tokens.items():
        english = [place for place, tag in enumerate(tags[query_id]) if tag == ENGLISH]
        words += len(english)
        if tagger is not None and english:
            found = tagger.tag(own)
            parts.update(part_of_speech(own[place], found[place]) for place in english)
    return {"english_words": words, "parts": dict(parts.most_common())}


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    """Kendall's tau-b of paired values with its p-value; None where it is not defined."""
    from scipy.stats import kendalltau

    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return {"tau": None, "p": None, "n": len(first)}
    found = kendalltau(first, second)
    return {"tau": float(found.statistic), "p": float(found.pvalue), "n": len(first)}
