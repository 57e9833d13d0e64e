"""Topics: TSV, TREC classic, XML dialects, HC4 and NeuCLIR JSONL, ir_datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from polyray.collections._json import objects_of, text_value
from polyray.collections._lines import full_lines, id_problem, lines_of
from polyray.collections._topic_markup import trec_topics, xml_topics
from polyray.collections.sgml import tidy
from polyray.errors import ConfigError, InputError, Problem, Problems
from polyray.files import open_binary
from polyray.languages import language as language_row
from polyray.records import Field, Topic

__all__ = ["FORMATS", "all_topics", "empty_topics", "read_topics"]

FORMATS = ("tsv", "singleline", "trec", "xml", "jsonl", "irds")
"""What ``read_topics`` reads."""

_Numbered = list[tuple[int, Topic]]

_ID_KEYS = ("id", "query_id", "qid", "_id", "topic_id")


def read_topics(
    path: str,
    *,
    format: str | None = None,
    language: str | None = None,
    source: str | None = None,
) -> list[Topic]:
    """Read topics in the file's order, white space tidied, empty titles kept as ``""``.

    ``language`` (any code) picks the topics of one language; where the file names none, it labels
    them. ``source`` picks one of several translations, by the file's own name for it or as
    ``"original"``, ``"human"`` (original or human translation) or ``"machine"``. Raises
    :class:`~polyray.errors.InputError` for a damaged file, ids used twice, nothing left after
    picking, and several translations of a topic where none is picked.
    """
    topics = all_topics(path, format=format)
    if language is not None:
        code = language_row(language).code
        if all(not topic.language for topic in topics):
            topics = [replace(topic, language=code) for topic in topics]
        there = sorted({topic.language for topic in topics})
        topics = [topic for topic in topics if topic.language == code]
        if not topics:
            what = f"no topic in language {code}; the file has: {', '.join(there)}"
            raise InputError(Problem(path, None, what))
    if source is not None:
        there = sorted({topic.source for topic in topics})
        topics = [topic for topic in topics if _is_source(topic.source, source)]
        if not topics:
            what = f"no topic of source {source!r}; there are: {', '.join(map(repr, there))}"
            raise InputError(Problem(path, None, what))
    _refuse_choice(path, topics)
    return topics


def all_topics(path: str, *, format: str | None = None) -> list[Topic]:
    """Every topic in every language and translation that the file holds."""
    if format is not None and format not in FORMATS:
        raise ConfigError(f"topic format {format!r}; allowed: {', '.join(FORMATS)}")
    if str(path).startswith("irds:") or format == "irds":
        from polyray.collections.irds import irds_topics

        return irds_topics(str(path))
    problems = Problems(str(path))
    readers: dict[str, Callable[[str, Problems], _Numbered]] = {
        "tsv": _tsv,
        "singleline": _singleline,
        "trec": trec_topics,
        "xml": xml_topics,
        "jsonl": _jsonl,
    }
    numbered = readers[format or _guess(str(path))](str(path), problems)
    topics: list[Topic] = []
    seen: dict[tuple[str, str, str], int] = {}
    for number, topic in numbered:
        key = (topic.topic_id, topic.language, topic.source)
        if what := id_problem(topic.topic_id):
            problems.add(number, what, "give every topic an id of its own")
        elif key in seen:
            what = f"topic {topic.topic_id!r} is already in line {seen[key]}"
            problems.add(number, what, "ids must be unique per language and source")
        seen.setdefault(key, number)
        topics.append(topic)
    if not topics and not problems:
        problems.add(None, "no topics in the file", "give a file with topics")
    problems.raise_if_any()
    return topics


def empty_topics(topics: Sequence[Topic], field: Field = "title+description") -> list[str]:
    """Ids of the topics that have no text in the chosen field(s)."""
    return [topic.topic_id for topic in topics if not topic.text(field)]


def _is_source(name: str, wanted: str) -> bool:
    human = name == "original" or "human" in name.lower() or name.lower() == "ht"
    aliases = {"human": human, "machine": not human, "original": name == "original"}
    return name == wanted or aliases.get(wanted, False)


def _refuse_choice(path: str, topics: list[Topic]) -> None:
    several: dict[tuple[str, str], list[str]] = {}
    for topic in topics:
        several.setdefault((topic.topic_id, topic.language), []).append(topic.source)
    problems = Problems(path)
    for (topic_id, code), sources in several.items():
        if len(sources) > 1:
            names = ", ".join(map(repr, sources))
            what = f"topic {topic_id} has several texts in language {code or '?'}: {names}"
            problems.add(None, what, "choose one as source")
    problems.raise_if_any()


def _guess(path: str) -> str:
    with open_binary(path) as handle:
        if not handle.read(1):
            raise InputError(Problem(path, None, "the file is empty", "fetch or write it again"))
    problems = Problems(path)
    found = (line.lstrip().lower() for _, line in lines_of(path, problems) if line.strip())
    first = next(found, "")
    problems.raise_if_any()
    if first.startswith(("<top>", "<top ")):
        return "trec"
    if first.startswith("<doc>"):
        what = "documents, not topics"
        raise InputError(Problem(path, 1, what, "write the topics with <top>, or as id TAB text"))
    if first.startswith("<"):
        return "xml"
    return "jsonl" if first.startswith(("{", "[")) else "tsv"


def _tsv(path: str, problems: Problems) -> _Numbered:
    return _separated(path, problems, "\t", "no tab between id and text")


def _singleline(path: str, problems: Problems) -> _Numbered:
    return _separated(path, problems, " ", "no space between id and text")


def _separated(path: str, problems: Problems, separator: str, missing: str) -> _Numbered:
    found: _Numbered = []
    width = 0
    for number, line in full_lines(path, problems):
        columns = line.split(separator, -1 if separator == "\t" else 1)
        if len(columns) == 1:
            problems.add(
                number,
                missing,
                f"write: id{separator}text" if separator == " " else "write: id TAB text",
            )
            continue
        width = width or len(columns)
        if len(columns) > 3 or len(columns) != width:
            what = f"{len(columns)} columns"
            remedy = "write in every line: id TAB text, or id TAB title TAB description"
            problems.add(number, what, remedy)
            continue
        texts = [*map(tidy, columns[1:]), ""]
        found.append((number, Topic(columns[0].strip(), texts[0], texts[1])))
    return found


def _jsonl(path: str, problems: Problems) -> _Numbered:
    found: _Numbered = []
    for number, record in objects_of(path, problems):
        identifier = text_value(record, _ID_KEYS, number, problems, numbers=True)
        if identifier is None:
            problems.add(number, "the topic has no id", f"one of: {', '.join(_ID_KEYS)}")
            continue
        versions = record.get("topics")
        if versions is None:
            keys = (("title", "text", "query"), ("description", "desc"), ("lang", "language"))
            values = [text_value(record, names, number, problems) for names in keys]
            if not any(name in record for names in keys[:2] for name in names):
                problems.add(number, "the topic has no text", "one of: title, text, query")
            title, description, code = (tidy(value or "") for value in values)
            found.append((number, Topic(identifier, title, description, "", _code(code))))
        elif isinstance(versions, list) and all(isinstance(one, dict) for one in versions):
            for one in versions:
                names = ("topic_title", "topic_description", "lang", "source")
                texts = [tidy(text_value(one, (name,), number, problems) or "") for name in names]
                topic = Topic(identifier, texts[0], texts[1], "", _code(texts[2]), texts[3])
                found.append((number, topic))
        else:
            problems.add(number, "'topics' is not a list of objects", "see HC4's topic files")
    return found


def _code(name: str) -> str:
    """ISO 639-1 where the language has a row, else the name as it stands."""
    try:
        return language_row(name).code if name else ""
    except ConfigError:
        return name
