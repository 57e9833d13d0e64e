"""The error tree: every error that a user can cause is a :class:`PolyrayError`.

A user error prints its message and exits with status 2, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = [
    "BudgetExceeded",
    "ConfigError",
    "IndexDamaged",
    "InputError",
    "MissingPrerequisite",
    "PolyrayError",
    "Problem",
    "Problems",
    "TrainingFailed",
]


class PolyrayError(Exception):
    """Base of all errors that are the user's to mend; its text is the whole message."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in one place of one file."""

    file: str
    line: int | None
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}" + (f" ({self.remedy})" if self.remedy else "")


class InputError(PolyrayError):
    """Bad input: lists every problem as ``file:line: what (remedy)``.

    >>> print(InputError([Problem("run.txt", 3, "the score is not a number", "write a decimal")]))
    run.txt:3: the score is not a number (write a decimal)
    """

    def __init__(self, problems: Iterable[Problem] | Problem) -> None:
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Problem]]]:
        return (type(self), (self.problems,))


@dataclass
class Problems:
    """Collects problems of one file, so that a reader can report all of them at once.

    Only the first ``limit`` are kept in full; the rest are counted and said so.
    """

    file: str
    limit: int = 1000
    found: list[Problem] = field(default_factory=list)
    left_out: int = 0

    def add(self, line: int | None, what: str, remedy: str = "") -> None:
        """Note one problem of this file."""
        if len(self.found) < self.limit:
            self.found.append(Problem(self.file, line, what, remedy))
        else:
            self.left_out += 1

    def __bool__(self) -> bool:
        return bool(self.found)

    def all(self) -> list[Problem]:
        """The problems found, with a closing line when there were more than ``limit``."""
        if not self.left_out:
            return list(self.found)
        return [*self.found, Problem(self.file, None, f"and {self.left_out} more problems")]

    def raise_if_any(self) -> None:
        """Raise :class:`InputError` if anything was noted."""
        if self.found:
            raise InputError(self.all())


class ConfigError(PolyrayError):
    """A configuration is wrong: names the path inside it and the allowed values."""


class MissingPrerequisite(PolyrayError):
    """Something that has to be installed or provided is not there; says what to do."""


class IndexDamaged(PolyrayError):
    """A file of an index or a run folder is missing or not what its manifest says."""


class BudgetExceeded(PolyrayError):
    """A paid resource would exceed the limit that the user has set."""


class TrainingFailed(PolyrayError):
    """A training cannot go on: which step, what was seen, what helps."""
