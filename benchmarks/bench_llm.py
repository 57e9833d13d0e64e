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
from typing import Any

from benchmarks._measure import Pairs, Row, interleaved, row

LATENCY = 0.5
FEW, MANY = 64, 512
WAVES_FEW, WAVES_MANY = 12, 8
ROUNDS_FEW, ROUNDS_MANY = 3, 5
TARGET_FEW, TARGET_MANY = 0.95, 0.85
TEXT = "Name three things that a traveller to the northern coast should see. Number "

_SCRIPT = {
    "delay_s": LATENCY,
    "answers": [
        {
            "responses": [
                {
                    "content": "1. The lighthouse.\n2. The old harbour.\n3. The dunes.",
                    "usage": {"prompt_tokens": 30, "completion_tokens": 20},
                }
            ]
        }
    ],
}


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The address of a scripted server in another process."""
    script = folder / "script.json"
    script.write_text(json.dumps(_SCRIPT), encoding="utf-8")
    root = Path(__file__).resolve().parents[1]
    paths = [str(root / "platform"), str(root), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "polyray.llm.server", str(script)],
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
        ours, lambda: asyncio.run(_bare(url, calls, MANY)), 1 if quick else ROUNDS_MANY
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

    with tempfile.TemporaryDirectory() as name, _server(Path(name)) as url, started(num_cpus=2):
        folder = Path(name)
        return [
            _few(url, folder, 1, quick),
            _few(url, folder, 2, quick),
            _many(url, folder, 2, quick),
        ]
