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

    def remote(self, calls: Any) -> asyncio.Task[None]:
        return asyncio.create_task(self._fail())

    async def _fail(self) -> None:
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
        pool._under_way[0].discard("b")  # as if it had been answered
        await pool.submit([call("c")])
        actor.broken.set()
        await pool._look_back(0)
        replies = await pool.collect(0.1)
        await pool._look_back(0)
        assert await pool.collect(0.1) == []
        assert pool._under_way == [set()]
        return replies

    replies = asyncio.run(work())
    assert sorted((r.key, r.kind, r.reason) for r in replies) == [
        ("a", "again", "worker_died"),
        ("c", "again", "worker_died"),
    ]


def test_sendings_that_were_answered_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyray.llm.pool._REMEMBERED", 3)

    async def work() -> int:
        pool = RayPool(provider(tmp_path), actors=1, at_once=4)
        pool._actors[0] = Deaf()
        for number in range(20):
            await pool.submit([call(str(number))])
            pool._under_way[0].clear()
        return len(pool._sent[0])

    assert asyncio.run(work()) <= 3
