"""Settings of the LLM engine: which server, which parameters, which limits, what it may cost.

A key is never part of them: ``api_key_env`` is the *name* of an environment variable.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from polyray.config import Settings
from polyray.files import resolve

__all__ = [
    "Budget",
    "Limits",
    "LlmSettings",
    "OpenAIProvider",
    "Parameters",
    "Price",
    "Provider",
    "Retries",
    "ScriptedProvider",
    "answers_file",
]


class OpenAIProvider(Settings):
    """A server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, transformers serve.

    ``timeout_s`` is the whole time of one call. ``structured`` says that the server keeps to a
    JSON schema (``response_format``). The key is read from the environment variable that
    ``api_key_env`` names, or from the file ``api_key_file``, by the process that sends; with
    ``api_key_env: null`` and no file none is sent.
    """

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str | None = "OPENAI_API_KEY"
    api_key_file: str | None = None
    timeout_s: float = Field(default=60.0, gt=0)
    structured: bool = False
    longest_answer_bytes: int = Field(default=4_000_000, ge=1000)

    # Checked as a whole, so that no message shows what stands in a field: it may be a key.
    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        if self.api_key_env is not None and not re.fullmatch(
            r"[A-Z_][A-Z0-9_]{0,63}", self.api_key_env
        ):
            raise ValueError(
                "api_key_env: give the name of an environment variable in capitals, never the key"
            )
        try:
            parts = urlsplit(self.base_url)
            place = parts.hostname
        except ValueError:
            raise ValueError("base_url: not a URL") from None
        if parts.scheme not in ("http", "https") or not place:
            raise ValueError("base_url: write it as http://host:port/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("base_url: no user name, password or query in it; keys go by name")
        return self

    @property
    def endpoint(self) -> str:
        """Where requests go: part of every request's key."""
        return self.base_url.rstrip("/")


class ScriptedProvider(Settings):
    """Answers, delays and faults from a file (:mod:`polyray.llm.scripted`); needs no server.

    The file stands for a server: another file is another one, and an edited file is the same, whose
    stored answers are not asked for again.
    """

    kind: Literal["scripted"]
    file: str
    model: str = "scripted"
    timeout_s: float = Field(default=60.0, gt=0)
    structured: bool = False

    @property
    def endpoint(self) -> str:
        """Stands where a server's address would."""
        return f"scripted:{self.file}"


Provider = Annotated[OpenAIProvider | ScriptedProvider, Field(discriminator="kind")]


class Parameters(Settings):
    """What is sent with every request; ``null`` leaves a parameter to the server.

    ``max_tokens`` bounds one answer and is sent under the name ``max_tokens_name``. ``extra`` goes
    into the request as it stands, for what only one server knows.
    """

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    extra: dict[str, Any] = Field(default_factory=dict)

    @field_validator("extra")
    @classmethod
    def _only_extras(cls, extra: dict[str, Any]) -> dict[str, Any]:
        taken = {"model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"}
        if wrong := sorted(taken & set(extra)):
            raise ValueError(f"not here: {', '.join(wrong)}; for several answers ask samples")
        return extra


class Limits(Settings):
    """Bounds that hold for all actors together; rates are per minute, ``null`` is no limit.

    At most one second's worth of a rate goes out at once, and no window of a minute holds more
    than the rate.
    """

    in_flight: int = Field(default=32, ge=1, le=10_000)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)


class Retries(Settings):
    """How often what fails is tried again.

    ``attempts``: calls for one sample when the server says 429 or 5xx, or does not answer.
    ``resamples``: further samples where an answer was cut, refused or did not parse; after a cut
    one ``max_tokens`` grows by the factor ``longer``. Waits grow twofold from ``first_wait_s`` to
    ``longest_wait_s``, with jitter; a Retry-After is waited for, up to ``longest_retry_after_s``.
    """

    attempts: int = Field(default=6, ge=1)
    resamples: int = Field(default=1, ge=0)
    longer: float = Field(default=2.0, ge=1)
    first_wait_s: float = Field(default=0.5, ge=0)
    longest_wait_s: float = Field(default=30.0, gt=0)
    longest_retry_after_s: float = Field(default=600.0, gt=0)


class Price(Settings):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Budget(Settings):
    """The most that may be spent on one store, by all jobs that use it, earlier runs included;
    ``null`` is no limit."""

    usd: float | None = Field(default=None, ge=0)
    requests: int | None = Field(default=None, ge=0)


def answers_file(output: str, answers: str | None) -> Path:
    """The store of LLM answers: ``answers``, or one for all experiments of an output folder."""
    if answers is not None:
        return resolve(answers).absolute()
    return Path(output).absolute() / "llm" / "answers.sqlite"


class LlmSettings(Settings):
    """All of the engine's settings.

    ``actors``: Ray actors that send (0: the driver itself sends, without Ray). ``trace`` logs
    every call as an MLflow trace.
    """

    provider: Provider
    parameters: Parameters = Parameters()
    limits: Limits = Limits()
    retries: Retries = Retries()
    prices: dict[str, Price] = Field(default_factory=dict)
    budget: Budget = Budget()
    actors: int = Field(default=0, ge=0)
    trace: bool = False
