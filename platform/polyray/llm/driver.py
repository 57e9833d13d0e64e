"""The one place that decides: what goes out when, what an answer is worth, when to stop.

It knows neither Ray nor HTTP: calls go to a pool and replies come back. It is the store's only
writer. Every turn of the loop takes in what has come, chooses what goes out, writes both in one
transaction, and only then shows outcomes and sends.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from polyray.errors import PolyrayError
from polyray.files import sha256_text
from polyray.llm.limits import RateLimits, backoff
from polyray.llm.outcome import JobStopped, Outcome, Parse, Report, judged
from polyray.llm.outcomes import Call, Reply
from polyray.llm.pool import Pool
from polyray.llm.prices import Ledger, cost, most_tokens
from polyray.llm.request import Item, Request, body_of, request_of
from polyray.llm.settings import LlmSettings
from polyray.llm.store import Answer, Ended, Sent, Store

__all__ = ["Driver", "questions_of"]

_STOPPED = {
    "quota": "the quota is spent",
    "key": "the API key is refused",
    "model": "the model or the address is not known there",
    "redirect": "the server sends elsewhere; give the final address as provider.base_url",
}
_RECENT = 16
"""Calls that are looked back on to tell a limit on all from bad luck of one."""
_TELL_S = 0.2
"""Seconds between two reports of progress."""
_LOOK_BACK_S = 600.0
"""Seconds whose calls count for the rates of a job that begins."""
_BATCH = 256
"""Calls that are handed out in one turn at most."""


@dataclass(slots=True)
class Question:
    """One distinct request, and the items that wait for its answer.

    ``taken`` are the answers of this run that were of no use to the first item waiting.
    """

    base: str
    first: Request
    items: deque[Item]
    current: Request
    taken: list[Answer] = field(default_factory=list)
    last: Answer | None = None
    retake: int = 0
    failures: int = 0
    turn: int = 0
    called: bool = False


@dataclass(slots=True)
class _UnderWay:
    question: Question
    call: int
    usd: float
    tokens: int


def questions_of(items: Sequence[Item], settings: LlmSettings) -> dict[str, Question]:
    """The distinct requests of the items, by key; equal requests are asked once.

    Raises :class:`~polyray.errors.PolyrayError` for ids that stand twice.
    """
    seen: set[str] = set()
    twice = sorted({item.id for item in items if item.id in seen or seen.add(item.id)})  # type: ignore[func-returns-value]
    if twice:
        raise PolyrayError(f"{len(twice)} item ids stand twice: {', '.join(twice[:10])}")
    found: dict[str, Question] = {}
    for item in items:
        request = request_of(item, settings)
        base = request.key
        if base in found:
            found[base].items.append(item)
        else:
            found[base] = Question(base, request, deque([item]), request)
    return found


class Driver:
    """Runs one job to its end. ``show`` is given each outcome once it is on the disk."""

    def __init__(
        self,
        items: Sequence[Item],
        settings: LlmSettings,
        store: Store,
        pool: Pool,
        parse: Parse,
        show: Callable[[str, Outcome], None],
        tell: Callable[[Report], None] = lambda report: None,
        log: Callable[[Request, Answer], None] | None = None,
    ) -> None:
        self._settings, self._store, self._pool = settings, store, pool
        self._parse, self._show, self._tell, self._log = parse, show, tell, log
        self._questions = questions_of(items, settings)
        self._price = settings.prices.get(settings.provider.model)
        self._prices = {name: (own.input, own.output) for name, own in settings.prices.items()}
        self._ledger = Ledger(settings.budget, store.spent(self._prices))
        self._rates = self._limits()
        self._draw = random.Random()
        self._ready: deque[Question] = deque()
        self._later: list[tuple[float, int, Question]] = []
        self._under_way: dict[str, _UnderWay] = {}
        self._limited: deque[bool] = deque(maxlen=_RECENT)
        self._stop: Exception | None = None
        self._quit = False
        self._run = 0
        self._count = 0
        self._began = time.monotonic()
        self._told = 0.0
        self._shown: list[tuple[str, Outcome]] = []
        self._logged: list[tuple[Request, Answer]] = []
        self._answers: list[Answer] = []
        self._ended: list[Ended] = []
        self._requests: list[tuple[str, str]] = []
        self.report = Report(total=len(items), priced=self._price is not None)

    def _limits(self) -> RateLimits:
        """The rates; what went out just before, in another job on this store, counts."""
        rates = RateLimits(self._settings.limits)
        if rates.hold:
            provider, now = self._settings.provider, time.time()
            earlier = self._store.recent(provider.endpoint, provider.model, now - _LOOK_BACK_S)
            rates.replay([(max(0.0, now - sent), float(tokens)) for sent, tokens in earlier])
        return rates

    def quit(self) -> None:
        """Send nothing more and come to an end; to be called from the loop's own thread."""
        self._quit = True

    def recall(self) -> bool:
        """Take what the store already holds; whether anything is left to ask. Comes first."""
        identity = sha256_text("\n".join(sorted(self._questions)))
        self._run = self._store.start_run(identity)
        self._recall()
        return bool(self._ready)

    async def run(self) -> None:
        """Bring every item to its end, after :meth:`recall`.

        Raises :class:`JobStopped` where the server refuses the whole job, and
        :class:`~polyray.errors.BudgetExceeded` at the budget's end, both after the answers under
        way have been kept.
        """
        opened = False
        deadline = float("inf")
        while True:
            wait = self._release()
            if not opened and self._ready:
                await self._pool.open()
                opened, self._began = True, time.monotonic()
            calls: list[Call] = []
            sent: list[Sent] = []
            if self._stop is None and not self._quit:
                wait = min(wait, self._hand_out(calls, sent))
            elif deadline == float("inf"):
                deadline = time.monotonic() + (
                    1.0 if self._quit else self._settings.provider.timeout_s + 5.0
                )
            # Off the loop's thread: writing to the disk holds up no call under way.
            await asyncio.to_thread(self._commit, sent)
            self._reveal()
            if calls:
                await self._pool.submit(calls)
            if not self._under_way and (self._stop or self._quit or not self._waiting()):
                break
            if (left := deadline - time.monotonic()) <= 0:
                break
            replies = await self._pool.collect(min(wait, left, 1.0))
            for reply in replies:
                self._take_in(reply)
        self.report.usage = self._store.usage(self._questions, self._prices)
        self._progress()
        if self._stop is not None:
            raise self._stop
        if not self._quit:
            self._store.end_run(self._run)

    def _waiting(self) -> bool:
        return bool(self._ready or self._later)

    # What the store already holds.

    def _recall(self) -> None:
        known = self._store.answers(self._questions)
        turns = self._store.turns(self._questions)
        allowed = 1 + self._settings.retries.resamples
        for question in self._questions.values():
            question.turn = turns.get(question.base, 0)
            answers = known.get(question.base, [])
            for answer in answers:
                question.last = answer
                self._serve(question, answer)
            question.retake = 1 + max((answer.retake for answer in answers), default=-1)
            # A run that goes on counts its own answers; a new one gives every item new samples.
            mine = [answer for answer in answers if answer.run == self._run]
            while question.items and len(mine) >= allowed:
                question.last, mine = mine[allowed - 1], mine[allowed:]
                self._give_up(question)
            question.taken = mine if question.items else []
            if question.items:
                question.current = self._next_request(question)
                self._ready.append(question)

    def _next_request(self, question: Question) -> Request:
        if not question.retake:
            return question.first
        cut = sum(answer.finish_reason == "length" for answer in question.taken)
        return question.first.again(question.retake, self._settings.retries.longer**cut)

    # What goes out.

    def _release(self) -> float:
        """Make ready what has waited long enough; seconds until the next one has."""
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._later)[2])
        return self._later[0][0] - now if self._later else float("inf")

    def _hand_out(self, calls: list[Call], sent: list[Sent]) -> float:
        """Choose what goes out; seconds to wait when it is a rate that holds back the rest."""
        limits = self._settings.limits
        limit = limits.in_flight
        if not self._rates.hold:
            # Held ready where they are sent, which bounds how many are at once. With a rate to
            # keep, what is handed out goes out now.
            limit += self._pool.reserve
        while self._ready and len(self._under_way) < limit and len(calls) < _BATCH:
            question = self._ready[0]
            request = question.current
            tokens = most_tokens(request)
            usd = cost(self._price, *tokens) or 0.0
            if not self._ledger.fits(usd):
                if not (self._under_way and self._ledger.could_fit(usd)):
                    self._stop = self._ledger.exceeded()
                return float("inf")
            if (wait := self._rates.wait(sum(tokens))) > 0:
                return wait
            self._ready.popleft()
            self._rates.take(sum(tokens))
            self._ledger.reserve(usd)
            number = self._store.new_calls(1)[0]
            key = question.base if request is question.first else request.key
            self._under_way[key] = _UnderWay(question, number, usd, sum(tokens))
            calls.append(Call(key, body_of(request), question.turn))
            sent.append(Sent(number, key, question.base, usd, time.time()))
            if not question.called:
                self._requests.append((question.base, question.first.canonical()))
            question.turn += 1
            question.called = True
            self.report.calls += 1
        return float("inf")

    # What comes back.

    def _take_in(self, reply: Reply) -> None:
        under_way = self._under_way.pop(reply.key, None)
        if under_way is None:
            return
        question = under_way.question
        self._limited.append(reply.reason == "rate_limited")
        if reply.kind == "answer":
            self._take_answer(under_way, reply)
            return
        self._ledger.settle(under_way.usd, paid=None, perhaps_paid=reply.perhaps_paid)
        self._rates.settle(under_way.tokens, 0 if not reply.perhaps_paid else under_way.tokens)
        self._ended.append(
            Ended(under_way.call, "failed", reply.reason, reply.status, reply.perhaps_paid)
        )
        self.report.failures[reply.reason] = self.report.failures.get(reply.reason, 0) + 1
        if reply.kind == "stop":
            self._stop = self._stop or self._stopped(reply)
        elif reply.kind == "failed":
            self._give_up(question, reply)
            self._go_on(question)
        else:
            self._again(question, reply)

    def _take_answer(self, under_way: _UnderWay, reply: Reply) -> None:
        question = under_way.question
        most = most_tokens(question.current)
        counted = reply.input_tokens is not None and reply.output_tokens is not None
        put_in = most[0] if reply.input_tokens is None else reply.input_tokens
        got_out = most[1] if reply.output_tokens is None else reply.output_tokens
        usd = cost(self._price, put_in, got_out)
        answer = Answer(
            key=reply.key,
            base=question.base,
            retake=question.current.retake,
            run=self._run,
            content=reply.content,
            finish_reason=reply.finish_reason,
            refusal=reply.refusal,
            input_tokens=put_in,
            output_tokens=got_out,
            counted=counted,
            usd=usd,
            seconds=reply.seconds,
        )
        self._ledger.settle(under_way.usd, paid=usd or 0.0, perhaps_paid=True)
        self._rates.settle(under_way.tokens, put_in + got_out)
        self._answers.append(answer)
        self._ended.append(Ended(under_way.call, "answered", "", reply.status, True))
        self.report.input_tokens += put_in
        self.report.output_tokens += got_out
        self.report.tokens_estimated += not counted
        if self._log is not None:
            self._logged.append((question.current, answer))
        question.last = answer
        self._serve(question, answer)
        if question.items:
            question.taken.append(answer)
            if len(question.taken) > self._settings.retries.resamples:
                self._give_up(question)
            question.retake += 1
            self._go_on(question)

    def _serve(self, question: Question, answer: Answer) -> None:
        """Give the answer to all items that can use it."""
        left: deque[Item] = deque()
        for item in question.items:
            outcome = self._judged(item, answer)
            if outcome.ok:
                self._end(question, item, outcome)
            else:
                left.append(item)
        if left and question.items and left[0] is not question.items[0]:
            question.taken = []
        question.items = left

    def _judged(self, item: Item, answer: Answer) -> Outcome:
        """What the answer is worth; a parser that breaks ends the job, and the answer is kept."""
        try:
            return judged(item, answer, self._parse)
        except Exception as error:
            self._stop = self._stop or error
            return Outcome("missing", reason="parser_broke", raw=answer.content)

    def _give_up(self, question: Question, reply: Reply | None = None) -> None:
        """Record the first item waiting as missing; the next one asks anew."""
        item = question.items.popleft()
        outcome = Outcome("missing", reason="none")
        if question.last is not None:
            outcome = self._judged(item, question.last)
        if reply is not None:
            outcome = replace(
                outcome,
                status="missing",
                parsed=None,
                reason=reply.reason,
                detail=reply.message,
                key=question.current.key,
            )
        question.taken = []
        self._end(question, item, outcome)

    def _end(self, question: Question, item: Item, outcome: Outcome) -> None:
        stored = not question.called
        self._shown.append((item.id, replace(outcome, calls=question.turn, stored=stored)))
        self.report.done += 1
        self.report.ok += outcome.ok
        self.report.stored += stored
        if not outcome.ok:
            self.report.missing[outcome.reason] = self.report.missing.get(outcome.reason, 0) + 1

    def _go_on(self, question: Question) -> None:
        if question.items:
            question.failures = 0
            question.current = self._next_request(question)
            self._ready.appendleft(question)

    def _again(self, question: Question, reply: Reply) -> None:
        retries = self._settings.retries
        question.failures += 1
        if question.failures >= retries.attempts:
            self._give_up(question, reply)
            self._go_on(question)
            return
        wait = backoff(retries, question.failures, reply.wait_s, self._draw)
        if reply.wait_s is not None and 2 * sum(self._limited) >= _RECENT:
            # Most calls are turned away: the server means all of them, not this one.
            self._rates.pause(min(reply.wait_s, retries.longest_retry_after_s))
        self._count += 1
        heapq.heappush(self._later, (time.monotonic() + wait, self._count, question))

    def _stopped(self, reply: Reply) -> JobStopped:
        provider = self._settings.provider
        return JobStopped(
            f"{provider.endpoint}, model {provider.model!r}: {_STOPPED[reply.reason]} "
            f"(status {reply.status}: {reply.message}). Nothing more was sent; what was answered "
            "is kept, and a second start asks for the rest"
        )

    # What is kept and shown.

    def _commit(self, sent: Sequence[Sent]) -> None:
        if not (self._answers or self._ended or sent):
            return
        self._store.commit(
            answers=self._answers,
            ended=self._ended,
            sent=sent,
            requests=self._requests,
            run=self._run,
        )
        self._answers, self._ended, self._requests = [], [], []

    def _reveal(self) -> None:
        shown, self._shown = self._shown, []
        for name, outcome in shown:
            self._show(name, outcome)
        logged, self._logged = self._logged, []
        if self._log is not None:
            for request, answer in logged:
                self._log(request, answer)
        if time.monotonic() - self._told >= _TELL_S:
            self._progress()

    def _progress(self) -> None:
        self._told = time.monotonic()
        self.report.seconds = time.monotonic() - self._began
        self.report.usd = self._ledger.usd
        self.report.usd_unanswered = self._ledger.usd_unanswered
        failures, missing = dict(self.report.failures), dict(self.report.missing)
        self._tell(replace(self.report, failures=failures, missing=missing))
