"""What models write, made into values by pure functions: distractors, ratings, token languages.

Nothing is guessed: what does not parse is a :class:`ParseError` with the reason, or left out and
counted; never padded, never shifted, never a default.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyray.errors import PolyrayError
from polyray.languages import LANGUAGES
from polyray.llm._lists import Pairs, json_values, listed, without_thinking
from polyray.text.keys import compiled, matching_key

__all__ = [
    "Distractors",
    "ParseError",
    "is_refusal",
    "parse_distractors",
    "parse_ratings",
    "parse_tags",
    "parse_verdict",
]

INDEPENDENT, ENTITY = "u", "ne"
"""Tags of tokens that belong to no language, and of named entities."""

_REFUSALS = (
    r"i(?:['’]m| am) (?:sorry|unable|not able)|i (?:can(?:['’]?t|not)|cannot|won['’]t)|sorry|"
    r"as an ai|i must decline|unfortunately,? i|"
    r"(?:es )?tut mir leid|ich kann (?:das|dies|diese\w*|dabei|ihnen|dir)? ?(?:leider )?nicht|"
    r"je suis désolée?|désolée?|je ne peux pas|lo siento|no puedo|mi dispiace|non posso|"
    r"(?:me )?desculpe|não posso|het spijt me|ik kan|anteeksi|en voi|valitettavasti|"
    r"samahani|siwezi|waan ka xumahay|ma awoodo|"
    r"извините|к сожалению|я не могу|прошу прощения|"
    r"对不起|抱歉|很抱歉|我(?:不能|无法)|對不起|我(?:無法)|申し訳|すみません|죄송|"
    r"متأسف|متاسف|نمی[‌ ]?توانم|عذر|آسف|لا (?:أ|ا)ستطيع|لا يمكنني"
)
_REFUSAL = re.compile(rf"^[\W_]*(?:{_REFUSALS})", re.IGNORECASE)
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "«": "»",
    "»": "«",
    "‹": "›",
    "‘": "’",
    "‚": "‘",
    "「": "」",
    "『": "』",
    "”": "”",
    "`": "`",
}
_CLOSINGS = {"„": "“”", "‚": "‘’"}
_LABEL = re.compile(r"^(?:\*\*|__)[^*_:：]{1,40}(?:[:：](?:\*\*|__)|(?:\*\*|__)[ \t]*[:：])[ \t]*")
_SCRIPTS = {
    "Latn": r"\p{Latin}",
    "Hans": r"\p{Han}",
    "Arab": r"\p{Arabic}",
    "Cyrl": r"\p{Cyrillic}",
}


class ParseError(PolyrayError):
    """An answer that is not what was asked for; ``reason`` is one word."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str]]:
        return (type(self), (self.reason, self.detail))


@dataclass(frozen=True, slots=True)
class Distractors:
    """At most the asked number of ``items``, what was over as ``spare``, and counted rejects.

    ``status``: ``ok`` (as many as asked), ``short``, ``truncated`` (cut before there were enough),
    ``refusal``, ``empty``, ``filtered``, ``unparsable``. Reasons in ``rejected``:
    ``equals_original``, ``duplicate``, ``empty``, ``wrong_script``.
    """

    items: list[str]
    status: str
    rejected: dict[str, int] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)


def is_refusal(text: str) -> bool:
    """Whether a text begins as models begin when they decline, in the languages of this field."""
    return bool(_REFUSAL.match(text))


def parse_distractors(
    content: str | None,
    *,
    n: int,
    original: str,
    lang: str | None = None,
    finish_reason: str | None = "stop",
) -> Distractors:
    """The distractors in an answer, of which ``n`` were asked for.

    Reads JSON, numbers and bullets of all kinds and plain lines, in any script. An item that is
    the original or a sibling again (case, width, punctuation apart) is rejected, and so is one
    without a letter of the script of ``lang``. What follows the last whole item of a cut answer
    is never accepted. Fewer than ``n`` are never padded.

    >>> parse_distractors("1. Ein Hund.\\n2) Eine Kuh.", n=2, original="Eine Katze.").items
    ['Ein Hund.', 'Eine Kuh.']
    """
    cut = finish_reason == "length"
    if finish_reason == "content_filter":
        return Distractors([], "filtered")
    text = without_thinking(content or "").strip()
    if not text:
        return Distractors([], "truncated" if cut else "empty")
    found = listed(text, n)
    if found.kind == "lines" and is_refusal(text):
        return Distractors([], "refusal")
    written = list(found.items)
    rejected: Counter[str] = Counter()
    if cut and found.open_end and written:
        written.pop()
    items = _checked(written, original, lang, rejected)
    status = "ok" if len(items) >= n else "truncated" if cut else "short"
    if not items and not rejected:
        status = "truncated" if cut else "refusal" if is_refusal(text) else "unparsable"
    return Distractors(items[:n], status, dict(rejected), items[n:])


def _checked(
    written: Sequence[str], original: str, lang: str | None, rejected: Counter[str]
) -> list[str]:
    seen: set[str] = set()
    items: list[str] = []
    own = _comparable(original)
    row = LANGUAGES.get(lang or "")
    script = compiled(_SCRIPTS[row.script]) if row is not None else None
    for one in written:
        item = _bare(one, original)
        key = _comparable(item)
        if not any(char.isalnum() for char in item):
            rejected["empty"] += 1
        elif key == own:
            rejected["equals_original"] += 1
        elif key in seen:
            rejected["duplicate"] += 1
        elif script is not None and not script.search(item):
            rejected["wrong_script"] += 1
        else:
            seen.add(key)
            items.append(item)
    return items


def _comparable(text: str) -> str:
    """Matching key without punctuation, except between digits."""
    key = matching_key(text)
    key = compiled(r"(?<!\d)\p{P}|\p{P}(?!\d)").sub(" ", key)
    return " ".join(key.split())


def _bare(item: str, original: str) -> str:
    """The item without Markdown, labels and quotation marks around all of it."""
    text = " ".join(item.split())
    text = _LABEL.sub("", text)
    for mark in ("**", "__", "*"):
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            inner = text[len(mark) : -len(mark)]
            text = inner.strip() if mark not in inner else text
    if original.strip()[:1] in _QUOTES:
        return text
    closing = _CLOSINGS.get(text[:1], _QUOTES.get(text[:1], ""))
    if len(text) > 2 and closing and text[-1] in closing:
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:
            return inner.strip()
    return text


_FIELDS = ("accuracy", "fluency")
_RATING = re.compile(
    r"\b(?P<name>accuracy|fluency)\b[\"'’”*_`\s]*(?:score|rating)?[\"'*_`\s]*(?:\([^()\n]{0,30}\))?"
    r"[\"'*_`\s]*(?:is|of|as|=|:|：|-|–|—|\|)?[\"'*_`\s]*"
    r"(?:(?P<number>[-+−]?\d+(?:[.,]\d+)?)(?P<range>[ \t]*(?:-|–|to)[ \t]*\d)?"
    r"(?:[ \t]*(?:/|out of)[ \t]*(?P<scale>\d+))?"
    r"|(?P<word>one|two|three|zero|four|five|n/?a|none)\b)",
    re.IGNORECASE,
)


def parse_ratings(content: str | None) -> dict[str, int]:
    """Accuracy and fluency, whole numbers from 1 to 3, from JSON or from labelled text.

    >>> parse_ratings("**Fluency**: 1/3, **Accuracy**: 3/3")
    {'accuracy': 3, 'fluency': 1}

    Raises :class:`ParseError`: ``out_of_range``, ``not_integer``, ``missing_field``,
    ``refusal_or_no_score``, or ``ambiguous`` where one field is given two values.
    """
    text = without_thinking(content or "").strip()
    if not text:
        raise ParseError("refusal_or_no_score", "the answer is empty")
    objects = [value for value in json_values(text) if isinstance(value, dict)]
    given = [fields for value in objects if (fields := _json_fields(value))]
    if given:
        return _ratings(given)
    if objects:
        raise ParseError("missing_field", ", ".join(_FIELDS))
    fields_: dict[str, list[Any]] = {}
    for match in _RATING.finditer(text):
        fields_.setdefault(match["name"].lower(), []).append(_spoken(match))
    if not fields_:
        bare = re.fullmatch(r"[\W_]*[-+]?\d+(?:[.,/]\d+)?[\W_]*", text)
        raise ParseError("missing_field" if bare else "refusal_or_no_score", text[:80])
    return _ratings([fields_])


def _json_fields(value: dict[str, Any]) -> dict[str, list[Any]]:
    pairs = value.pairs if isinstance(value, Pairs) else list(value.items())
    found: dict[str, list[Any]] = {}
    for name, one in pairs:
        if (field_ := name.strip().lower()) in _FIELDS:
            inner = one.get("score", one.get("rating", one)) if isinstance(one, dict) else one
            found.setdefault(field_, []).append(inner)
    return found


def _spoken(match: re.Match[str]) -> Any:
    if match["word"] or match["range"]:
        return match.group(0)
    if match["scale"] and int(match["scale"]) != 3:
        raise ParseError("out_of_range", f"{match['name'].lower()} on a scale to {match['scale']}")
    return match["number"].replace(",", ".").replace("−", "-")


def _ratings(given: Sequence[dict[str, list[Any]]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for name in _FIELDS:
        values = [one for fields in given for one in fields.get(name, ())]
        if not values or values == [None]:
            raise ParseError("missing_field", name)
        numbers = {_whole(name, value) for value in values}
        if len(numbers) > 1:
            raise ParseError("ambiguous", f"{name} is given as {sorted(numbers)}")
        made[name] = numbers.pop()
    return made


def _whole(name: str, value: Any) -> int:
    try:
        number = float("x" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        raise ParseError("not_integer", f"{name} is {value!r:.40}") from None
    if not number.is_integer():
        raise ParseError("not_integer", f"{name} is {value!r:.40}")
    if not 1 <= number <= 3:
        raise ParseError("out_of_range", f"{name} is {value!r:.40}, not 1, 2 or 3")
    return int(number)


_TAGS = frozenset({*LANGUAGES, INDEPENDENT, ENTITY})
_SEPARATED = re.compile(r"^(?P<token>.*\S)\s*(?:\t|=>|->|→|[-–—:=|/：])\s*(?P<tag>[^\s:|/=]+)$")
_COUNTER = re.compile(r"^[ \t]*(?:[-*•][ \t]+|[(\[]?\d{1,3}[.)\]:][ \t]+)")


def parse_tags(
    content: str | None, tokens: Sequence[str], *, allowed: Collection[str] = _TAGS
) -> list[str]:
    """One tag a token: a language code, ``u`` (no language) or ``ne`` (named entity).

    Reads tags in a row, JSON lists and objects, and lines such as ``1. word - de``; a token that
    is repeated beside its tag has to be the one in its place.

    >>> parse_tags("1. das - de\\n2. Meeting - en", ["das", "Meeting"])
    ['de', 'en']

    Raises :class:`ParseError`: ``count_mismatch``, ``unknown_tag``, ``token_mismatch``,
    ``refusal_or_no_tags``.
    """
    text = without_thinking(content or "").strip()
    pairs = _tag_pairs(text, len(tokens))
    if not pairs and tokens:
        raise ParseError("refusal_or_no_tags", text[:80])
    known = {tag.lower() for tag in allowed}
    tags = [tag.strip().strip("\"'`*.,;()[]").lower() for _, tag in pairs]
    unknown = sorted(set(tags) - known)
    if unknown and (is_refusal(text) or len(unknown) > max(3, len(tags) // 2)):
        raise ParseError("refusal_or_no_tags", text[:80])
    if len(tags) != len(tokens):
        raise ParseError("count_mismatch", f"{len(tags)} tags for {len(tokens)} tokens")
    if unknown:
        raise ParseError("unknown_tag", ", ".join(unknown))
    for (token, _), own in zip(pairs, tokens, strict=True):
        if token is not None and matching_key(_unquoted(token)) != matching_key(_unquoted(own)):
            raise ParseError("token_mismatch", f"{token!r:.40} in the place of {own!r:.40}")
    return tags


def _unquoted(token: str) -> str:
    inner = token.strip().strip("\"'`*“”")
    return inner or token.strip()


def _tag_pairs(text: str, count: int) -> list[tuple[str | None, str]]:
    """Token (where it is repeated) and tag, in order."""
    for value in json_values(text):
        if (pairs := _json_pairs(value)) is not None:
            return pairs
    lines = [line.strip() for line in text.replace("```", "").splitlines() if line.strip()]
    matched = [_SEPARATED.match(_COUNTER.sub("", line)) for line in lines]
    by_line = [(match["token"], match["tag"]) for match in matched if match is not None]
    if len(by_line) > 1 or (by_line and count == 1):
        return [*by_line]
    if len(lines) > 1 and all(len(_COUNTER.sub("", line).split()) == 1 for line in lines):
        return [(None, _COUNTER.sub("", line)) for line in lines]
    row = lines[-1] if lines else ""
    row = row.rpartition(":")[2] if re.match(r"^[\w ]+:\s", row) else row
    return [(None, tag) for tag in re.split(r"[\s,;|]+", row) if tag.strip("[]()\"'.")]


def _json_pairs(value: Any) -> list[tuple[str | None, str]] | None:
    if isinstance(value, dict):
        for name in ("tags", "languages", "labels", "tokens", "answer", "result"):
            if isinstance(value.get(name), list):
                return _json_pairs(value[name])
        pairs = value.pairs if isinstance(value, Pairs) else list(value.items())
        if pairs and all(isinstance(tag, str) for _, tag in pairs):
            return [*pairs]
        return None
    if not isinstance(value, list) or not value:
        return None
    found: list[tuple[str | None, str]] = []
    for one in value:
        pair = _json_pair(one)
        if pair is None:
            return None
        found.append(pair)
    return found


def _json_pair(one: Any) -> tuple[str | None, str] | None:
    if isinstance(one, str):
        return None, one
    if isinstance(one, list) and len(one) == 2 and all(isinstance(part, str) for part in one):
        return one[0], one[1]
    if isinstance(one, dict):
        names = ("tag", "language", "lang", "label")
        tag = next((one[name] for name in names if isinstance(one.get(name), str)), None)
        token = next(
            (one[k] for k in ("token", "word", "text") if isinstance(one.get(k), str)), None
        )
        if tag is not None:
            return token, tag
        if len(one) == 1:
            ((word, tag),) = one.items()
            return (word, tag) if isinstance(tag, str) else None
    return None


def parse_verdict(content: str | None) -> bool:
    """Whether the judge found that the meaning changed: JSON ``{"changed": true}`` or a plain
    labelled answer.

    >>> parse_verdict("Changed: yes")
    True

    Raises :class:`ParseError`: ``missing_field``, ``ambiguous``.
    """
    text = without_thinking(content or "").strip()
    found: set[bool] = set()
    for value in json_values(text):
        if isinstance(value, dict):
            pairs = value.pairs if isinstance(value, Pairs) else list(value.items())
            found |= {_yes(one) for name, one in pairs if name.strip().lower() == "changed"}
    if not found:
        labelled = r"\bchanged\b[\"'*_`\s]*[:=]?[\"'*_`\s]*(yes|no|true|false)\b"
        found = {_yes(word) for word in re.findall(labelled, text, re.IGNORECASE)}
    if not found and (
        bare := re.fullmatch(r"[\W_]*(yes|no|true|false)[\W_]*", text, re.IGNORECASE)
    ):
        found = {_yes(bare[1])}
    if not found:
        raise ParseError("missing_field", "changed")
    if len(found) > 1:
        raise ParseError("ambiguous", "both yes and no")
    return found.pop()


def _yes(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("yes", "true"):
        return True
    if word in ("no", "false"):
        return False
    raise ParseError("missing_field", f"changed is {value!r:.40}")
