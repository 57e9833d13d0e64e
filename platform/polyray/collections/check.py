"""Strict checks of input files: every problem with its place, and counts of what is there."""

from __future__ import annotations

from collections.abc import Callable, Collection

from polyray.collections.documents import read_documents
from polyray.collections.lexicon import read_lexicon
from polyray.collections.qrels import read_qrels
from polyray.collections.topics import all_topics, empty_topics
from polyray.errors import ConfigError, InputError, Problem
from polyray.records import Qrel
from polyray.runs import Run

__all__ = [
    "Result",
    "check_documents",
    "check_lexicon",
    "check_qrels",
    "check_queries",
    "check_run",
    "check_together",
]

Result = tuple[list[Problem], dict[str, int]]
"""Problems found, and counts by name (empty where the file is refused)."""


def _checked(path: str, count: Callable[[], dict[str, int]]) -> Result:
    try:
        return [], count()
    except InputError as error:
        return error.problems, {}
    except ConfigError as error:
        return [Problem(path, None, str(error).removeprefix(f"{path}: "))], {}


def check_documents(
    path: str, *, format: str | None = None, wanted: Collection[str] = ()
) -> Result:
    """Check a collection: documents, how many have no text, how many of ``wanted`` are there."""

    def count() -> dict[str, int]:
        counts = {"documents": 0, "documents without text": 0}
        found = 0
        for document in read_documents(path, format=format):
            counts["documents"] += 1
            counts["documents without text"] += _blank(document.contents)
            found += document.doc_id in wanted
        if wanted:
            counts["judged or retrieved documents that are missing"] = len(wanted) - found
        return counts

    return _checked(path, count)


def check_queries(path: str, *, format: str | None = None) -> Result:
    """Check topics in every language: how many there are, how many texts are empty."""

    def count() -> dict[str, int]:
        topics = all_topics(path, format=format)
        return {
            "topics": len({topic.topic_id for topic in topics}),
            "topic texts": len(topics),
            "languages named": len({topic.language for topic in topics} - {""}),
            "topic texts without title": len(empty_topics(topics, "title")),
            "topic texts without title and description": len(empty_topics(topics)),
        }

    return _checked(path, count)


def check_qrels(path: str) -> Result:
    """Check judgments: how many, for how many topics, how many relevant."""

    def count() -> dict[str, int]:
        qrels = read_qrels(path)
        relevant = [qrel for qrel in qrels if qrel.grade >= 1]
        return {
            "judgments": len(qrels),
            "judged topics": len({qrel.query_id for qrel in qrels}),
            "relevant judgments": len(relevant),
            "judged topics without a relevant document": len(
                {qrel.query_id for qrel in qrels} - {qrel.query_id for qrel in relevant}
            ),
        }

    return _checked(path, count)


def check_run(path: str) -> Result:
    """Check a run: results and topics."""

    def count() -> dict[str, int]:
        run = Run.read(path)
        return {"results": run.size, "topics with results": len(run)}

    return _checked(path, count)


def check_lexicon(path: str) -> Result:
    """Check a lexicon: words and translations."""

    def count() -> dict[str, int]:
        lexicon = read_lexicon(path)
        return {"words": len(lexicon), "translations": sum(map(len, lexicon.values()))}

    return _checked(path, count)


def check_together(
    *,
    docs: str | None = None,
    queries: str | None = None,
    qrels: str | None = None,
    run: str | None = None,
    lexicon: str | None = None,
) -> Result:
    """Check every file that is given, and count what does not match between them.

    A document that is judged but missing, or a query without judgments, is counted and no
    problem: pools and partial collections are normal.
    """
    results: list[Result] = []
    judged: list[Qrel] = []
    retrieved: Run | None = None
    if qrels is not None:
        results.append(check_qrels(qrels))
        judged = read_qrels(qrels) if not results[-1][0] else []
    if run is not None:
        results.append(check_run(run))
        retrieved = Run.read(run) if not results[-1][0] else None
    topics = {qrel.query_id for qrel in judged}
    if queries is not None:
        problems, counts = check_queries(queries)
        results.append((problems, counts))
        if judged and not problems:
            asked = {topic.topic_id for topic in all_topics(queries)}
            counts["topics without judgments"] = len(asked - topics)
            counts["judged topics that are missing"] = len(topics - asked)
    if retrieved is not None and judged:
        results[-1][1]["judged topics without results"] = len(topics - set(retrieved))
    if docs is not None:
        wanted = {qrel.doc_id for qrel in judged}
        if retrieved is not None:
            wanted.update(doc for topic in retrieved for doc in retrieved.ranked(topic)[0])
        results.append(check_documents(docs, wanted=wanted))
    if lexicon is not None:
        results.append(check_lexicon(lexicon))
    problems = [problem for found, _ in results for problem in found]
    return problems, {name: number for _, counts in results for name, number in counts.items()}


def _blank(text: str) -> bool:
    from polyray.text.keys import is_blank

    return is_blank(text)
