"""Training examples: a query, n passages and the teacher's scores, read by offset.

Where they come from is an :class:`ExampleSource`; :meth:`Examples.prepare` checks the files once
and writes what is usable as numbers (rows, scores, byte offsets) into a folder that any process
maps into memory. Texts are read when an example is asked for, and never held.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from polyray.config import Settings
from polyray.files import resolve
from polyray.training.examples_prepare import open_arrays, open_facts, prepare
from polyray.training.examples_report import Report
from polyray.training.offsets import Lines
from polyray.training.recipes import QueryTexts, Recipe, Schedule, in_language

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Example", "ExampleSource", "Examples"]


class ExampleSource(Settings):
    """Where examples come from; all files may be packed with gzip.

    ``examples``: JSON lines ``[qid, [pid, score], ...]`` (teacher scores) or ``[qid, pid, pid]``,
    or ``qid TAB pid+ TAB pid-``. ``queries`` and ``passages``: ``id TAB text`` or JSON lines;
    their paths may hold ``{language}`` (de), ``{iso3}`` (deu) or ``{name}`` (german).

    ``choice`` picks ``nway`` passages of a line: the first and a sample of the others, the first
    ones, or a sample of all. ``max_examples`` takes the first usable lines alone.
    """

    examples: str
    queries: str
    passages: str
    nway: int = Field(default=6, gt=1)
    choice: Literal["positive", "first", "random"] = "positive"
    max_examples: int | None = Field(default=None, gt=0)

    def query_path(self, language: str) -> Path:
        """The file of queries in one language."""
        return resolve(in_language(self.queries, language))

    def passage_path(self, language: str) -> Path:
        """The file of passages in one language."""
        return resolve(in_language(self.passages, language))

    def fingerprints(self, recipes: Sequence[Recipe]) -> dict[str, str]:
        """SHA-256 of every file that the recipes read, by what it is; for an experiment's inputs.

        Raises :class:`~polyray.errors.InputError` for a file that is not there.
        """
        from polyray.collections.store import fingerprint

        paths = {"examples": resolve(self.examples)}
        for recipe in recipes:
            paths |= {f"queries.{code}": self.query_path(code) for code in recipe.query_files}
            paths |= {f"passages.{code}": self.passage_path(code) for code in recipe.passage_files}
            if recipe.lexicon is not None:
                for code in recipe.query_languages:
                    lexicon = resolve(in_language(recipe.lexicon, code))
                    paths[f"lexicon.{recipe.switched}.{code}"] = lexicon
        known: dict[Path, str] = {}
        for path in paths.values():
            if path not in known:
                known[path] = fingerprint(str(path))
        return {name: known[path] for name, path in paths.items()}


class Example(NamedTuple):
    """One training example; ``scores`` is empty where the source has none.

    ``language`` is the one that the schedule gave; ``passages``, ``scores`` and ``passage_ids``
    are in the order of the line, the positive first unless ``choice`` is ``random``.
    """

    query_id: str
    language: str
    query: str
    passages: tuple[str, ...]
    scores: tuple[float, ...]
    passage_ids: tuple[str, ...]


class Examples(Sequence[Example]):
    """The examples of one recipe; the same for (seed, i) in any process and order.

    One pass has ``len(self)`` examples: every usable line once in each language. ``at`` goes on
    beyond that: the next pass has another order and another choice of passages. What is pickled
    are paths and settings; files are opened where they are read.
    """

    def __init__(self, folder: Path, recipe: Recipe, seed: int) -> None:
        """Open a folder that :meth:`prepare` made; raises IndexDamaged where it is not whole."""
        self.folder, self.recipe, self.seed = folder, recipe, seed
        self._facts = open_facts(folder)
        self._schedule = Schedule(self._facts["lines"], recipe.query_languages, seed)
        self._queries = QueryTexts(recipe)
        self._lines: dict[str, Lines] = {}

    @classmethod
    def prepare(
        cls,
        source: ExampleSource,
        recipe: Recipe,
        folder: Path,
        *,
        seed: int,
        alongside: Sequence[Recipe] = (),
        inputs: Mapping[str, str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Examples:
        """Check the files and write ``folder/examples-<key>``, unless that is there already.

        A line is used only where the recipes ``alongside`` can use it as well, so that all of a
        study's recipes have the same lines: give the same list to each. ``inputs`` are
        :meth:`ExampleSource.fingerprints` if known. ``progress`` is told the step, how many
        bytes of its file are read, and how many there are. Raises
        :class:`~polyray.errors.InputError` where no line is usable, with what was found.
        """
        recipes = [recipe, *alongside]
        known = source.fingerprints(recipes) if inputs is None else inputs
        return cls(prepare(source, recipes, folder, known, progress), recipe, seed)

    @property
    def report(self) -> Report:
        """What was found wrong in the files, and how much is used."""
        return Report(**self._facts["report"])

    @property
    def has_scores(self) -> bool:
        """Whether the source has teacher scores."""
        return bool(self._facts["scored"])

    @property
    def lines(self) -> int:
        """Usable lines of the source."""
        return int(self._facts["lines"])

    def pair(self, i: int) -> tuple[str, str]:
        """Query id and language of the example ``i``: the schedule, without any text."""
        line, language = self._schedule[i]
        return self._query(line, language)[0], language

    def __len__(self) -> int:
        return len(self._schedule)

    def __getitem__(self, i: Any) -> Any:
        """The example ``i`` of the first pass, or those of a slice."""
        if isinstance(i, slice):
            return [self.at(number) for number in range(*i.indices(len(self)))]
        number = i + len(self) if i < 0 else i
        if not 0 <= number < len(self):
            raise IndexError(f"example {i} of {len(self)}")
        return self.at(number)

    def at(self, i: int) -> Example:
        """The example ``i >= 0``, counted on through all passes."""
        return self._example(*self._schedule[i], i)

    def _example(self, line: int, language: str, i: int | None) -> Example:
        begin, end = (int(at) for at in self.array("starts")[line : line + 2])
        chosen = slice(None) if i is None else self._chosen(i, end - begin)
        rows = self.array("passages")[begin:end][chosen]
        scores = self.array("scores")[begin:end][chosen] if self.has_scores else ()
        query_id, text = self._query(line, language)
        code = self.recipe.passages_in(language)
        found = [self.text("passages", code, int(row)) for row in rows]
        return Example(
            query_id,
            language,
            self._queries.make(query_id, text, language),
            tuple(text for _, text in found),
            tuple(map(float, scores)),
            tuple(identifier for identifier, _ in found),
        )

    def whole(self, line: int) -> Example:
        """A usable line with all its passages, in the schedule's first language."""
        return self._example(line, self.recipe.query_languages[0], None)

    def _chosen(self, i: int, count: int) -> list[int]:
        """Places of the passages that the example takes, ascending."""
        nway, choice = self._facts["nway"], self._facts["choice"]
        if count == nway or choice == "first":
            return list(range(nway))
        digest = hashlib.sha256(f"{self.seed}\0passages\0{i}".encode()).digest()
        sample = random.Random(int.from_bytes(digest)).sample
        if choice == "random":
            return sorted(sample(range(count), nway))
        return [0, *sorted(sample(range(1, count), nway - 1))]

    def _query(self, line: int, language: str) -> tuple[str, str]:
        code = self.recipe.query_language(language)
        return self.text("queries", code, int(self.array("queries")[line]))

    def array(self, name: str) -> np.ndarray:
        """``starts``, ``queries``, ``passages`` (rows) or ``scores``, as they lie on disk."""
        return self._arrays[name]

    def text(self, what: str, code: str, row: int) -> tuple[str, str]:
        """Id and text of one row of ``queries`` or ``passages`` in the language ``code``."""
        name = f"{what}.{code}"
        if name not in self._lines:
            file = self._facts["files"][name]
            self._lines[name] = Lines(Path(file["path"]), file["bytes"])
        offset = int(self.array(f"{name}.offsets")[row])
        return self._lines[name].text_at(offset, " " if what == "queries" else "\n")

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return open_arrays(self.folder, self._facts)

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key != "_arrays"}
        return {**state, "_lines": {}}
