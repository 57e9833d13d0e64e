"""The LLM engine against what the server's latency allows, and against a bare aiohttp client.

The server is a process of its own that answers every call after a fixed time.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from benchmarks._measure import Pairs, Row, interleaved, row

LATENCY = 0.5
FEW, MANY = 64, 512
WAVES_FEW, WAVES_MANY = 40, 8
ROUNDS_FEW, ROUNDS_MANY = 3, 5
TARGET_FEW, TARGET_MANY = 0.95, 0.85
TEXT = "Name three things that a traveller to the northern coast should see. Number "

_ANSWER = json.dumps(
    {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "1. The lighthouse.\n2. The dunes."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 30, "completion_tokens": 12},
    }
).encode()
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_ANSWER),
    _ANSWER,
)


class _Fixed(asyncio.Protocol):
    """Answers every request the same after the latency, at next to no cost of its own."""

    def __init__(self) -> None:
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at:].partition(b"\r\n")[0])
            if len(self._held) < end + 4 + length:
                return
            self._held = self._held[end + 4 + length :]
            asyncio.get_running_loop().call_later(LATENCY, self._answer)

    def _answer(self) -> None:
        if not self._out.is_closing():
            self._out.write(_RESPONSE)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Fixed, "127.0.0.1", 0, backlog=2 * MANY)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


@contextmanager
def _server() -> Iterator[str]:
    """The address of a server in another process that takes its time and little else."""
    root = Path(__file__).resolve().parents[1]
    paths = [str(root / "platform"), str(root), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.bench_llm"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def _ours(url: str, store: Path, calls: int, in_flight: int, actors: int) -> Any:
    """The report of one run of the engine; every call of it has been answered."""
    from polyray.llm.engine import ask
    from polyray.llm.request import Item, messages
    from polyray.llm.settings import LlmSettings

    settings = LlmSettings.model_validate(
        {
            "provider": {"kind": "openai", "base_url": url, "model": "m", "api_key_env": None},
            "parameters": {"temperature": 0.5, "max_tokens": 64},
            "limits": {"in_flight": in_flight},
            "actors": actors,
        }
    )
    items = [Item(f"q{n}", messages(f"{TEXT}{n}."), prompt="bench@1") for n in range(calls)]
    asked = ask(items, settings, store)
    if asked.report.ok != calls:
        raise AssertionError(f"{asked.report.ok} of {calls} answered: {asked.report.missing}")
    return asked.report


async def _bare(url: str, calls: int, in_flight: int) -> float:
    """Calls a second of a bare aiohttp client with as many calls under way."""
    import aiohttp

    left = iter(range(calls))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def slot() -> None:
            for number in left:
                content = f"{TEXT}{number}."
                body = {
                    "model": "m",
                    "messages": [{"role": "user", "content": content}],
                    "temperature": 0.5,
                    "max_tokens": 64,
                }
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    answer = await response.json()
                    if not answer["choices"][0]["message"]["content"]:
                        raise AssertionError("an empty answer")

        start = time.perf_counter()
        await asyncio.gather(*(slot() for _ in range(in_flight)))
        return calls / (time.perf_counter() - start)


def _few(url: str, folder: Path, actors: int, quick: bool) -> Row:
    calls = FEW * (2 if quick else WAVES_FEW)
    rates, again = [], -1
    for number in range(1 if quick else ROUNDS_FEW):
        store = folder / f"few-{actors}-{number}.sqlite"
        rates.append(_ours(url, store, calls, FEW, actors).rate)
        again = _ours(url, store, calls, FEW, actors).calls
        if again:
            raise AssertionError(f"a rerun made {again} calls")
    ideal = FEW / LATENCY
    return row(
        f"LLM engine, {FEW} in flight, {actors} actor{'s' if actors > 1 else ''}",
        Pairs(tuple(rates), (ideal,) * len(rates)),
        TARGET_FEW,
        other="the ideal: calls in flight / latency of the server",
        unit="calls/s",
        calls=calls,
        latency_s=LATENCY,
        calls_of_a_rerun=again,
    )


def _many(url: str, folder: Path, actors: int, quick: bool) -> Row:
    calls = MANY * (1 if quick else WAVES_MANY)
    numbers = iter(range(1000))

    def ours() -> float:
        store = folder / f"many-{actors}-{next(numbers)}.sqlite"
        return float(_ours(url, store, calls, MANY, actors).rate)

    pairs = interleaved(
        ours,
        lambda: asyncio.run(_bare(url, calls, MANY)),
        1 if quick else ROUNDS_MANY,
        warm_up=False,
    )
    return row(
        f"LLM engine, {MANY} in flight, {actors} actors",
        pairs,
        TARGET_MANY,
        other="bare aiohttp, as many calls in flight, nothing kept",
        unit="calls/s",
        calls=calls,
        latency_s=LATENCY,
    )


def measure(quick: bool = False) -> list[Row]:
    """Calls a second, start-up of the actors apart; a rerun makes none."""
    from polyray.cluster import started

    with tempfile.TemporaryDirectory() as name, _server() as url, started(num_cpus=2):
        folder = Path(name)
        return [
            _few(url, folder, 1, quick),
            _few(url, folder, 2, quick),
            _many(url, folder, 2, quick),
        ]


if __name__ == "__main__":
    asyncio.run(_serve())
