"""The query server: where people's questions come in, on a queue group of all scorers."""

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import InitVar, dataclass

from fairlead_bus import Asked, Bus, Rejected
from fairlead_bus.pace import LinePace
from fairlead_contracts import subjects
from fairlead_contracts.base.tokens import NO_NAME, decode_token
from fairlead_scorer.query.past_answers import TOO_MANY, PastAnswers
from fairlead_scorer.query.questions import Questions
from fairlead_scorer.report.record import ScorerRecord

GROUP = "scorer"
_BURST_SECONDS = 10
_MILLISECONDS_A_SECOND, _MILLISECONDS_AT_ONCE = 100.0, 2000
"""Milliseconds of a processor that answers to one tenant may take, in the long run and after a rest. Most answers take
a few; among ten thousand tenants some take hundreds, in which no decision is made."""


@dataclass(eq=False)
class QueryServer:
    """Hands questions to those who answer them, once there is something to answer from."""

    bus: Bus
    questions: InitVar[Questions]
    """The answers to what is asked of the order."""
    record: ScorerRecord
    why_not: Callable[[], str | None]
    """Gives the reason for which nothing can be answered now; None where it can."""
    a_second: float
    """Questions of one tenant in the long run."""

    def __post_init__(self, questions: Questions) -> None:
        self._pace = LinePace(self.a_second, max(1, int(_BURST_SECONDS * self.a_second)))
        self._time = LinePace(_MILLISECONDS_A_SECOND, _MILLISECONDS_AT_ONCE)
        self._answers: dict[subjects.QuestionKind, Callable[[Asked], Awaitable[bytes]]] = {
            "queue": questions.queue,
            "tenants": questions.tenants,
            "explain": questions.explain,
            "answer": PastAnswers(self.bus).answer,
        }

    async def open(self, until: AsyncExitStack) -> None:
        """Answers until the stack is unwound."""
        for kind in self._answers:
            endpoint = await self.bus.serve(subjects.ask_filter(kind), self._handler(kind), queue=GROUP)
            until.push_async_callback(endpoint.close)

    def _handler(self, kind: subjects.QuestionKind) -> Callable[[Asked], Awaitable[bytes]]:
        async def handle(asked: Asked) -> bytes:
            tenant = asked.subject.rsplit(".", 1)[1]
            begun = time.thread_time()
            try:
                self._check_pace(tenant)
                if kind != "answer":
                    self._check_ready()
                reply = await self._answers[kind](asked)
            except Rejected:
                self.record.answered(kind, "refused")
                raise
            finally:
                # The processor's time: a question that waits for a silent owner takes nobody's.
                self._time.spend(tenant, 1000 * (time.thread_time() - begun))
            self.record.answered(kind, "answered")
            return reply

        return handle

    def _check_pace(self, tenant: str) -> None:
        """Checks the pace before anything is read of a question: a flood of them takes time from decisions."""
        if tenant == NO_NAME:
            return  # a question about all tenants is an operator's
        if rest := self._time.rest(tenant):
            text = f"what {decode_token(tenant)} asks takes a scorer too much time; ask again in {math.ceil(rest)} s"
            raise Rejected(TOO_MANY, text)
        if self._pace.rest(tenant):
            text = f"{decode_token(tenant)} asks more than the {self.a_second:g} questions a second that a tenant may in the long run; ask again later"
            raise Rejected(TOO_MANY, text)
        self._pace.spend(tenant)

    def _check_ready(self) -> None:
        reason = self.why_not()
        if reason is not None:
            raise Rejected(503, f"this scorer cannot answer yet: {reason}")
