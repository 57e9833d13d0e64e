"""Calls that do not reach an actor are not lost. The actors here are stand-ins without Ray."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from polyray.cluster import quiet_environment
from polyray.llm.outcomes import Call, Reply
from polyray.llm.pool import LlmActor, RayPool
from polyray.llm.settings import ScriptedProvider


@pytest.fixture(autouse=True)
def _before_ray_is_imported() -> None:
    quiet_environment()


def provider(folder: Path) -> ScriptedProvider:
    script = folder / "script.yaml"
    script.write_text("answers: [{responses: [{content: fine}]}]\n", encoding="utf-8")
    return ScriptedProvider(kind="scripted", file=str(script))


def call(key: str) -> Call:
    return Call(key, {"messages": [{"role": "user", "content": "x"}]})


class Deaf:
    """An actor that lives, and to which nothing can be sent."""

    def __init__(self) -> None:
        self.submit = self
        self.broken = asyncio.Event()

    async def remote(self, calls: Any) -> None:
        from ray.exceptions import RayError

        await self.broken.wait()
        raise RayError("not reached")


def test_calls_that_come_before_an_actor_is_ready_wait_for_it(tmp_path: Path) -> None:
    async def work() -> list[Reply]:
        actor = LlmActor(provider(tmp_path), 2)
        early = asyncio.create_task(actor.submit([call("a")]))
        await asyncio.sleep(0.01)
        assert not early.done()
        await actor.open()
        await early
        replies = await actor.collect()
        await actor.close()
        return replies

    assert [(reply.key, reply.kind) for reply in asyncio.run(work())] == [("a", "answer")]


def test_calls_that_do_not_reach_their_actor_come_back(tmp_path: Path) -> None:
    async def work() -> list[Reply]:
        pool = RayPool(provider(tmp_path), actors=1, at_once=4)
        actor = pool._actors[0] = Deaf()
        await pool.submit([call("a"), call("b")])
        assert await pool.collect(0.01) == []
        actor.broken.set()
        replies = await pool.collect(5)
        assert await pool.collect(0.01) == []
        return replies

    replies = asyncio.run(work())
    assert sorted((r.key, r.kind, r.reason) for r in replies) == [
        ("a", "again", "worker_died"),
        ("b", "again", "worker_died"),
    ]


def test_calls_that_came_back_with_a_replaced_actor_do_not_come_back_twice(tmp_path: Path) -> None:
    async def work() -> list[Reply]:
        pool = RayPool(provider(tmp_path), actors=1, at_once=4)
        first = pool._actors[0] = Deaf()
        await pool.submit([call("a")])
        await asyncio.sleep(0)
        # as after a death: the calls are back, and "a" is out again with the next actor
        pool._actors[0] = Deaf()
        first.broken.set()
        return await pool.collect(0.05)

    assert asyncio.run(work()) == []
