"""A request to an LLM, and the key that everything which shapes its answer makes up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polyray.files import sha256_text
from polyray.llm.settings import LlmSettings, Parameters

__all__ = ["Item", "Message", "Request", "body_of", "messages", "request_of"]

Message = tuple[str, str]
"""Role (``system``, ``user``, ``assistant``) and text."""

SAMPLE_STRIDE = 1000
"""A fixed seed moves by this for each further sample, so that samples can differ."""


@dataclass(frozen=True, slots=True)
class Item:
    """What a job asks: ``id`` is the job's own name for it, unique within one call.

    ``prompt`` is the template's name and version. ``sample`` numbers honest repeats: five samples
    are five calls. ``schema`` is a JSON schema for the answer, sent where the server keeps to one.
    ``parameters`` go over those of the settings. ``context`` is for the parser alone; ``suspects``
    says what in the values looks meant for the model.
    """

    id: str
    messages: tuple[Message, ...]
    prompt: str = ""
    sample: int = 0
    schema: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    context: Any = None
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it is sent; equal requests have equal keys.

    ``retake`` counts the further samples that were asked for because an answer was of no use.
    """

    endpoint: str
    model: str
    messages: tuple[Message, ...]
    parameters: Parameters = field(default_factory=Parameters)
    prompt: str = ""
    schema: Mapping[str, Any] | None = None
    sample: int = 0
    retake: int = 0

    def canonical(self) -> str:
        """All of it as JSON with sorted keys and no spaces: equal requests give equal text."""
        values = {
            "endpoint": self.endpoint,
            "model": self.model,
            "messages": [list(message) for message in self.messages],
            # Without defaults: a parameter that is added later changes no key.
            "parameters": self.parameters.model_dump(mode="json", exclude_defaults=True),
            "prompt": self.prompt,
            "schema": self.schema,
            "sample": self.sample,
            "retake": self.retake,
        }
        return json.dumps(values, sort_keys=True, separators=(",", ":"))

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return sha256_text(self.canonical())

    def again(self, retake: int, longer: float = 1.0) -> Request:
        """The same question as a new sample, with room for an answer ``longer`` times as long."""
        parameters = self.parameters
        if longer > 1 and parameters.max_tokens is not None:
            grown = round(parameters.max_tokens * longer)
            parameters = parameters.model_copy(update={"max_tokens": grown})
        return replace(self, retake=retake, parameters=parameters)


def request_of(item: Item, settings: LlmSettings) -> Request:
    """The first request for an item."""
    parameters = settings.parameters
    if item.parameters:
        from polyray.config import validated

        values = {**parameters.model_dump(), **item.parameters}
        parameters = validated(Parameters, values, f"parameters of {item.id!r}")
    return Request(
        endpoint=settings.provider.endpoint,
        model=settings.provider.model,
        messages=tuple((role, text) for role, text in item.messages),
        parameters=parameters,
        prompt=item.prompt,
        schema=item.schema if settings.provider.structured else None,
        sample=item.sample,
    )


def body_of(request: Request) -> dict[str, Any]:
    """The JSON body of a chat completion request."""
    given = request.parameters
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": role, "content": text} for role, text in request.messages],
        "temperature": given.temperature,
        "top_p": given.top_p,
        given.max_tokens_name: given.max_tokens,
        "stop": None if given.stop is None else list(given.stop),
        "presence_penalty": given.presence_penalty,
        "frequency_penalty": given.frequency_penalty,
        "response_format": _response_format(request.schema),
        "seed": None
        if given.seed is None
        else given.seed + SAMPLE_STRIDE * request.sample + request.retake,
    }
    return {name: value for name, value in body.items() if value is not None} | given.extra


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    named = {"name": "answer", "strict": True, "schema": dict(schema)}
    return {"type": "json_schema", "json_schema": named}


def messages(user: str, system: str = "") -> tuple[Message, ...]:
    """A user's message, after a system message where there is one."""
    return (("system", system), ("user", user)) if system else (("user", user),)
