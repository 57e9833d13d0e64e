"""The scripted provider: answers, delays and faults from a file, without a server.

The file is YAML or JSON::

    delay_s: 0.05                # every answer's, unless it has its own
    answers:
      - match: "opens at nine"   # stands in the last message; left out: matches all
        responses:               # in turn, call by call; the last one repeats
          - {status: 429, headers: {retry-after: "2"}, error_code: rate_limit_exceeded}
          - {hang_s: 120}
          - {content: "1. {user}", finish_reason: stop, delay_s: 0.2,
             usage: {prompt_tokens: 20, completion_tokens: 8}}
    faults: {seed: 1, rate_limited: 0.3, retry_after_s: 0.1, server_error: 0.1, hang: 0.05,
             cut: 0.05, refusal: 0.03}

``{user}`` in ``content`` is the last message. The first rule that matches answers. Faults are
drawn for each call from the seed, the request's key and the number of its call, so that they are
the same in every process; ``cut`` and ``refusal`` depend on the key alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator

from polyray.config import Settings, validated
from polyray.errors import InputError, Problem
from polyray.files import resolve
from polyray.llm.outcomes import Call, Reply, of_body, of_status
from polyray.llm.settings import ScriptedProvider

__all__ = [
    "Faults",
    "Response",
    "Rule",
    "Script",
    "ScriptedWorker",
    "completion",
    "read_script",
]


class Usage(Settings):
    """Token counts as a server gives them."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class Response(Settings):
    """One answer or fault. Without ``usage`` the answer has no token counts."""

    status: int = 200
    content: str | None = None
    finish_reason: str | None = "stop"
    refusal: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    error_code: str | None = None
    body: str | None = None
    usage: Usage | None = None
    delay_s: float | None = Field(default=None, ge=0)
    hang_s: float | None = Field(default=None, ge=0)


class Rule(Settings):
    """What calls whose last message holds ``match`` are answered."""

    match: str = ""
    responses: tuple[Response, ...] = Field(min_length=1)


class Faults(Settings):
    """Shares of calls that go wrong, drawn one after the other in this order."""

    seed: int = 0
    rate_limited: float = Field(default=0.0, ge=0, le=1)
    retry_after_s: float | None = None
    server_error: float = Field(default=0.0, ge=0, le=1)
    hang: float = Field(default=0.0, ge=0, le=1)
    cut: float = Field(default=0.0, ge=0, le=1)
    refusal: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _shares(self) -> Faults:
        if sum((self.rate_limited, self.server_error, self.hang, self.cut, self.refusal)) > 1:
            raise ValueError("the shares of faults add up to more than 1")
        return self


class Script(Settings):
    """All of a script file."""

    delay_s: float = Field(default=0.0, ge=0)
    answers: tuple[Rule, ...] = Field(min_length=1)
    faults: Faults = Faults()

    def response(self, call: Call) -> Response:
        """What this call gets."""
        if (fault := self._fault(call)) is not None:
            return fault
        user = _last_message(call)
        for rule in self.answers:
            if rule.match in user:
                chosen = rule.responses[min(call.turn, len(rule.responses) - 1)]
                if chosen.content is None:
                    return chosen
                told = chosen.content.replace("{user}", user)
                return chosen.model_copy(update={"content": told})
        return Response(status=400, error_code="no_rule_matches")

    def _fault(self, call: Call) -> Response | None:
        faults = self.faults
        passing = _draw(faults.seed, call.key, call.turn)
        asked = {} if faults.retry_after_s is None else {"retry-after": str(faults.retry_after_s)}
        for share, fault in (
            (faults.rate_limited, Response(status=429, headers=asked)),
            (faults.server_error, Response(status=500)),
            (faults.hang, Response(hang_s=1e9)),
        ):
            if passing < share:
                return fault
            passing -= share
        lasting = _draw(faults.seed, call.key, -1)
        if lasting < faults.cut:
            return Response(content="1. The sentence that was not fini", finish_reason="length")
        if lasting - faults.cut < faults.refusal:
            return Response(content=None, refusal="I cannot do that.")
        return None


def _draw(seed: int, key: str, turn: int) -> float:
    digest = hashlib.sha256(f"{seed}\0{key}\0{turn}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _last_message(call: Call) -> str:
    messages = call.body.get("messages") or [{}]
    return str(messages[-1].get("content", ""))


def read_script(path: str) -> Script:
    """Read a script file.

    Raises :class:`~polyray.errors.InputError` where it is not there or not YAML, and
    :class:`~polyray.errors.ConfigError` naming everything in it that is wrong.
    """
    import yaml

    place = resolve(path)
    try:
        loaded = yaml.safe_load(place.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(Problem(path, None, "no such script file", "check the path")) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(Problem(path, None, f"not a YAML script: {error}")) from None
    return validated(Script, loaded if isinstance(loaded, dict) else {}, path)


class ScriptedWorker:
    """Answers calls from a script. Knows no Ray."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self._script = read_script(provider.file)
        self._timeout = provider.timeout_s

    async def open(self) -> None:
        """Nothing to make ready."""

    async def call(self, call: Call) -> Reply:
        """What the script says, after its delay."""
        start = time.perf_counter()
        response = self._script.response(call)
        delay = self._script.delay_s if response.delay_s is None else response.delay_s
        delay = delay if response.hang_s is None else response.hang_s
        if delay >= self._timeout:
            await asyncio.sleep(self._timeout)
            message = f"no answer within {self._timeout:g} s"
            reply = Reply("again", reason="timeout", message=message, perhaps_paid=True)
        else:
            await asyncio.sleep(delay)
            reply = _reply(response)
        return replace(reply, key=call.key, seconds=time.perf_counter() - start)

    async def close(self) -> None:
        """Nothing to let go of."""


def _reply(response: Response) -> Reply:
    if response.body is not None:
        text = response.body
    elif response.status == 200:
        text = json.dumps(completion(response))
    else:
        text = json.dumps({"error": {"code": response.error_code, "message": "scripted"}})
    if response.status == 200:
        return of_body(text)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return of_status(response.status, headers, text)


def completion(response: Response) -> dict[str, Any]:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": response.content, "refusal": response.refusal}
    made: dict[str, Any] = {
        "choices": [{"index": 0, "message": message, "finish_reason": response.finish_reason}]
    }
    if response.usage is not None:
        made["usage"] = response.usage.model_dump()
    return made
