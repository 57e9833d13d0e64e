"""The worker that sends calls to an OpenAI-compatible server. It knows no Ray and no retries.

Everything that a server can do comes back as a :class:`~polyray.llm.outcomes.Reply`; no exception
of the client library, which could hold the key, leaves this module.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyray.errors import MissingPrerequisite
from polyray.llm.outcomes import Call, Reply, of_body, of_status
from polyray.llm.settings import OpenAIProvider

__all__ = ["OpenAIWorker", "api_key"]

_NO_KEY = "none"
"""What goes out as a key to servers that want none."""


def api_key(provider: OpenAIProvider) -> str:
    """The key that ``api_key_file`` or ``api_key_env`` names.

    Raises :class:`~polyray.errors.MissingPrerequisite` where there is none.
    """
    if provider.api_key_file is not None:
        path = Path(provider.api_key_file).expanduser()
        try:
            key = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = type(error).__name__
            raise MissingPrerequisite(f"{path}: the API key cannot be read: {why}") from None
    elif provider.api_key_env is not None:
        key = os.environ.get(provider.api_key_env, "").strip()
    else:
        return _NO_KEY
    if not key or not key.isascii() or not key.isprintable():
        place = provider.api_key_file or f"the environment variable {provider.api_key_env}"
        raise MissingPrerequisite(
            f"no usable API key in {place}: put one there, on every machine that sends, "
            "or set provider.api_key_env to null for a server that wants none"
        )
    return key


class OpenAIWorker:
    """Sends calls one by one; many may run at once in one event loop.

    Raises :class:`~polyray.errors.MissingPrerequisite` where the key is not there.
    """

    def __init__(self, provider: OpenAIProvider) -> None:
        import openai

        self._provider = provider
        self._key = api_key(provider)
        self._response_type, http = _http_client(provider.longest_answer_bytes)
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=provider.endpoint,
            organization=None,
            project=None,
            max_retries=0,
            timeout=None,
            http_client=http,
        )

    def __repr__(self) -> str:
        return f"OpenAIWorker({self._provider.model!r} at {self._provider.endpoint})"

    async def call(self, call: Call) -> Reply:
        """Send one call; every end of it is a reply."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self._provider.timeout_s):
                reply = await self._send(call)
        except TimeoutError:
            reply = Reply(
                "again",
                reason="timeout",
                message=f"no answer within {self._provider.timeout_s:g} s",
                perhaps_paid=True,
            )
        return replace(reply, key=call.key, seconds=time.perf_counter() - start)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _send(self, call: Call) -> Reply:
        import openai

        try:
            response = await self._client.post(
                "/chat/completions",
                cast_to=self._response_type,
                body=dict(call.body),
                options={"headers": {"X-Client-Request-Id": call.key}},
            )
            return of_body(self._clean(response.content))
        except openai.APIStatusError as error:
            answer = error.response
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return of_status(answer.status_code, headers, self._clean(answer.content))
        except _AnswerUnreadable as error:
            return Reply("failed", reason=error.reason, message=str(error), perhaps_paid=True)
        except openai.APITimeoutError as error:
            return _unsent_or_lost(error, "timeout")
        except openai.OpenAIError as error:
            return _unsent_or_lost(error, "connection")
        except (UnicodeEncodeError, ValueError) as error:
            what = f"the request cannot be written: {type(error).__name__}"
            return Reply("failed", reason="bad_request", message=what)
        except OSError as error:
            return _unsent_or_lost(error, "connection")

    def _clean(self, body: bytes) -> bytes:
        """The body without the key, should a server repeat it."""
        return body if self._key == _NO_KEY else body.replace(self._key.encode(), b"***")


class _AnswerUnreadable(Exception):
    """An answer that is larger than allowed, or packed in a way that cannot be undone."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _unsent_or_lost(error: BaseException, reason: str) -> Reply:
    """A connection that was never made cannot have been billed; a broken one can."""
    import aiohttp

    seen: BaseException | None = error
    causes = []
    while seen is not None:
        causes.append(seen)
        seen = seen.__cause__
    unsent = any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes)
    if any(isinstance(cause, aiohttp.ClientConnectionError) for cause in causes):
        reason = "connection"
    message = f"{type(causes[-1]).__name__} while {'connecting' if unsent else 'waiting'}"
    return Reply("again", reason=reason, message=message, perhaps_paid=not unsent)


def _http_client(longest: int) -> tuple[Any, Any]:
    """The response type and an aiohttp-backed client that reads at most ``longest`` bytes."""
    import httpx2
    import openai

    class Bounded(httpx2.AsyncByteStream):
        """Unpacks and counts while reading, so that neither size nor packing fills the memory."""

        def __init__(self, inner: Any, encoding: str) -> None:
            self._inner = inner
            self._encoding = encoding

        async def __aiter__(self) -> AsyncIterator[bytes]:
            unpack = _unpacker(self._encoding, longest)
            size = 0
            async for chunk in self._inner:
                data = unpack(chunk)
                size += len(data)
                if size > longest:
                    raise _AnswerUnreadable("too_long", f"an answer of more than {longest} bytes")
                yield data

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        encoding = response.headers.pop("content-encoding", "identity")
        response.stream = Bounded(response.stream, encoding.strip().lower())

    http = openai.DefaultAioHttpClient(
        # 0 is "no limit" to aiohttp: how many run at once is the engine's business.
        limits=httpx2.Limits(max_connections=0, max_keepalive_connections=None),
        timeout=None,
        follow_redirects=False,
        headers={"Accept-Encoding": "gzip, deflate"},
        event_hooks={"response": [bound]},
    )
    return httpx2.Response, http


def _unpacker(encoding: str, longest: int) -> Any:
    if encoding in ("identity", ""):
        return lambda chunk: chunk
    if encoding not in ("gzip", "deflate", "x-gzip"):
        raise _AnswerUnreadable("bad_response", f"an answer packed as {encoding[:20]!r}")
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def unpack(chunk: bytes) -> bytes:
        try:
            return stream.decompress(chunk, longest + 1)
        except zlib.error:
            raise _AnswerUnreadable("bad_response", "an answer that does not unpack") from None

    return unpack
