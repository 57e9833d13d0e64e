"""Readers and writers of test collections: documents, topics, qrels, lexicons; strict checks."""

from __future__ import annotations

from polyray.collections.documents import read_documents, write_documents
from polyray.collections.lexicon import read_lexicon
from polyray.collections.qrels import read_qrels, write_qrels
from polyray.collections.topics import empty_topics, read_topics

__all__ = [
    "empty_topics",
    "read_documents",
    "read_lexicon",
    "read_qrels",
    "read_topics",
    "write_documents",
    "write_qrels",
]
