"""Topics in TREC's classic markup (tags need not be closed) and in XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from polyray.collections._lines import lines_of
from polyray.collections.sgml import decode_entities, tidy
from polyray.errors import ConfigError, Problems
from polyray.languages import language
from polyray.records import Topic

if TYPE_CHECKING:
    from lxml import etree

_TOP = re.compile(r"<(/?)top(\s[^<>]*)?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_OTHER = "head|dom|smry|con|fac|def|nat|time|lang|docs"
_FIELD = re.compile(
    rf"<(/?)(?:([a-z]{{1,3}})-)?(num|title|desc(?:ription)?|narr(?:ative)?|{_OTHER})(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_LEAD = {
    "num": re.compile(r"^Number\s*:\s*", re.IGNORECASE),
    "title": re.compile(r"^Topic\s*:\s*", re.IGNORECASE),
    "desc": re.compile(r"^Description\s*:\s*", re.IGNORECASE),
    "narr": re.compile(r"^Narrative\s*:\s*", re.IGNORECASE),
}
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_XML_FIELDS = {
    "title": "title",
    "query": "title",
    "text": "title",
    "description": "description",
    "desc": "description",
    "question": "description",
    "narrative": "narrative",
    "narr": "narrative",
}
_XML_IDS = ("number", "identifier", "id", "num", "topic_id")
_CLEF_TAG = re.compile(r"([A-Za-z]{1,3})-(title|desc|narr)")
_CLEF_CODES = {"D": "de", "E": "en", "F": "fr"}


def _code(name: str) -> str:
    try:
        return language(_CLEF_CODES.get(name.upper(), name)).code if name else ""
    except ConfigError:
        return name.lower()


def trec_topics(path: str, problems: Problems) -> list[tuple[int, Topic]]:
    """``<top>`` blocks with ``<num> <title> <desc> <narr>``, closed or not, CLEF's with a language.

    The lead-ins ``Number:``, ``Topic:``, ``Description:`` and ``Narrative:`` are taken off.
    """
    found: list[tuple[int, Topic]] = []
    for line, block in _blocks(path, problems):
        fields, code = _fields(_COMMENT.sub(" ", block), line, problems)
        if not fields.get("num"):
            problems.add(line, "the topic has no number", "add <num>")
            continue
        title, description, narrative = (fields.get(name, "") for name in ("title", "desc", "narr"))
        found.append((line, Topic(fields["num"], title, description, narrative, _code(code))))
    return found


def _blocks(path: str, problems: Problems) -> Iterator[tuple[int, str]]:
    body: list[str] | None = None
    start = 0
    for number, line in lines_of(path, problems):
        position = 0
        for tag in _TOP.finditer(line):
            if body is not None:
                body.append(line[position : tag.start()])
            position = tag.end()
            if not tag[1]:
                if body is not None:
                    problems.add(start, "<top> is not closed", "add the missing </top>")
                body, start = [], number
            elif body is None:
                problems.add(number, "</top> without <top>", "add the missing <top>")
            else:
                yield start, "\n".join(body)
                body = None
        if body is not None:
            body.append(line[position:])
    if body is not None:
        problems.add(start, "<top> is not closed", "the file may be cut off")


def _fields(block: str, line: int, problems: Problems) -> tuple[dict[str, str], str]:
    fields: dict[str, str] = {}
    code = ""
    tags = list(_FIELD.finditer(block))
    for place, tag in enumerate(tags):
        name = tag[3].lower()
        name = next((short for short in ("desc", "narr") if name.startswith(short)), name)
        if tag[1] or name not in _LEAD:
            continue
        if name in fields:
            problems.add(line, f"the topic has two <{name}>", "keep one, one language a file")
        end = tags[place + 1].start() if place + 1 < len(tags) else len(block)
        text = tidy(decode_entities(block[tag.end() : end]))
        fields[name] = _LEAD[name].sub("", text).strip()
        code = code or tag[2] or ""
    return fields, code


def xml_topics(path: str, problems: Problems) -> list[tuple[int, Topic]]:
    """The root's children as topics; safe: no entity is expanded, nothing else is opened.

    Understood are ids as attribute or child (number, identifier, id, num), ``title``/``query``,
    ``description``/``question``, ``narrative``, and a language on the topic or on its fields.
    """
    root = _tree(path, problems)
    found: list[tuple[int, Topic]] = []
    if root is None:
        return found
    if root.tag.lower() in ("topic", "top") and any(_field(child)[0] for child in root):
        return _xml_topic(root, problems)
    for child in root:
        found += _xml_topic(child, problems)
    return found


def _tree(path: str, problems: Problems) -> etree._Element | None:
    from lxml import etree

    lines: list[str] = []
    for number, line in lines_of(path, problems):
        lines.append(line)
        if "<!ENTITY" in line:
            problems.add(number, "an entity declaration", "write the text itself; it is refused")
    if problems:
        return None
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    try:
        root = etree.fromstring("\n".join(lines).encode(), parser)
    except etree.XMLSyntaxError as error:
        remedy = "mend it; a bare & is written &amp;"
        for entry in parser.error_log or [error]:
            message = getattr(entry, "message", None) or str(entry)
            problems.add(getattr(entry, "line", 0) or error.lineno, f"not XML: {message}", remedy)
        return None
    for entity in root.iter(etree.Entity):
        what = f"the entity {entity.text} is not known"
        problems.add(entity.getparent().sourceline, what, "write the character itself")
    return None if problems else root


def _field(element: etree._Element) -> tuple[str, str]:
    """The topic field that an element holds, and its language, each ``""`` if there is none."""
    code = element.get("lang") or element.get(_XML_LANG) or ""
    tag = str(element.tag)
    if clef := _CLEF_TAG.fullmatch(tag):
        tag, code = clef[2], code or clef[1]
    return _XML_FIELDS.get(tag.lower(), ""), _code(code.strip())


def _text(element: etree._Element) -> str:
    return tidy("".join(element.itertext()))


def _xml_topic(element: etree._Element, problems: Problems) -> list[tuple[int, Topic]]:
    line = element.sourceline or 0
    attribute = next((element.get(name) for name in _XML_IDS if element.get(name)), None)
    children = {str(child.tag).lower(): child for child in element}
    child_id = next((_text(children[name]) for name in _XML_IDS if name in children), "")
    identifier = (attribute or child_id).strip()
    if not identifier:
        problems.add(line, f"<{element.tag}> has no id", f"one of: {', '.join(_XML_IDS)}")
        return []
    own = _code((element.get("lang") or element.get(_XML_LANG) or "").strip())
    versions: dict[str, dict[str, str]] = {}
    for child in element:
        name, code = _field(child)
        if not name:
            continue
        fields = versions.setdefault(code or own, {})
        if name in fields:
            what = f"topic {identifier} has two fields {name}"
            problems.add(child.sourceline, what, "keep one a language")
        fields[name] = _text(child)
    if len(versions) > 1 and "" in versions:
        what = f"topic {identifier} has fields with and without a language"
        problems.add(line, what, "name the language of every field")
    if not versions:
        problems.add(line, f"topic {identifier} has no text", "give it a title or description")
    return [
        (line, Topic(identifier, **{"title": "", **fields}, language=code))
        for code, fields in versions.items()
    ]
