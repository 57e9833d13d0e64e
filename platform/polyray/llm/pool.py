"""Where calls run: in this process, or on Ray actors. Both are handed calls and give replies."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from polyray.errors import PolyrayError
from polyray.llm.outcomes import Call, Reply
from polyray.llm.settings import LlmSettings, Provider

__all__ = ["LocalPool", "Pool", "RayPool", "Worker", "open_pool", "worker_for"]

GATHER_S = 0.01
"""How long an actor waits for further replies before it sends those it has."""
_RESERVE = 16
"""One call in reserve at the actors for so many at once: what goes back and forth takes time."""
_TURNS_TO_SEND = 2
"""Turns of the event loop after which aiohttp has written a request."""
_SWITCH_S = 0.0005
"""Seconds that an actor's event loop may keep the interpreter from Ray's threads."""
_ALLOCATIONS = 50_000
"""New objects of an actor between two rounds of the garbage collector."""
_POLL_S = 5.0
_LOOK_S = 0.5
_REMEMBERED = 1000
"""Sendings to an actor that are kept before those that have been answered are forgotten."""
_DEATHS = 5
"""Deaths of actors, one after the other without a reply between, that end the job."""


class Worker(Protocol):
    """Sends one call and tells what came of it."""

    async def open(self) -> None:
        """Make ready, so that the first call goes out as fast as any other."""
        ...

    async def call(self, call: Call) -> Reply:
        """Every end of a call is a reply; it raises nothing."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def worker_for(provider: Provider) -> Worker:
    """The worker of a provider."""
    if provider.kind == "scripted":
        from polyray.llm.scripted import ScriptedWorker

        return ScriptedWorker(provider)
    from polyray.llm.client import OpenAIWorker

    return OpenAIWorker(provider)


class Pool(Protocol):
    """Takes calls and gives replies, in any order."""

    @property
    def reserve(self) -> int:
        """How many calls beyond those at once it likes to hold, to lose no time between two."""
        ...

    async def open(self) -> None:
        """Make ready; raises what keeps the workers from starting."""
        ...

    async def submit(self, calls: Sequence[Call]) -> None:
        """Start these calls."""
        ...

    async def collect(self, timeout_s: float | None) -> list[Reply]:
        """The replies that have come, waiting for the first of them at most so long."""
        ...

    async def close(self) -> None:
        """End all calls under way and let go of everything."""
        ...


class _Inbox:
    """Replies on their way to the driver."""

    def __init__(self) -> None:
        self._replies: list[Reply] = []
        self._some = asyncio.Event()
        self._error: BaseException | None = None

    def put(self, replies: Sequence[Reply]) -> None:
        self._replies += replies
        self._some.set()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._some.set()

    async def take(self, timeout_s: float | None) -> list[Reply]:
        if not self._some.is_set() and (timeout_s is None or timeout_s > 0):
            try:
                async with asyncio.timeout(timeout_s):
                    await self._some.wait()
            except TimeoutError:
                return []
        taken, self._replies = self._replies, []
        if self._error is not None and not taken:
            raise self._error
        if self._error is None:
            self._some.clear()
        return taken


class LocalPool:
    """Runs at most ``at_once`` calls in the event loop at hand, with one worker; knows no Ray."""

    reserve = 0

    def __init__(self, provider: Provider, at_once: int) -> None:
        self._provider = provider
        self._slots = asyncio.Semaphore(at_once)
        self._worker: Worker | None = None
        self._inbox = _Inbox()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Make the worker."""
        worker = worker_for(self._provider)
        await worker.open()
        self._worker = worker

    async def submit(self, calls: Sequence[Call]) -> None:
        """Start these calls."""
        if self._worker is None:
            raise PolyrayError("the pool is not open")
        for call in calls:
            task = asyncio.create_task(self._run(self._worker, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            # One call goes out before the next is made up. Made up all at once, they would also
            # go out at once, at the end, be answered at once and wait for each other again.
            for _ in range(_TURNS_TO_SEND):
                await asyncio.sleep(0)

    async def _run(self, worker: Worker, call: Call) -> None:
        try:
            async with self._slots:
                reply = await worker.call(call)
        except Exception as error:
            what = f"the worker broke: {type(error).__name__}"
            reply = Reply("again", call.key, "worker", message=what, perhaps_paid=True)
        self._inbox.put([reply])

    async def collect(self, timeout_s: float | None) -> list[Reply]:
        """The replies that have come."""
        return await self._inbox.take(timeout_s)

    async def close(self) -> None:
        """Cancel what is under way and close the connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._worker is not None:
            await self._worker.close()


class LlmActor:
    """A :class:`LocalPool` behind Ray; the class itself knows no Ray."""

    def __init__(self, provider: Provider, at_once: int) -> None:
        self._pool = LocalPool(provider, at_once)
        self._open = asyncio.Event()

    async def open(self) -> None:
        """Make the worker; raises what keeps it from starting."""
        # Ray's own threads bring calls and take replies; they are not to wait for a busy loop.
        sys.setswitchinterval(_SWITCH_S)
        await self._pool.open()
        # What is loaded stays; calls leave little behind that only the collector finds.
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS)
        self._open.set()

    async def submit(self, calls: Sequence[Call]) -> None:
        """Start these calls; Ray may bring them before :meth:`open` has run."""
        await self._open.wait()
        await self._pool.submit(calls)

    async def collect(self) -> list[Reply]:
        """The replies that have come; after some seconds without any an empty list."""
        replies = await self._pool.collect(_POLL_S)
        if replies:
            await asyncio.sleep(GATHER_S)
            replies += await self._pool.collect(0)
        return replies

    async def close(self) -> None:
        """End all calls."""
        await self._pool.close()


class RayPool:
    """Hands calls to Ray actors, each to the one that has least to do. Needs a running Ray.

    Calls of an actor that dies come back as ``worker_died``, perhaps paid, and another actor takes
    its place; Ray itself never repeats a call.
    """

    def __init__(self, provider: Provider, actors: int, at_once: int) -> None:
        actors = min(actors, at_once)
        self._provider = provider
        self.reserve = max(1, at_once // _RESERVE)
        self._shares = [at_once // actors + (n < at_once % actors) for n in range(actors)]
        self._actors: list[Any] = [None] * actors
        self._places = range(actors)
        self._under_way: list[set[str]] = [set() for _ in self._places]
        self._inbox = _Inbox()
        self._pumps: list[asyncio.Task[None]] = []
        self._sent: list[list[tuple[Any, set[str]]]] = [[] for _ in self._places]
        self._deaths = 0

    async def open(self) -> None:
        """Start the actors."""
        for place in range(len(self._actors)):
            self._actors[place] = self._new(place)
        await asyncio.gather(*(self._started(actor) for actor in self._actors))
        self._pumps = [asyncio.create_task(self._pump(n)) for n in range(len(self._actors))]

    def _new(self, place: int) -> Any:
        import ray

        remote = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(LlmActor)
        return remote.remote(self._provider, self._shares[place])

    async def _started(self, actor: Any) -> None:
        from ray.exceptions import RayError

        from polyray.indexes.actors import user_error

        try:
            await actor.open.remote()
        except RayError as error:
            raise user_error(error) from None

    async def submit(self, calls: Sequence[Call]) -> None:
        """Start these calls."""
        shares: dict[int, list[Call]] = {}
        for call in calls:
            # The one with most room: shares differ by one at most, but reserves do not count.
            place = max(self._places, key=lambda n: self._shares[n] - len(self._under_way[n]))
            self._under_way[place].add(call.key)
            shares.setdefault(place, []).append(call)
        for place, share in shares.items():
            if len(self._sent[place]) >= _REMEMBERED:
                self._sent[place] = [one for one in self._sent[place] if self._waiting(place, one)]
            sent = self._actors[place].submit.remote(share)
            self._sent[place].append((sent, {call.key for call in share}))

    def _waiting(self, place: int, sent: tuple[Any, set[str]]) -> set[str]:
        return sent[1] & self._under_way[place]

    async def _look_back(self, place: int) -> None:
        """Calls that never reached their actor, which may live on, come back."""
        from ray.exceptions import RayError

        self._sent[place] = [one for one in self._sent[place] if self._waiting(place, one)]
        sendings = {asyncio.ensure_future(one[0]): one for one in self._sent[place]}
        if not sendings:
            return
        ended, _ = await asyncio.wait(sendings, timeout=_LOOK_S)
        for sending in ended:
            if isinstance(sending.exception(), RayError):
                lost = self._waiting(place, sendings[sending])
                self._under_way[place] -= lost
                self._inbox.put(_died(lost))

    async def _pump(self, place: int) -> None:
        from ray.exceptions import RayError

        while True:
            try:
                replies = await self._actors[place].collect.remote()
            except RayError as error:
                await self._replace(place, error)
                continue
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self._inbox.fail(error)
                return
            if replies:
                self._deaths = 0
                self._under_way[place] -= {reply.key for reply in replies}
                self._inbox.put(replies)
            else:
                await self._look_back(place)

    async def _replace(self, place: int, error: Exception) -> None:
        from ray.exceptions import RayError

        self._deaths += 1
        lost, self._under_way[place] = self._under_way[place], set()
        self._sent[place] = []
        self._inbox.put(_died(lost))
        if self._deaths > _DEATHS:
            self._inbox.fail(error)
            return
        self._actors[place] = self._new(place)
        try:
            await self._started(self._actors[place])
        except RayError:
            # The next turn of the pump meets the same death and counts it.
            await asyncio.sleep(0.2)
        except Exception as other:
            self._inbox.fail(other)

    async def collect(self, timeout_s: float | None) -> list[Reply]:
        """The replies that have come."""
        return await self._inbox.take(timeout_s)

    async def close(self) -> None:
        """End the actors."""
        import ray

        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        for actor in self._actors:
            if actor is not None:
                ray.kill(actor, no_restart=True)


def _died(keys: Iterable[str]) -> list[Reply]:
    told = "the actor that sent it died"
    return [Reply("again", key, "worker_died", message=told, perhaps_paid=True) for key in keys]


def open_pool(settings: LlmSettings) -> LocalPool | RayPool:
    """The pool that the settings ask for; not opened yet."""
    if settings.actors:
        return RayPool(settings.provider, settings.actors, settings.limits.in_flight)
    return LocalPool(settings.provider, settings.limits.in_flight)
