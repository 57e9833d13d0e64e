"""Versioned prompt templates: files beside this module, or the user's own by path.

A template is a YAML file::

    name: distractors
    version: 1
    system: You write test sentences.
    user: |
      Sentence in ${language}: <sentence>${text}</sentence>
      Write ${n} more.
    schema: {type: object, ...}     # of the answer, for servers that keep to one; optional

``${...}`` are the values that a job gives. A value cannot close a tag that the template opens, and
what in a value looks meant for the model is reported as suspect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from pydantic import Field

from polyray.config import Settings, load_config
from polyray.errors import ConfigError
from polyray.files import resolve
from polyray.llm.request import Item, Message, messages

__all__ = ["BUILT_IN", "Prompt", "Rendered", "load_prompt", "prompt_file"]

BUILT_IN = ("distractors", "ratings", "token_languages", "meaning_changed")

_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:above|previous|prior|instructions?|rules?)\b"
    r"|\b(?:system|assistant)\s*:|<\|[a-z_]+\|>|\[/?INST\]",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(
    r"[\"']?\b(?:accuracy|fluency|changed|distractors?|tags?|score|rating)\b[\"']?\s*[:=]\s*\S",
    re.IGNORECASE,
)


class _File(Settings):
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    version: int | str
    user: str = Field(min_length=1)
    system: str = ""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Messages ready to send, and what in the values looks meant for the model."""

    messages: tuple[Message, ...]
    suspects: tuple[str, ...]


@dataclass(frozen=True)
class Prompt:
    """A template. ``label`` (name and version) is part of every request's key."""

    name: str
    version: str
    user: str
    system: str = ""
    schema: Mapping[str, Any] | None = None
    file: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """Name and version, such as ``distractors@1``."""
        return f"{self.name}@{self.version}"

    @cached_property
    def names(self) -> frozenset[str]:
        """The values that the template needs."""
        return frozenset(_names(self.system, self.file) | _names(self.user, self.file))

    @cached_property
    def _tags(self) -> frozenset[str]:
        return frozenset(re.findall(r"</([\w-]+)>", self.user + self.system))

    def render(self, **values: object) -> Rendered:
        """The messages with the values in their places.

        Raises :class:`~polyray.errors.ConfigError` naming values that lack or are not known.
        """
        given = set(values)
        if given != self.names:
            lacking = ", ".join(sorted(self.names - given)) or "none"
            unknown = ", ".join(sorted(given - self.names)) or "none"
            where = self.file or self.name
            raise ConfigError(f"{where}: values lacking: {lacking}; not in the template: {unknown}")
        texts = {name: str(value) for name, value in values.items()}
        suspects = tuple(
            f"{name}: {why}" for name, text in sorted(texts.items()) for why in self._why(text)
        )
        safe = {name: self._harmless(text) for name, text in texts.items()}
        user = Template(self.user).substitute(safe).strip()
        return Rendered(messages(user, Template(self.system).substitute(safe).strip()), suspects)

    def item(self, item_id: str, *, sample: int = 0, context: Any = None, **values: object) -> Item:
        """An item to ask, with this prompt's messages, label and schema."""
        rendered = self.render(**values)
        return Item(
            item_id,
            rendered.messages,
            self.label,
            sample,
            schema=self.schema,
            context=context,
            suspects=rendered.suspects,
        )

    def _harmless(self, text: str) -> str:
        for tag in self._tags:
            text = re.sub(rf"<(\s*/?\s*{re.escape(tag)}\s*)>", r"‹\1›", text, flags=re.IGNORECASE)
        return text

    def _why(self, text: str) -> list[str]:
        reasons = []
        if self._harmless(text) != text:
            reasons.append("closes or opens a tag of the template")
        if _LABEL.search(text):
            reasons.append("holds a label of an answer")
        if _INSTRUCTION.search(text):
            reasons.append("reads like an instruction to the model")
        return reasons


def _names(text: str, file: str) -> set[str]:
    template = Template(text)
    if not template.is_valid():
        raise ConfigError(f"{file or 'template'}: a single $; write ${{name}} or $$")
    return set(template.get_identifiers())


def prompt_file(name: str | Path) -> Path:
    """The file of a template: one of :data:`BUILT_IN` by its name, or the user's own by path."""
    if str(name) in BUILT_IN:
        return Path(__file__).with_name(f"{name}.yaml")
    if str(name).endswith((".yaml", ".yml")):
        return resolve(name)
    known = ", ".join(BUILT_IN)
    raise ConfigError(f"prompt {str(name)!r}: none of {known}, and no path of a .yaml file")


def load_prompt(name: str | Path) -> Prompt:
    """One of :data:`BUILT_IN` by its name, or a template file by its path.

    Raises :class:`~polyray.errors.ConfigError` naming everything that is wrong in the file.
    """
    path = prompt_file(name)
    read = load_config(path, (), _File)
    made = Prompt(read.name, str(read.version), read.user, read.system, read.schema_, str(path))
    _ = made.names
    return made
