"""Real text for the measurements: the evaluation data where they lie, else the packaged sample."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, cycle, islice
from pathlib import Path

from polyray.records import Document, Query

__all__ = ["data_folder", "documents", "questions", "source", "word_documents"]


def data_folder(folder: str) -> Path | None:
    """A folder of the evaluation data, where they lie."""
    root = os.environ.get("POLYRAY_DATA")
    found = Path(root) / folder if root else None
    return found if found is not None and found.is_dir() else None


def source() -> str:
    """Where the text comes from, for the settings of a row."""
    return "evaluation data" if data_folder("ntrex") and data_folder("xquad") else "packaged sample"


def _files(kind: str) -> list[str]:
    if source() == "packaged sample":
        return [f"sample:{kind}/en_{kind}.tsv"]
    names = ("xquad", "ntrex") if kind == "docs" else ("xquad", "afriqa_sw")
    found = []
    for name in names:
        folder = data_folder(name)
        if folder is not None and (folder / kind / f"en_{kind}.tsv").is_file():
            found.append(str(folder / kind / f"en_{kind}.tsv"))
    return found


def documents(count: int) -> list[Document]:
    """``count`` English documents in a fixed mixed order, taken again under new ids if need be."""
    from polyray.collections.documents import read_documents
    from polyray.files import resolve

    real = [doc for file in _files("docs") for doc in read_documents(str(resolve(file)))]
    random.Random(1).shuffle(real)
    return [
        Document(f"b{number:06d}", doc.text, doc.title)
        for number, doc in enumerate(islice(cycle(real), count))
    ]


def questions(count: int) -> list[Query]:
    """``count`` English queries, with new ids."""
    from polyray.collections.topics import read_topics
    from polyray.files import resolve

    texts = [t.text() for file in _files("queries") for t in read_topics(str(resolve(file)))]
    return [Query(f"q{n}", text) for n, text in enumerate(islice(cycle(texts), count))]


def word_documents(count: int, words: int = 150) -> Iterator[Document]:
    """Documents of ``words`` words, half as many to half as many again, drawn by frequency.

    Drawing words, not sentences, keeps scores apart: repeated sentences would tie everywhere.
    """
    draw = random.Random(2)
    counted = Counter(word for doc in documents(700) for word in doc.contents.split())
    vocabulary = list(counted)
    weights = list(accumulate(counted.values()))
    for number in range(count):
        length = draw.randrange(words // 2, words * 3 // 2)
        chosen = draw.choices(vocabulary, cum_weights=weights, k=length)
        yield Document(f"doc-{number:06d}", " ".join(chosen))
