"""TREC and CLEF documents in SGML, as NIST's collections and the LA Times files come."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache

from polyray.collections._lines import lines_of
from polyray.errors import Problems
from polyray.records import Document

__all__ = ["decode_entities", "read_sgml", "tidy"]

_DOC = re.compile(r"<(/?)DOC(\s[^<>]*)?>", re.IGNORECASE)
_ID = re.compile(r"<DOCNO\s*>(.*?)</DOCNO\s*>", re.IGNORECASE | re.DOTALL)
_ID_ATTRIBUTE = re.compile(r"\b(?:id|docid|docno)\s*=\s*[\"']?([^\s\"'>]+)", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9_-]*(?:\s[^<>]*)?/?>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_BREAK = re.compile(r"</?P(?:\s[^<>]*)?>|\n[ \t\r]*\n", re.IGNORECASE)

_TITLES = (("HEADLINE",), ("TITLE",), ("HL",), ("HEAD",), ("TI",))
_TEXTS = ("TEXT", "LD", "TX")
_NOT_TEXT = ("DOCNO", "DOCID", "DOCOLDNO", "DOCHDR", "PARENT", "DATE", "FILEID")


def decode_entities(text: str) -> str:
    """Character references that end in a semicolon become characters; ``AT&T`` stays as it is."""
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)


def tidy(text: str) -> str:
    """The text with every run of white space made one space, none at its ends."""
    return " ".join(text.split())


def read_sgml(path: str, problems: Problems) -> Iterator[tuple[int, Document]]:
    """Yield ``(line of its <DOC>, document)``; what is wrong is noted in ``problems``.

    The title is the headline; the text is all of ``<TEXT>`` (SDA files: ``<LD>`` and ``<TX>``),
    or, where a document has none, what it holds outside its id and headline. Paragraphs are
    joined by a line feed; the hard line ends inside them become spaces.
    """
    body: list[str] | None = None
    start, attributes, any_found = 0, "", False
    for number, line in lines_of(path, problems):
        position = 0
        for tag in _DOC.finditer(line):
            if body is not None:
                body.append(line[position : tag.start()])
            position = tag.end()
            if not tag[1]:
                if body is not None:
                    problems.add(start, "<DOC> is not closed", "add the missing </DOC>")
                body, start, attributes, any_found = [], number, tag[2] or "", True
            elif body is None:
                problems.add(number, "</DOC> without <DOC>", "add the missing <DOC>")
            else:
                document = _document("\n".join(body), attributes, start, problems)
                if document is not None:
                    yield start, document
                body = None
        if body is not None:
            body.append(line[position:])
    if body is not None:
        problems.add(start, "<DOC> is not closed", "the file may be cut off: fetch it again")
    if not any_found and not problems:
        problems.add(None, "no <DOC> in the file", "give a file of TREC or CLEF documents")


def _document(body: str, attributes: str, line: int, problems: Problems) -> Document | None:
    if "<!--" in body:
        body = _COMMENT.sub(" ", body)
    named = _ID.search(body) or _ID_ATTRIBUTE.search(attributes)
    if named is None:
        problems.add(line, "the document has no <DOCNO>", "add <DOCNO>its id</DOCNO>")
        return None
    title_tag, titles = "", []
    for names in _TITLES:
        if titles := _elements(body, names, line, problems):
            title_tag = names[0]
            break
    texts = _elements(body, _TEXTS, line, problems)
    if not texts:
        rest = _patterns((*_NOT_TEXT, title_tag) if title_tag else _NOT_TEXT)[1].sub(" ", body)
        texts = [rest]
    title = tidy(" ".join(map(_plain, titles)))
    paragraphs = (tidy(_plain(part)) for text in texts for part in _BREAK.split(text))
    return Document(decode_entities(named[1]).strip(), "\n".join(filter(None, paragraphs)), title)


@cache
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The opening tags of some elements, and the whole elements with their content as group 2."""
    opening = rf"<({'|'.join(names)})(?:\s[^<>]*)?>"
    flags = re.IGNORECASE | re.DOTALL
    return re.compile(opening, flags), re.compile(rf"{opening}(.*?)</\1\s*>", flags)


def _elements(body: str, names: tuple[str, ...], line: int, problems: Problems) -> list[str]:
    opening, whole = _patterns(names)
    opened = len(opening.findall(body))
    if not opened:
        return []
    found = [match[2] for match in whole.finditer(body)]
    if len(found) != opened:
        problems.add(line, f"the document has an unclosed <{names[0]}>", f"add </{names[0]}>")
    return found


def _plain(markup: str) -> str:
    return decode_entities(_TAG.sub(" ", markup) if "<" in markup else markup)
