"""Code-Mixing Index: how much of a query is in another language than the rest, on 0..100.

``100 * (1 - w / (n - u))``, and 0 where ``n == u``, with ``n`` tokens of which ``u`` are
language-independent. Two definitions of ``w``:

* ``cmi_max``: the count of the most frequent language (Das and Gambäck 2014, equation 1); below
  50 for two languages.
* ``cmi_native``: the count of the native language (what the MiLQ paper reports, appendix A.3);
  100 for a query without any native word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from polyray.collections._lines import full_lines, id_problem
from polyray.errors import ConfigError, Problems
from polyray.files import atomic_path

__all__ = [
    "INDEPENDENT",
    "NAMED_ENTITY",
    "Mixing",
    "code_mixing",
    "mixing_report",
    "read_tags",
    "write_tags",
]

INDEPENDENT = "u"
"""The tag of a token that belongs to no language: numbers, punctuation, symbols."""
NAMED_ENTITY = "ne"
"""The tag of a named entity, which counts as language-independent."""

_TAG = re.compile(r"[a-z]{2,3}")
_HEADER = "id\ttags"


class Mixing(NamedTuple):
    """The index of one query by both definitions; ``cmi_native`` is None without a native one."""

    cmi_max: float
    cmi_native: float | None

    @property
    def mixed(self) -> bool:
        """Whether there are words of more than one language."""
        return self.cmi_max > 0


def code_mixing(tags: Sequence[str], native: str | None = None) -> Mixing:
    """The index of one query, from one tag a token.

    >>> code_mixing(["de", "en", "de", "de", "u"], native="en")
    Mixing(cmi_max=25.0, cmi_native=75.0)
    """
    counts = Counter(tag for tag in tags if tag not in (INDEPENDENT, NAMED_ENTITY))
    words = counts.total()
    if not words:
        return Mixing(0.0, None if native is None else 0.0)
    most = max(counts.values())
    own = None if native is None else _index(counts[native], words)
    return Mixing(_index(most, words), own)


def _index(count: int, words: int) -> float:
    return 100.0 * (words - count) / words


def mixing_report(tags: Mapping[str, Sequence[str]], native: str | None = None) -> dict[str, Any]:
    """The index of every query and what it comes to on average.

    ``per_query``: id -> ``{"cmi_max", "cmi_native"}``. ``mean_all``: over all queries.
    ``mean_mixed``: over those with words of more than one language (``cmi_max > 0``), None where
    there are none. ``share_mixed``: their share of all, None without queries. ``counts``:
    ``queries``, ``mixed``, ``tokens`` and how many of those are ``independent``.
    """
    found = {query_id: code_mixing(own, native) for query_id, own in tags.items()}
    mixed = [one for one in found.values() if one.mixed]
    every = [tag for own in tags.values() for tag in own]
    return {
        "per_query": {query_id: one._asdict() for query_id, one in found.items()},
        "mean_all": _means(list(found.values())),
        "mean_mixed": _means(mixed),
        "share_mixed": len(mixed) / len(found) if found else None,
        "counts": {
            "queries": len(found),
            "mixed": len(mixed),
            "tokens": len(every),
            "independent": sum(tag in (INDEPENDENT, NAMED_ENTITY) for tag in every),
        },
    }


def _means(rows: Sequence[Mixing]) -> dict[str, float | None]:
    def mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    return {
        "cmi_max": mean([row.cmi_max for row in rows]),
        "cmi_native": mean([row.cmi_native for row in rows if row.cmi_native is not None]),
    }


def check_tag(tag: str) -> str:
    """Why a string is no tag, or ``""``."""
    if tag == INDEPENDENT or _TAG.fullmatch(tag):
        return ""
    return f"{tag!r} is no tag"


def check_native(native: str | None) -> None:
    """Raise :class:`~polyray.errors.ConfigError` where ``native`` cannot be a language code."""
    if native is not None and (native == NAMED_ENTITY or not _TAG.fullmatch(native)):
        raise ConfigError(f"native language {native!r}: write a code as the tags have it, like de")


def read_tags(path: str | Path) -> dict[str, list[str]]:
    """Read tags of queries: TSV with the header ``id<TAB>tags``, one tag a token.

    A tag is a language code of two or three small letters, ``u`` (language-independent) or ``ne``
    (named entity); tags stand apart by spaces, and a query may have none. Raises
    :class:`~polyray.errors.InputError` naming every bad line.
    """
    problems = Problems(str(path))
    found: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    rows = full_lines(path, problems)
    number, header = next(rows, (1, ""))
    if header.rstrip() != _HEADER and not problems:
        problems.add(number, "no header id<TAB>tags", "the first line is: id TAB tags")
    for number, line in rows:
        query_id, tab, text = line.partition("\t")
        if not tab:
            problems.add(number, "no tab between id and tags", "write: id TAB tags")
            continue
        tags = text.split()
        wrong = next(filter(None, map(check_tag, tags)), "")
        if what := id_problem(query_id):
            problems.add(number, what, "give every query an id of its own")
        elif query_id in lines:
            problems.add(number, f"query {query_id!r} is already in line {lines[query_id]}")
        elif wrong:
            problems.add(number, wrong, "language codes such as de, or u, or ne")
        lines.setdefault(query_id, number)
        found[query_id] = tags
    problems.raise_if_any()
    return found


def write_tags(path: str | Path, tags: Mapping[str, Sequence[str]]) -> None:
    """Write tags as :func:`read_tags` reads them, atomically."""
    lines = [_HEADER, *(f"{query_id}\t{' '.join(own)}" for query_id, own in tags.items())]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
