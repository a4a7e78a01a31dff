"""Objections to jobs, said where the authors of the jobs look.

Level-triggered: each look judges what is queued, and says what has not been said yet, at a bounded pace. An objection
that gets no turn is found again by the next look, so no queue can overflow. Each is said once: the frontend knows an
objection by a name made of its job and its cause, also when another replica says it again. A job that started at once
is judged like one that waits, for a while: its author's next one may not start at once.
"""

import asyncio
import operator
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import NamedTuple, Protocol

import structlog

from fairlead_admitter.errors import (
    AdmitterError,
    FrontendBalkedError,
    FrontendForbiddenError,
    FrontendRefusedError,
)
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.report.objections import OF_STEERED, Objection, Reason, objections_to
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.messages.state import Fault, JobState
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.metrics import Metrics

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 2.0
"""Seconds that an objection must last to be said: the facts of a cluster arrive piece by piece."""
REPEAT_SECONDS = 3600.0
"""Seconds after which an objection is said again: API servers forget Events after an hour, unless told otherwise."""
RAN_LATELY_SECONDS = 600.0
"""Seconds for which a running job is judged: after that it has had its author's attention, or does not need it."""
JUDGE_AGAIN_SECONDS = 30.0
"""Seconds after which jobs are judged again although nothing changed: some have run for long by then."""
PER_LOOK = 10
"""Objections said in one look at most: a wave of them must not be a wave of writes."""
PAUSE_SECONDS = 30.0
"""Seconds of rest after an objection that could not be said: for all jobs where the frontend does not answer, else for
the scope that refused it. A scope's rest doubles with each further failure."""
LONGEST_PAUSE_SECONDS = 960.0

_AT_ONCE = 1000
"""Jobs that are judged before others have their turn: a new policy is a reason to judge all."""

type _Judged = tuple[JobState, list[Objection]]
type _JobObjection = tuple[str, Objection]
"""A job's uid, and what speaks against it."""


class EventSink(Protocol):
    """Says objections where the authors of jobs look."""

    async def object_to(self, job: JobState, objection: Objection) -> None:
        """Says the objection, unless the same one was said before, or the job is gone.

        Raises:
            FrontendRefusedError: the frontend does not take this objection.
            FrontendForbiddenError: the job's scope takes no objection.
            FrontendBalkedError: the job's scope does not take this objection just now, nor perhaps others.
            AdmitterError: the frontend takes no objection just now.
        """

    def objection_to_level(self, level: int, lift: int) -> Objection:
        """The objection to a foreign level: `lift` is its distance above the job's own."""

    def reason_of(self, fault: Fault) -> Reason:
        """The reason of the objection that a fault is."""


class _SilencedScope(NamedTuple):
    """A scope in which nothing may be said, such as a namespace that is on its way out."""

    pause: float
    until: float


@dataclass(eq=False)
class EventRecorder:
    """Judges the live jobs of one cluster while this replica leads."""

    sink: EventSink
    facts: ClusterFacts
    _: KW_ONLY
    rulebook: Callable[[], Rulebook | None]
    """The policy in force; None where none is known, or the cluster is not known completely."""
    leads: Callable[[], bool]
    foreign: Callable[[], Mapping[str, JobState]]
    """The queued jobs that somebody else gave a level, as they were then, by uid."""
    steered: Callable[[], Collection[str]]
    """The queues to which levels are written. What another order than ours goes by is nobody's fault elsewhere."""
    metrics: InitVar[Metrics]
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], Micros] = wall_clock
    """The time, as jobs' times are."""

    def __post_init__(self, metrics: Metrics) -> None:
        self._judged_by: tuple[object, ...] = ()
        self._judged: dict[str, _Judged] = {}
        self._objections: list[_JobObjection] = []
        """The objections to the judged jobs."""
        self._judged_at, self._judge_again = -1, 0.0
        """The number of changes of facts by which they were judged, and when they are judged again in any case."""
        self._found_at: dict[_JobObjection, float] = {}
        self._said: dict[_JobObjection, float] = {}
        self._pause_until = 0.0
        self._silenced: dict[str, _SilencedScope] = {}
        """Silenced scopes, by name."""
        self._count = metrics.counter(
            "objections", "Objections to jobs that were said, by reason.", labels=["reason"]
        )
        self._unsaid = metrics.gauge("objections_unsaid", "Objections to jobs that are not said yet.")
        self._failures = metrics.counter("objections_failed", "Objections that could not be said.")
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Judges jobs that are queued or have just started, and says the objections that are due."""
        rulebook = self.rulebook()
        if not self.leads() or rulebook is None:
            self._found_at.clear()
            self._unsaid.set(0)
            return
        now = self.clock()
        await self._judge(rulebook)
        due = self._objections_due(now)
        self._unsaid.set(len(due))
        if now < self._pause_until:
            return
        for uid, objection in self._next_to_say(due, now):
            if self.leads() and not await self._say(self._judged[uid][0], objection):
                break

    async def _judge(self, rulebook: Rulebook) -> None:
        """Judges each job that changed, or all where policy, queues or pools did."""
        facts = self.facts
        basis = (rulebook, *facts.queues.values(), *facts.pools.values(), *facts.classes)
        if len(basis) != len(self._judged_by) or any(map(operator.is_not, basis, self._judged_by)):
            self._judged_by = basis
            self._judged.clear()
        elif facts.changes == self._judged_at and self.clock() < self._judge_again:
            return
        self._judged_at, self._judge_again = facts.changes, self.clock() + JUDGE_AGAIN_SECONDS
        judged: dict[str, _Judged] = {}
        lately = self.wall() - from_seconds(RAN_LATELY_SECONDS)
        ran = (job for job in facts.running_jobs() if job.started is not None and job.started > lately)
        for number, job in enumerate([*facts.queued_jobs(), *ran]):
            known = self._judged.get(job.uid)
            if known is None or known[0] is not job:
                known = (job, objections_to(job, facts, rulebook, self.sink.reason_of))
            judged[job.uid] = known
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._judged = judged
        self._objections = [(uid, objection) for uid, (_, found) in judged.items() for objection in found]

    def _objections_due(self, now: float) -> list[_JobObjection]:
        steered = self.steered()
        objections = dict.fromkeys(
            (uid, objection)
            for uid, objection in (*self._objections, *self._objections_to_levels())
            if objection.reason not in OF_STEERED or self._judged[uid][0].queue in steered
        )
        self._found_at = {one: self._found_at.get(one, now) for one in objections}
        self._said = {one: at for one, at in self._said.items() if one in objections}
        return [
            one
            for one, since in self._found_at.items()
            if now - since >= SETTLE_SECONDS
            and (one not in self._said or now - self._said[one] >= REPEAT_SECONDS)
        ]

    def _next_to_say(self, due: list[_JobObjection], now: float) -> list[_JobObjection]:
        """The objections to say in this look. Those that failed before come last, to leave others their turns."""
        scopes = {self._judged[uid][0].scope for uid, _ in due}
        self._silenced = {scope: silence for scope, silence in self._silenced.items() if scope in scopes}

        def until(one: _JobObjection) -> float:
            silence = self._silenced.get(self._judged[one[0]][0].scope)
            return 0.0 if silence is None else silence.until

        return sorted((one for one in due if until(one) <= now), key=until)[:PER_LOOK]

    def _objections_to_levels(self) -> Iterator[_JobObjection]:
        """The objections to levels that somebody else wrote."""
        for uid, job in self.foreign().items():
            if uid in self._judged and (lift := job.level - self.facts.unsteered(job)):
                yield uid, self.sink.objection_to_level(job.level, lift)

    async def _say(self, job: JobState, objection: Objection) -> bool:
        """Says one objection; returns whether more can be said just now."""
        silence = self._silenced.get(job.scope)
        if silence is not None and silence.until > self.clock():
            return True  # since this very look
        try:
            await self.sink.object_to(job, objection)
        except FrontendRefusedError as error:
            self._failed(job, error)
        except (FrontendForbiddenError, FrontendBalkedError) as error:
            self._failed(job, error)
            self._silence(job.scope)
            return True
        except AdmitterError as error:
            self._failed(job, error)
            self._pause_until = self.clock() + PAUSE_SECONDS
            return False
        else:
            self._silenced.pop(job.scope, None)
            self._count.labels(objection.reason.value).inc()
            self._log.info(
                "objection", job=job.id, scope=job.scope, reason=objection.reason.value, note=objection.note
            )
        self._said[job.uid, objection] = self.clock()
        return True

    def _silence(self, scope: str) -> None:
        before = self._silenced.get(scope)
        pause = PAUSE_SECONDS if before is None else min(2 * before.pause, LONGEST_PAUSE_SECONDS)
        self._silenced[scope] = _SilencedScope(pause, self.clock() + pause)

    def _failed(self, job: JobState, error: AdmitterError) -> None:
        self._failures.inc()
        self._log.warning("objection not said", job=job.id, scope=job.scope, why=str(error))
