"""A script served over HTTP, as an OpenAI-compatible server on this machine's loopback.

For trying a job, its limits and its retries without a model, and for tests and benchmarks of the
real HTTP path: ``python -m polyray.llm.server script.yaml --port 8000``. It keeps note of every
call: when it came, what it was answered, how many ran at once.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyray.llm.outcomes import Call
from polyray.llm.scripted import Response, Script, completion, read_script

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["Seen", "ScriptedServer", "served"]

_BACKLOG = 4096


@dataclass(slots=True)
class Seen:
    """One call as the server saw it; ``answered`` only when the answer was written out."""

    key: str
    question: str
    came: float
    status: int = 0
    answered: bool = False
    tokens: int = 0


@dataclass(slots=True)
class ScriptedServer:
    """Answers chat completions from a script and notes every call in ``seen``."""

    script: Script
    seen: list[Seen] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _turns: dict[str, int] = field(default_factory=dict)

    def application(self) -> web.Application:
        """The web application: ``/v1/chat/completions`` and ``/v1/models``."""
        from aiohttp import web

        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_get("/v1/models", self._models)
        return app

    async def _models(self, request: web.Request) -> web.Response:
        from aiohttp import web

        return web.json_response({"object": "list", "data": [{"id": "scripted"}]})

    async def _answer(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._scripted(raw, request.headers)
        finally:
            self._at_once -= 1

    async def _scripted(self, raw: bytes, headers: Mapping[str, str]) -> web.Response:
        from aiohttp import web

        body = json.loads(raw)
        question = hashlib.sha256(json.dumps(body.get("messages")).encode()).hexdigest()
        key = headers.get("X-Client-Request-Id") or hashlib.sha256(raw).hexdigest()
        seen = Seen(key, question, time.monotonic())
        self.seen.append(seen)
        turn = self._turns.get(question, 0)
        self._turns[question] = turn + 1
        response = self.script.response(Call(key, body, turn))
        await asyncio.sleep(self._delay(response))
        seen.status = response.status
        seen.answered = response.status == 200
        if response.usage is not None:
            seen.tokens = response.usage.prompt_tokens + response.usage.completion_tokens
        return web.Response(
            body=_body(response),
            status=response.status,
            headers=response.headers,
            content_type="application/json",
        )

    def _delay(self, response: Response) -> float:
        if response.hang_s is not None:
            return min(response.hang_s, 3600.0)
        return self.script.delay_s if response.delay_s is None else response.delay_s


def _body(response: Response) -> bytes:
    if response.body is not None:
        return response.body.encode()
    if response.status == 200:
        return json.dumps(completion(response)).encode()
    error = {"code": response.error_code, "message": "scripted"}
    return json.dumps({"error": error}).encode()


@contextmanager
def served(app: web.Application, port: int = 0) -> Iterator[str]:
    """Serve in a thread for the length of a block; gives the base URL (``http://.../v1``)."""
    from aiohttp import web

    ready = threading.Event()
    told: dict[str, Any] = {}

    async def main() -> None:
        # A client that gives up ends its call, as far as the count of those at once goes.
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=_BACKLOG)
        await site.start()
        told["loop"], told["end"] = asyncio.get_running_loop(), asyncio.Event()
        told["port"] = runner.addresses[0][1]
        ready.set()
        await told["end"].wait()
        await runner.cleanup()

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            told["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="polyray-llm-server", daemon=True)
    thread.start()
    ready.wait()
    if "error" in told:
        raise told["error"]
    try:
        yield f"http://127.0.0.1:{told['port']}/v1"
    finally:
        told["loop"].call_soon_threadsafe(told["end"].set)
        thread.join()


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted; the first line on standard output is the base URL."""
    parser = argparse.ArgumentParser(prog="python -m polyray.llm.server", description=__doc__)
    parser.add_argument("script")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args(arguments)
    server = ScriptedServer(read_script(given.script))
    with served(server.application(), given.port) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.stderr.write(f"{len(server.seen)} calls, {server.most_at_once} at once at most\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
