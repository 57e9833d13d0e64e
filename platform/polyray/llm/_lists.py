"""Lists in free text, in the ways that models write them: JSON, numbers, bullets, plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from polyray.llm._answers import without_fences
from polyray.llm._items import likeness
from polyray.llm._marks import (
    Mark,
    Marker,
    alphabets,
    bare_line,
    bullet,
    inline_marks,
    number,
    roman,
    spaced_number,
)
from polyray.llm._structured import blocks, json_lists, quoted_list, table

__all__ = ["Listed", "listed"]

_ENDS = tuple(".!?。！？؟۔।…\"'”’»)」』")
_REMARK = re.compile(
    r"(?:[(\[→⇒*_#|]|->|=>|[-–—•][ \t]|"
    r"(?:note|explanation|reason|change[sd]?|erklärung|änderung|geändert|hinweis|anmerkung|"
    r"begründung|explication|changement|modification|remarque|raison|изменен\w*|примечание|"
    r"объяснение|пояснение|说明|解释|变化|改动|注|توضیح|تغییر|یادداشت|دلیل)(?:\b|(?=[:：])))",
    re.IGNORECASE,
)
_LABEL_ALONE = re.compile(r"[*_]{2}[^*_]{1,60}(?:[:：][*_]{2}|[*_]{2}[:：])")
_HEADING = re.compile(r".{0,120}[:：][*_]{0,3}")
_FIRST_INLINE = re.compile(r"(?<=[:：.!。！])\s*(?=[*_(（]{0,3}(?:[1１۱١][.):、）．]|①))")
_CLOSE_TIE = 0.15
"""Lists whose likeness differs by less are equally near; of these the last one counts."""


_MOST_LINES = 2000
"""Of a longer text the last lines count."""


_WRAPPER = re.compile(
    r"</?(?:answers?|output|results?|response|final(?:_answer)?|list|ol|ul|div|distractors|"
    r"sentences|items|br)(?:\s[^<>]{0,200})?/?>",
    re.IGNORECASE,
)


class Listed(NamedTuple):
    """The items as written, and whether the last of them stands at the text's very end.

    ``kind`` is ``json``, ``marked`` (numbers, letters, bullets) or ``lines``.
    """

    items: list[str]
    kind: str
    open_end: bool


class _Run(NamedTuple):
    """Marked lines that belong together."""

    marks: list[Mark]
    items: list[str]
    whole: list[str]
    end: int


def listed(text: str, wanted: int, original: str) -> Listed:
    """The items of the list in ``text``, of which ``wanted`` are expected.

    Of several lists the one that is nearest to ``original`` counts.
    """
    plain = without_fences(text)
    if "<" not in original:
        plain = _WRAPPER.sub("\n", plain)
    looks_json = plain.lstrip()[:1] in ("[", "{") or "```" in text
    if looks_json and (items := _structured(plain, wanted, original)) is not None:
        return items
    lines = [bare_line(line) for line in plain.splitlines()[-_MOST_LINES:]]
    marked = _marked(lines, wanted, original)
    rows = _table(lines, original)
    if rows is not None and likeness(rows.items, original) >= likeness(marked.items, original):
        return rows
    if "<" not in original and (inner := blocks(plain)):
        in_blocks = Listed(_unmarked(inner, wanted, original), "marked", False)
        if not marked.items or likeness(in_blocks.items, original) > likeness(
            marked.items, original
        ):
            marked = in_blocks
    if marked.items and not (len(marked.items) == 1 and wanted > 1 and _all_near(lines, original)):
        return marked
    if (items := _structured(plain, wanted, original)) is not None:
        return items
    return _lines(lines, wanted, original)


def _structured(text: str, wanted: int, original: str) -> Listed | None:
    lists = json_lists(text, original)
    if not lists and (quoted := quoted_list(text)) is not None:
        lists = [quoted]
    if not lists:
        return None
    strings = _nearest(lists, wanted, original)
    if len(strings) == 1 and "\n" in strings[0].strip():
        return listed(strings[0].replace("{", "(").replace("[", "("), wanted, original)
    # Nothing unfinished is among them: a cut string has been left off already.
    return Listed(_unmarked(strings, wanted, original), "json", False)


def _unmarked(strings: list[str], wanted: int, original: str) -> list[str]:
    """The strings without the numbers that all of them bear."""
    whole = [bare_line(string) for string in strings]
    marks = [mark for line in whole if (mark := number(line)) is not None]
    if len(marks) < len(whole) or [mark.number for mark in marks] != _upto(len(marks)):
        return strings
    items = [mark.rest for mark in marks]
    return items if _counts(_Run(marks, items, whole, 0), wanted, original) else strings


def _nearest(lists: Sequence[list[str]], wanted: int, original: str) -> list[str]:
    """The list most like the original, the last one of such; short ones are put together."""
    if len(lists) == 1:
        return lists[0]
    some = lists[-50:]
    scores = [likeness(one, original) for one in some]
    best = max(scores)
    near = [one for one, score in zip(some, scores, strict=True) if score >= best - _CLOSE_TIE]
    if all(len(one) < wanted for one in near) and sum(map(len, near)) >= wanted:
        return [item for one in near for item in one]
    return near[-1]


def _table(lines: list[str], original: str) -> Listed | None:
    if sum(line.startswith("|") for line in lines) < 2:
        return None
    items, end = table(lines, original)
    return Listed(items, "marked", not any(lines[end + 1 :])) if items else None


def _marked(lines: list[str], wanted: int, original: str) -> Listed:
    """The items of the first kind of mark that makes a list."""
    found = _numbers(lines, wanted, original)
    cut = [part for line in lines for part in _from_first_mark(line)]
    if len(cut) > len(lines):
        inline = _numbers(cut, wanted, original)
        if len(inline.items) > len(found.items) and (found.items or len(inline.items) >= wanted):
            found = inline
    if found.items:
        return _or_bullets(found, lines, wanted, original)
    for marker in (spaced_number, roman, *alphabets(lines)):
        if (found := _strict(lines, marker, wanted, original)).items:
            return found
    return _choice(_runs(lines, bullet, wanted), lines, wanted, original)


def _from_first_mark(line: str) -> list[str]:
    """A line, cut where a list begins in the middle of it."""
    return [line] if number(line) is not None else _FIRST_INLINE.split(line, maxsplit=1)


def _numbers(lines: list[str], wanted: int, original: str) -> Listed:
    runs = [run for run in _runs(lines, number, wanted) if _counts(run, wanted, original)]
    return _choice([_split_inline(run, wanted, original) for run in runs], lines, wanted, original)


def _or_bullets(found: Listed, lines: list[str], wanted: int, original: str) -> Listed:
    """Bullets instead where they are like the original and the numbered lines are not."""
    if likeness(found.items, original) >= 0.5:
        return found
    other = _choice(_runs(lines, bullet, wanted), lines, wanted, original)
    return other if likeness(other.items, original) >= 0.7 else found


def _choice(runs: Sequence[_Run], lines: list[str], wanted: int, original: str) -> Listed:
    if not runs:
        return Listed([], "marked", False)
    items = _nearest([run.items for run in runs], wanted, original)
    end = max(run.end for run in runs if run.items and run.items[-1] is items[-1])
    return Listed(items, "marked", not any(lines[end + 1 :]))


def _strict(lines: list[str], marker: Marker, wanted: int, original: str) -> Listed:
    """A list of marks that could be words, too: all of them have to count up from 1."""
    if marker is spaced_number:
        full = [line for line in lines if line]
        body = full[1:] if full and not marker(full[0]) else full
        body = body[:-1] if len(body) > wanted and not marker(body[-1]) else body
        marks = [marker(line) for line in body]
        numbers = [mark.number for mark in marks if mark is not None]
        if len(numbers) < len(body) or original.strip()[:1].isdigit():
            return Listed([], "marked", False)
    runs = [
        run
        for run in _runs(lines, marker, wanted)
        if len(run.marks) > 1 and [mark.number for mark in run.marks] == _upto(len(run.marks))
    ]
    if marker(bare_line(original)) is not None:
        runs = [run for run in runs if _nearer_bare(run, original)]
    return _choice(runs, lines, wanted, original)


def _nearer_bare(run: _Run, original: str) -> bool:
    return likeness(run.items, original) > likeness(run.whole, original)


def _upto(count: int) -> list[int]:
    return list(range(1, count + 1))


def _counts(run: _Run, wanted: int, original: str) -> bool:
    """Whether the numbers of a run are those of a list, and not words of its sentences.

    They count up from 0 or 1, or are a list that goes on (3, 4, 5). Where the original begins
    with a number or a label of its own, the lines have to be more like it without them.
    """
    numbers = [mark.number for mark in run.marks]
    counted = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    kinds = {mark.kind for mark in run.marks}
    if "loose" in kinds and "strong" not in kinds:
        return False
    if kinds != {"strong"}:
        same = len({mark.label for mark in run.marks}) == 1
        alone = len(numbers) == 1 and wanted > 1
        if numbers != _upto(len(numbers)) or not same or alone:
            return False
    if numbers[0] > 1 and not (counted and len(numbers) > 1):
        return False
    own = number(bare_line(original))
    if own is not None or original.strip()[:1].isdigit():
        return _nearer_bare(run, original)
    return True


def _runs(lines: list[str], marker: Marker, wanted: int) -> list[_Run]:
    """Lists of marked lines with the lines that go on; a new one where numbers begin again."""
    runs: list[_Run] = []
    marks: list[Mark] = []
    items: list[str] = []
    whole: list[str] = []
    joined, end, headed, closed = False, -1, False, False
    for at, line in enumerate(lines):
        mark = marker(line)
        last = marks[-1].number if marks else 0
        if mark is not None and marks:
            again = mark.number <= 1 and (last > 1 or headed)
            if again:
                runs.append(_Run(marks, items, whole, end))
                marks, items, whole, closed, headed = [], [], [], False, False
            elif not (mark.number == 1 == last or last < mark.number <= last + 5):
                mark = None
        closed = closed or (headed and len(items) >= wanted)
        if mark is not None and closed:
            mark = None
        if mark is not None:
            marks.append(mark)
            items.append(mark.rest)
            whole.append(line)
            joined, end, headed = True, at, False
        elif not line:
            joined = joined and not items[-1]
        elif joined and _goes_on(items[-1], line, len(items) >= wanted):
            items[-1] = f"{items[-1]} {line}".strip()
            end = at
        else:
            joined = False
            headed = _HEADING.fullmatch(line) is not None or line.startswith("#")
    return [*runs, _Run(marks, items, whole, end)] if marks else runs


def _goes_on(item: str, line: str, full: bool) -> bool:
    """Whether a line without a mark belongs to the item before it.

    After the last item that is asked for, only a line that begins in small letters or digits
    does: others are what models say at the end.
    """
    if not item or _LABEL_ALONE.fullmatch(item):
        return True
    if item.endswith(_ENDS) or _REMARK.match(line):
        return False
    return not full or line[0].islower() or line[0].isdigit()


def _split_inline(run: _Run, wanted: int, original: str) -> _Run:
    """Cut ``a 2. b 3. c`` where the numbers go on and every piece is as long as a sentence."""
    items: list[str] = []
    for at, (mark, item) in enumerate(zip(run.marks, run.items, strict=True)):
        following = run.marks[at + 1].number if at + 1 < len(run.marks) else None
        if following is None and len(run.marks) >= wanted:
            items.append(item)
            continue
        missing = wanted - len(run.marks) + 1 if following is None else 0
        items += _pieces(item, mark.number, following, missing, original)
    return run._replace(items=items)


def _pieces(item: str, first: int, following: int | None, missing: int, original: str) -> list[str]:
    pieces: list[str] = []
    start, expected, length = 0, first + 1, len(original.strip())
    for value, begin, end in inline_marks(item):
        piece = item[start:begin].strip()
        closed = piece.endswith(_ENDS) and 5 * len(piece) >= length
        whole = closed or 10 * len(piece) >= 6 * length
        if value == expected and (following is None or value < following) and whole:
            pieces.append(piece)
            start, expected = end, expected + 1
    pieces.append(item[start:].strip())
    if 5 * len(pieces[-1]) < length:
        return [item]
    if following is None and len(pieces) < missing:
        certain = all(one.endswith(_ENDS) and 2 * len(one) >= length for one in pieces)
        return pieces if certain else [item]
    return pieces


def _all_near(lines: Sequence[str], original: str) -> bool:
    full = [line for line in lines if line]
    return len(full) > 1 and all(likeness([line], original) >= 0.6 for line in full[:50])


def _lines(lines: list[str], wanted: int, original: str) -> Listed:
    full = [line for line in lines if line]
    end = full[-1] if full else ""
    if len(full) > 1 and full[0].endswith((":", "：")):
        full = full[1:]
    elif len(full) < 2 and wanted > 1:
        full = []
    if 2 < len(full) <= 100:
        scores = [likeness([line], original) for line in full]
        if 2 * sum(score >= 0.6 for score in scores) >= len(full):
            full = [line for line, score in zip(full, scores, strict=True) if score >= 0.45]
    return Listed(full, "lines", bool(full) and full[-1] is end)
