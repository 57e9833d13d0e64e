"""Ask an LLM many things at once: never twice, never beyond the limits, nothing lost.

    >>> from polyray.llm.engine import ask
    >>> from polyray.llm.request import Item, messages
    >>> from polyray.llm.settings import LlmSettings
    >>> def shout(item, answer):                       # item.context is there, too
    ...     return answer.content.upper()
    >>> settings = LlmSettings.model_validate({"provider": {
    ...     "kind": "openai", "base_url": "http://127.0.0.1:8000/v1", "model": "m",
    ...     "api_key_env": None}, "limits": {"in_flight": 8}})
    >>> items = [Item("q1", messages("Say hello."), prompt="hello@1")]
    >>> asked = ask(items, settings, "answers.sqlite", parse=shout)       # doctest: +SKIP
    >>> asked["q1"].status, asked["q1"].parsed, asked.report.calls        # doctest: +SKIP
    ('ok', 'HELLO.', 1)

Answers stand in the store (one SQLite file) before anybody sees them; a second start takes them
from there and asks only for what is missing. With ``actors: 0`` this process sends; otherwise Ray
actors do, and this process decides what goes out and writes the store.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from polyray.llm.driver import Driver, questions_of
from polyray.llm.outcome import Outcome, Parse, Report, judged, plain_text
from polyray.llm.pool import open_pool
from polyray.llm.prices import Estimate, check_prices
from polyray.llm.request import Item
from polyray.llm.settings import LlmSettings
from polyray.llm.store import Store

if TYPE_CHECKING:
    from polyray.llm.trace import CallTraces
    from polyray.tracking import Tracker

__all__ = ["Asked", "Item", "Outcome", "Report", "answers", "ask", "estimate"]

Progress = Callable[[Report], None]


class Asked(dict[str, Outcome]):
    """Item id -> outcome, in the order of the items; ``report`` has the figures."""

    report: Report


def ask(
    items: Sequence[Item],
    settings: LlmSettings,
    store_path: str | Path,
    parse: Parse = plain_text,
    progress: Progress | None = None,
    tracker: Tracker | None = None,
) -> Asked:
    """Ask for every item and wait for the end of all.

    ``parse(item, answer)`` makes the value of an answer or raises
    :class:`~polyray.llm.parsing.ParseError`; then a new sample is asked for, as often as the
    settings say, and after that the item is ``missing`` with the reason and the raw text. Where the
    settings ask for traces, they go to the open ``tracker``.

    Raises :class:`~polyray.llm.outcome.JobStopped` (spent quota, wrong key, unknown model),
    :class:`~polyray.errors.BudgetExceeded`, :class:`~polyray.errors.ConfigError` and
    :class:`~polyray.errors.MissingPrerequisite`; what was answered before is kept.
    """
    reports = [Report()]
    found: dict[str, Outcome] = {}

    def note(report: Report) -> None:
        reports[0] = report
        if progress is not None:
            progress(report)

    for name, outcome in answers(items, settings, store_path, parse, note, tracker):
        found[name] = outcome
    asked = Asked((item.id, found[item.id]) for item in items)
    asked.report = reports[0]
    return asked


def answers(
    items: Sequence[Item],
    settings: LlmSettings,
    store_path: str | Path,
    parse: Parse = plain_text,
    progress: Progress | None = None,
    tracker: Tracker | None = None,
) -> Iterator[tuple[str, Outcome]]:
    """Like :func:`ask`, giving ``(id, outcome)`` as they come.

    Leaving the loop early ends the job; what is under way gets a second to come in.
    """
    check_prices(settings)
    with ExitStack() as stack:
        store = stack.enter_context(Store(store_path))
        log = None
        if settings.trace and tracker is not None:
            from polyray.llm.trace import CallTraces

            log = CallTraces(tracker)
            stack.callback(log.close)
        job = _Job(items, settings, store, parse, log)
        if job.driver.recall() and settings.actors:
            from polyray.cluster import started

            stack.enter_context(started())
        stack.callback(job.end)
        job.start()
        while True:
            event = job.events.get()
            if event is None:
                break
            if isinstance(event, Report):
                if progress is not None:
                    progress(event)
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event


class _Job:
    """A driver in a thread of its own, so that a caller may have an event loop or none."""

    def __init__(
        self,
        items: Sequence[Item],
        settings: LlmSettings,
        store: Store,
        parse: Parse,
        log: CallTraces | None,
    ) -> None:
        self.events: queue.SimpleQueue[tuple[str, Outcome] | Report | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._pool = open_pool(settings)
        self.driver = Driver(
            items,
            settings,
            store,
            self._pool,
            parse,
            lambda name, outcome: self.events.put((name, outcome)),
            self.events.put,
            log,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="polyray-llm", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Send nothing more and wait for the thread."""
        if self._loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # The loop has come to its end by itself.
                self._loop.call_soon_threadsafe(self.driver.quit)
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_fast_loop()) as runner:
                runner.run(self._main())
        except BaseException as error:
            self.events.put(error)
        self.events.put(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self.driver.run()
        finally:
            await self._pool.close()


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which Ray's own actors run on, too; Python's where it is not."""
    try:
        import uvloop
    except ImportError:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


def estimate(
    items: Sequence[Item],
    settings: LlmSettings,
    store_path: str | Path | None = None,
    parse: Parse = plain_text,
) -> Estimate:
    """What :func:`ask` would take for these items, without a call: for ``--dry-run``.

    Answers that the store already holds are taken off.
    """
    questions = questions_of(items, settings)
    known = {}
    if store_path is not None and Path(store_path).exists():
        with Store(store_path) as store:
            known = store.answers(questions)
    open_ = []
    for base, question in questions.items():
        usable = [
            item
            for item in question.items
            if any(judged(item, answer, parse).ok for answer in known.get(base, ()))
        ]
        if len(usable) < len(question.items):
            open_.append(question.first)
    price = settings.prices.get(settings.provider.model)
    return Estimate.of(open_, len(questions) - len(open_), price)
