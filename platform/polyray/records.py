"""The records that everything else passes around, and the Arrow schema of each.

Ids are opaque strings, kept to the letter; ``"007"`` is not ``"7"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Document", "Field", "Hit", "Passage", "Qrel", "Query", "Topic", "schema_of"]

Field = Literal["title", "description", "title+description"]


@dataclass(frozen=True, slots=True)
class Document:
    """One document. ``contents`` is what is indexed; offsets of passages count in it."""

    doc_id: str
    text: str
    title: str = ""

    @property
    def contents(self) -> str:
        """Title and text, joined by a line feed (the text alone where there is no title)."""
        return f"{self.title}\n{self.text}" if self.title and self.text else self.title or self.text


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a document: ``text == document.contents[start:end]``.

    ``index`` counts from 0 within the document; ``tokens`` is the window's length in tokens of
    the tokenizer that cut it, special tokens not counted.
    """

    doc_id: str
    index: int
    start: int
    end: int
    tokens: int
    text: str

    @property
    def passage_id(self) -> str:
        """``doc_id#index``, for display; documents are found by ``doc_id``, never by cutting."""
        return f"{self.doc_id}#{self.index}"


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need as test collections publish it, in one language.

    ``language`` is an ISO 639-1 code or ``""`` where the file does not say; ``source`` tells
    translations apart (``original``, ``human translation``, ...).
    """

    topic_id: str
    title: str
    description: str = ""
    narrative: str = ""
    language: str = ""
    source: str = ""

    def text(self, field: Field = "title+description") -> str:
        """The words of the chosen field(s), joined by one space; ``""`` if there are none."""
        if field == "title":
            return self.title
        if field == "description":
            return self.description
        return " ".join(part for part in (self.title, self.description) if part)

    def query(self, field: Field = "title+description", variant: str = "native") -> Query:
        """The query that a searcher would type for this topic."""
        return Query(self.topic_id, self.text(field), self.language, variant)


@dataclass(frozen=True, slots=True)
class Query:
    """What is typed into a search box. ``variant`` is ``native``, ``english`` or ``mixed``."""

    query_id: str
    text: str
    language: str = ""
    variant: str = "native"


@dataclass(frozen=True, slots=True)
class Qrel:
    """A judgment; ``grade >= 1`` is relevant, 0 and below are judged and not relevant."""

    query_id: str
    doc_id: str
    grade: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of a ranked list; a higher score is better."""

    doc_id: str
    score: float


def schema_of(record: type) -> pa.Schema:
    """The Arrow schema of one of the records; ids are strings, offsets 64-bit integers.

    >>> schema_of(Qrel).names
    ['query_id', 'doc_id', 'grade']
    """
    import dataclasses

    import pyarrow as pa

    arrow = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    return pa.schema([(f.name, arrow[str(f.type)]) for f in dataclasses.fields(record)])
