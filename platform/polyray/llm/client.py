"""The worker that sends calls to an OpenAI-compatible server. It knows no Ray and no retries.

Everything that a server can do comes back as a :class:`~polyray.llm.outcomes.Reply`; no exception
of the client library, which could hold the key, leaves this module.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from polyray.errors import MissingPrerequisite
from polyray.llm.outcomes import Call, Reply, of_body, of_status
from polyray.llm.settings import OpenAIProvider

__all__ = ["OpenAIWorker", "api_key"]

_KEPT = frozenset({"content-type", "retry-after", "retry-after-ms", "x-request-id"})
"""Headers of an answer that anybody looks at."""
_PLATFORM = ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async")
"""What openai's client tells of this machine with every call, and no server needs."""
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
        self._http = _http_client(provider.longest_answer_bytes)
        self._address = f"{provider.endpoint}/chat/completions"
        unsaid = {f"X-Stainless-{name}": openai.Omit() for name in _PLATFORM}
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=provider.endpoint,
            organization=None,
            project=None,
            max_retries=0,
            timeout=None,
            http_client=self._http,
            default_headers={"Accept-Encoding": "gzip, deflate", **unsaid},
        )

    def __repr__(self) -> str:
        return f"OpenAIWorker({self._provider.model!r} at {self._provider.endpoint})"

    async def open(self) -> None:
        """Make what all connections share; to be called in the loop that sends."""
        self._http.open()

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
        import aiohttp
        import httpx2
        import openai

        headers = {"X-Client-Request-Id": call.key, "X-Stainless-Retry-Count": openai.Omit()}
        try:
            response = await self._client.post(
                self._address,
                cast_to=httpx2.Response,
                body=dict(call.body),
                # All are said: the client makes every default anew, as a deep copy, for each call.
                options={
                    "headers": headers,
                    "idempotency_key": call.key,
                    "params": {},
                    "max_retries": 0,
                    "timeout": None,
                    "follow_redirects": False,
                    "extra_json": None,
                    "security": {"bearer_auth": True},
                    "post_parser": openai.NOT_GIVEN,
                },
            )
            return of_body(self._clean(response.content))
        except openai.APIStatusError as error:
            answer = error.response
            return of_status(answer.status_code, answer.headers, self._clean(answer.content))
        except _TooLong as error:
            return Reply("failed", reason="too_long", message=str(error), perhaps_paid=True)
        except aiohttp.ClientConnectorError as error:
            return _again("connection", error, perhaps_paid=False)
        except aiohttp.ClientPayloadError as error:
            return _again("bad_response", error)
        except (aiohttp.ClientError, openai.OpenAIError, OSError) as error:
            return _again("connection", error)
        except (UnicodeEncodeError, ValueError) as error:
            what = f"the request cannot be written: {type(error).__name__}"
            return Reply("failed", reason="bad_request", message=what)

    def _clean(self, body: bytes) -> bytes:
        """The body without the key, should a server repeat it."""
        return body if self._key == _NO_KEY else body.replace(self._key.encode(), b"***")


class _TooLong(Exception):
    """An answer of more bytes than are allowed, unpacked."""


def _again(reason: str, error: BaseException, *, perhaps_paid: bool = True) -> Reply:
    """A reply for a broken connection: a request that never went out cannot have been billed."""
    where = "while waiting for the answer" if perhaps_paid else "while connecting"
    message = f"{type(error).__name__} {where}"
    return Reply("again", reason=reason, message=message, perhaps_paid=perhaps_paid)


def _http_client(longest: int) -> Any:
    """A client for openai's own that sends by aiohttp.

    openai's aiohttp client goes through all layers of httpx for each call, which takes more of the
    processor than the call itself; this one hands the finished request to aiohttp. It reads at
    most ``longest`` bytes, counted after unpacking, so that no answer fills the memory.
    """
    import aiohttp
    import httpx2

    address, unsent = cache(httpx2.URL), httpx2.ByteStream(b"")

    class Read(httpx2.Response):
        """A response whose body is all there, and goes through none of httpx's decoders."""

        def __init__(self, status: int, headers: Any, body: bytes, request: Any) -> None:
            super().__init__(status, headers=headers, stream=unsent, request=request)
            self._body, self.is_closed = body, True

        @property
        def content(self) -> bytes:
            """The body, unpacked."""
            return self._body

    class Direct(httpx2.AsyncClient):
        """Sends requests by one aiohttp session, which :meth:`open` makes."""

        _session: aiohttp.ClientSession | None = None

        def open(self) -> None:
            """Make the session, with certificates read, for the loop at hand."""
            self._session = aiohttp.ClientSession(
                # How many run at once is the engine's business.
                connector=aiohttp.TCPConnector(limit=0, ssl=httpx2.create_ssl_context()),
                timeout=aiohttp.ClientTimeout(total=None),
            )

        def build_request(self, method: str, url: Any, **given: Any) -> httpx2.Request:
            """The request; of what httpx would add, these requests need nothing."""
            if any(given.get(name) for name in ("params", "data", "files", "json")):
                return super().build_request(method, url, **given)
            headers, body = given.get("headers"), given.get("content")
            request = httpx2.Request(method, address(url), headers=headers, stream=unsent)
            request.extensions = {"url": url, "headers": headers, "body": body}
            return request

        async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
            """Send the request and read all of the answer; errors are aiohttp's."""
            if self._session is None:
                raise RuntimeError("the client is not open")
            url = request.extensions["url"]
            async with self._session.request(
                request.method,
                url,
                data=request.extensions["body"],
                headers=request.extensions["headers"],
                allow_redirects=False,
                proxy=_proxy(url),
            ) as answer:
                body = await _read(answer, longest)
                kept = [(k, v) for k, v in answer.headers.items() if k.lower() in _KEPT]
                return Read(answer.status, kept, body, request)

        async def aclose(self) -> None:
            """Close all connections."""
            if self._session is not None:
                await self._session.close()
            await super().aclose()

    return Direct(timeout=None)


@cache
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address (``HTTPS_PROXY``, ``NO_PROXY``)."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


async def _read(answer: Any, longest: int) -> bytes:
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > longest:
            raise _TooLong(f"an answer of more than {longest} bytes")
        pieces.append(piece)
    return b"".join(pieces)
