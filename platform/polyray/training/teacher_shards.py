"""Teacher scores in shards, on Ray Data actors; a shard that is whole is never scored again.

A pair teacher scores the lines of its shard pair by pair. A bi-encoder reads every distinct query
and every distinct passage once, in shards of texts; pairs are then products of stored vectors.
:class:`ShardScorer` is the plain worker and knows no Ray.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polyray.files import atomic_path, read_json, sha256_of, write_json
from polyray.indexes.actors import map_on_actors
from polyray.indexes.manifest import settings_key
from polyray.models.packaged import ensure_available
from polyray.retrieve.settings import Workers
from polyray.training.examples import Examples
from polyray.training.teacher import (
    BiEncoderTeacher,
    PairTeacher,
    check_scores,
    load_scorer,
)

if TYPE_CHECKING:
    import numpy as np

    from polyray.models.dense import Encoder
    from polyray.training.teacher import PairScorer

__all__ = ["LINES", "TEXTS", "Shard", "ShardScorer", "teach"]

LINES, TEXTS = 64, 128
"""Lines and texts of one shard."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Shard:
    """Numbers ``start`` to ``stop`` of the lines, or of the distinct queries or passages."""

    what: Literal["lines", "queries", "passages"]
    start: int
    stop: int
    output: str

    @property
    def file(self) -> Path:
        """Scores or vectors, float32."""
        return Path(self.output) / f"{self.what}-{self.start:09d}.npy"

    @property
    def done(self) -> Path:
        """The shard's facts and ids, written last."""
        return self.file.with_suffix(".json")

    def is_whole(self) -> bool:
        """Whether the shard was finished and its file is as written."""
        if not self.done.is_file() or not self.file.is_file():
            return False
        facts = read_json(self.done)
        return facts["stop"] == self.stop and facts["sha256"] == sha256_of(self.file)


class ShardScorer:
    """Scores or encodes shards of one set of examples; knows no Ray."""

    def __init__(
        self,
        examples: Examples,
        scorer: PairScorer | None = None,
        encoder: Encoder | None = None,
        name: str = "",
        precision: str = "",
    ) -> None:
        self._examples, self._scorer, self._encoder = examples, scorer, encoder
        self._name, self._precision = name, precision

    def __call__(self, shard: Shard) -> dict[str, Any]:
        """Do one shard; returns its facts, which also lie in its ``done`` file."""
        import numpy as np

        values, facts = self._lines(shard) if shard.what == "lines" else self._texts(shard)
        check_scores(values, self._name, self._precision)
        with atomic_path(shard.file) as temporary, temporary.open("wb") as handle:
            np.save(handle, values.astype(np.float32))
        facts |= {"stop": shard.stop, "sha256": sha256_of(shard.file)}
        write_json(shard.done, facts, indent=None)
        return facts

    def _lines(self, shard: Shard) -> tuple[np.ndarray, dict[str, Any]]:
        pairs: list[tuple[str, str]] = []
        ids: list[list[str]] = []
        for line in range(shard.start, shard.stop):
            example = self._examples.whole(line)
            pairs += [(example.query, passage) for passage in example.passages]
            ids.append([example.query_id, *example.passage_ids])
        if self._scorer is None:
            raise TypeError("a worker without a scorer got lines")
        return self._scorer.score(pairs), {
            "ids": ids,
            "texts": len(pairs),
            "truncated": self._scorer.truncated(pairs),
        }

    def _texts(self, shard: Shard) -> tuple[np.ndarray, dict[str, Any]]:
        rows = distinct(self._examples, shard.what)[shard.start : shard.stop]
        code = code_of(self._examples, shard.what)
        found = [self._examples.text(shard.what, code, int(row)) for row in rows]
        texts = [text for _, text in found]
        encoder = self._encoder
        if encoder is None:
            raise TypeError("a worker without an encoder got texts")
        passages = shard.what == "passages"
        vectors = encoder.encode_passages(texts) if passages else encoder.encode_queries(texts)
        return vectors, {
            "ids": [identifier for identifier, _ in found],
            "texts": len(texts),
            "truncated": encoder.truncated(texts, passages=passages),
        }


def distinct(examples: Examples, what: str) -> np.ndarray:
    """Rows of the queries or passages that occur in the lines, ascending, each once."""
    import numpy as np

    return np.unique(examples.array(what))


def code_of(examples: Examples, what: str) -> str:
    """Language of the texts that a teacher reads."""
    language = examples.recipe.query_languages[0]
    recipe = examples.recipe
    return recipe.passages_in(language) if what == "passages" else recipe.query_language(language)


@dataclass(frozen=True, slots=True)
class _Settings:
    examples: Examples
    teacher: PairTeacher | BiEncoderTeacher


class _Actor:
    """Ray's side of a worker: one row is one shard."""

    def __init__(self, settings: _Settings, threads: int) -> None:
        from polyray.models.dense import is_light, load_encoder

        teacher = settings.teacher
        bi = isinstance(teacher, BiEncoderTeacher)
        if not (bi and is_light(teacher.model)):
            import torch

            torch.set_num_threads(threads)
        self._worker = ShardScorer(
            settings.examples,
            None if isinstance(teacher, BiEncoderTeacher) else load_scorer(teacher),
            load_encoder(teacher.encoder) if isinstance(teacher, BiEncoderTeacher) else None,
            teacher.model,
            teacher.precision,
        )

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        self._worker(Shard(**row))
        return {"start": row["start"]}


def teach(
    examples: Examples,
    teacher: PairTeacher | BiEncoderTeacher,
    indexes: Path,
    path: Path,
    workers: Workers,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Write ``[qid, [pid, score], ...]`` JSON lines of all lines.

    Returns how many ``shards`` this call did, and how many pairs or distinct texts (``texts``)
    the teacher read in all, ``truncated`` ones among them.

    ``teacher`` has device, precision and batch size chosen. Shards lie in
    ``indexes/teacher-<key>``, named by the teacher and the examples' folder. Ray is started or
    joined only where something is left to do.
    """
    from polyray.cluster import started

    described = {
        "teacher": teacher.model_dump(exclude={"device", "scale"}),
        "examples": examples.folder.name,
        "shards": [LINES, TEXTS],
    }
    folder = indexes / f"teacher-{settings_key(described)}"
    folder.mkdir(parents=True, exist_ok=True)
    shards = list(_shards(examples, teacher, folder.resolve()))
    pending = [shard for shard in shards if not shard.is_whole()]
    report = progress or (lambda *_: None)
    done = len(shards) - len(pending)
    report("teacher: shards", done, len(shards))
    if pending:
        ensure_available(teacher.model, teacher.revision)
    with started(address=workers.address) if pending else nullcontext():
        answers = map_on_actors(
            [asdict(shard) for shard in pending],
            _Actor,
            _Settings(examples, teacher),
            gpu=teacher.device.startswith("cuda"),
            actors=workers.actors,
            cpus=workers.cpus,
        )
        for number, _ in enumerate(answers, start=1):
            report("teacher: shards", done + number, len(shards))
    lines = (
        _products(examples, shards, teacher.scale)
        if isinstance(teacher, BiEncoderTeacher)
        else _scored(shards, examples)
    )
    _write(path, lines)
    facts = [read_json(shard.done) for shard in shards]
    totals = {name: sum(fact[name] for fact in facts) for name in ("texts", "truncated")}
    return {"shards": len(pending), **totals}


def _shards(
    examples: Examples, teacher: PairTeacher | BiEncoderTeacher, folder: Path
) -> Iterator[Shard]:
    def cut(
        what: Literal["lines", "queries", "passages"], total: int, size: int
    ) -> Iterator[Shard]:
        for start in range(0, total, size):
            yield Shard(what, start, min(start + size, total), str(folder))

    if isinstance(teacher, BiEncoderTeacher):
        yield from cut("passages", len(distinct(examples, "passages")), TEXTS)
        yield from cut("queries", len(distinct(examples, "queries")), TEXTS)
    else:
        yield from cut("lines", examples.lines, LINES)


_Line = tuple[str, Sequence[str], Sequence[float]]


def _scored(shards: Sequence[Shard], examples: Examples) -> Iterator[_Line]:
    import numpy as np

    for shard in shards:
        values, at = np.load(shard.file), 0
        for query_id, *passages in read_json(shard.done)["ids"]:
            yield query_id, passages, values[at : at + len(passages)].tolist()
            at += len(passages)


def _products(examples: Examples, shards: Sequence[Shard], scale: float) -> Iterator[_Line]:
    """Cosines of stored vectors, float32, times the scale."""
    import numpy as np

    tables = {what: _Vectors(examples, what, shards) for what in ("queries", "passages")}
    starts, queries = examples.array("starts"), examples.array("queries")
    passages = examples.array("passages")
    for line in range(examples.lines):
        (query_id,), query = tables["queries"].of(queries[line : line + 1])
        ids, vectors = tables["passages"].of(passages[starts[line] : starts[line + 1]])
        yield query_id, ids, (np.float32(scale) * (vectors @ query[0])).tolist()


class _Vectors:
    """Unit vectors of distinct texts by row, mapped from the shards' files."""

    def __init__(self, examples: Examples, what: str, shards: Sequence[Shard]) -> None:
        import numpy as np

        own = [shard for shard in shards if shard.what == what]
        self._rows = distinct(examples, what)
        self._parts = [np.load(shard.file, mmap_mode="r") for shard in own]
        self._ids = [identifier for shard in own for identifier in read_json(shard.done)["ids"]]

    def of(self, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Ids and float32 unit vectors ``[n, dim]`` of some rows."""
        import numpy as np

        places: list[int] = np.asarray(np.searchsorted(self._rows, rows)).tolist()
        vectors = np.stack([self._parts[at // TEXTS][at % TEXTS] for at in places])
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return [self._ids[at] for at in places], vectors / np.maximum(norms, 1e-12)


def _write(path: Path, lines: Iterator[_Line]) -> None:
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as out,
    ):
        for query_id, passages, scores in lines:
            pairs = [[p, round(s, 6)] for p, s in zip(passages, scores, strict=True)]
            out.write(json.dumps([query_id, *pairs], ensure_ascii=False) + "\n")
