"""The loop: observe what stands, decide what fits, write the answers, remember what was let through."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from fairlead_checker import check_entries
from fairlead_checker.check_entries import Entry
from fairlead_checker.facts import CheckedWorkload
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_checker.instruments import CheckerInstruments, CheckTraces
from fairlead_checker.node_snapshot import NodeSnapshot, StartAnswer
from fairlead_checker.settings import CheckerSettings
from fairlead_checker.steps import CheckStep, our_checks, step_of
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_kube.kinds.workloads import AdmissionCheck, CheckState
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_runtime.waiting import wake_or_timeout

_AT_ONCE = 16
"""Answers of one pass: what they lead to is seen to before the next ones."""
_TRIED = 64
"""Gangs out of their queues that are tried when something comes free; those behind them come again by their
time."""
_TICK_SECONDS = 1.0
_IDLE_SECONDS = 30.0


class CheckerFacts(Protocol):
    """The facts of a cluster from which answers are made."""

    @property
    def free_capacity(self) -> FreeCapacity:
        """The free capacity of the nodes."""

    @property
    def workloads(self) -> list[CheckedWorkload]:
        """The Workloads that have checks and are not over."""

    @property
    def flavors(self) -> Mapping[str, ResourceFlavor]:
        """The flavors, by name."""

    @property
    def checks(self) -> frozenset[str]:
        """Names of the checks that we answer."""

    def unclaimed(self) -> list[AdmissionCheck]:
        """Our checks that do not say yet that somebody answers them."""

    def refresh(self) -> None:
        """Take in what changed."""


class Writer(Protocol):
    """A writer of answers into Workloads and checks."""

    async def state(self, workload: CheckedWorkload, entries: Sequence[Entry]) -> bool:
        """Write states of our checks; returns whether they stand."""

    async def end_wait(self, workload: CheckedWorkload) -> bool:
        """Put a Workload back into its queue; returns whether that was done."""

    async def activate(self, name: str, now: Micros) -> None:
        """Say of a check that somebody answers it."""


class ReleasedGang(NamedTuple):
    """A gang that was let through by us."""

    reserved: Micros
    answer: StartAnswer
    at: Micros


class ReturnedGang(NamedTuple):
    """A gang that did not fit: as it stood with its quota, for the labels of its flavors."""

    workload: CheckedWorkload
    why: str


class CheckWrite(NamedTuple):
    """States of our checks that are to be written of a Workload."""

    workload: CheckedWorkload
    entries: Sequence[Entry]


class CheckPlan(msgspec.Struct, kw_only=True):
    """The writes of one pass, and what is remembered of it: decided before the first write."""

    activate: list[str]
    """Checks of ours to be marked active: somebody answers them."""
    on_their_way_out: list[CheckWrite] = []
    """Written first: until they are out, Kueue may give them quota again."""
    answers: list[CheckWrite] = []
    released: dict[str, ReleasedGang] = {}
    """Gangs that are let through, by uid."""
    returned: dict[str, ReturnedGang] = {}
    """Gangs that do not fit, by uid."""
    let_in: list[CheckedWorkload] = []
    """Gangs out of their queues that fit now."""
    awaiting: int = 0
    held: int = 0
    situation: object = None
    """Room by which gangs out of their queues were tried; None where they were not."""
    unanswered: bool = False
    """Whether more wait for an answer than one pass gives."""


class Checker:
    """Answers the checks of one cluster while it leads.

    Args:
        facts: the facts of the cluster.
        writer: the writer of answers.
        settings: the rules by which it answers.
        instruments: counts.
        traces: hears of takeovers.
        why_not: gives the reason for which it may not answer now, or None: it does not lead, or knows too little.
        clock: now.
        wake: set by whoever has news.
    """

    def __init__(
        self,
        facts: CheckerFacts,
        writer: Writer,
        settings: CheckerSettings,
        instruments: CheckerInstruments,
        *,
        traces: CheckTraces,
        why_not: Callable[[], str | None],
        clock: Callable[[], Micros],
        wake: asyncio.Event,
    ) -> None:
        self._facts = facts
        self._writer = writer
        self._settings = settings
        self._instruments = instruments
        self._traces = traces
        self._why_not = why_not
        self._clock = clock
        self._wake = wake
        self._answers = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forgets what was answered: what another leader did meanwhile stands in the Workloads."""
        self._released: dict[str, ReleasedGang] = {}
        self._sent: dict[str, ReturnedGang] = {}
        self._written: dict[str, str] = {}
        """Version of each Workload, by uid, that was answered: until a newer one is seen, nothing else is
        written of it."""
        self._seen: dict[str, dict[str, int]] = {}
        """Largest number of pods that were seen on nodes, by uid and pod set."""
        self._tried: object = None
        """Room that was free, and kept, when the Workloads out of their queues were last tried."""

    async def run(self) -> None:
        """Runs until cancelled."""
        self._wake.set()
        while True:
            busy = bool(self._sent or self._released)
            await wake_or_timeout(self._wake, _TICK_SECONDS if busy else _IDLE_SECONDS)
            self._facts.refresh()
            if self._may_answer():
                await self._pass()
            else:
                self._begin_anew()

    def _may_answer(self) -> bool:
        answered, self._answers = self._answers, self._why_not() is None
        if self._answers and not answered:
            self._traces.took_over(sorted(self._facts.workloads, key=_turn))
        return self._answers

    async def _pass(self) -> None:
        workloads = self._facts.workloads
        self._forget({one.uid: one for one in workloads})
        plan = await self._decide(workloads, self._clock())
        self._remember(plan)
        await self._apply(plan)

    async def _decide(self, workloads: Sequence[CheckedWorkload], now: Micros) -> CheckPlan:
        """The plan by what stands now. Others have their turn between two gangs: a look takes milliseconds."""
        ours = self._facts.checks
        steps: dict[CheckStep, list[CheckedWorkload]] = {step: [] for step in CheckStep}
        for workload in workloads:
            steps[step_of(workload, ours, now)].append(workload)
        due = self._unwritten(sorted(steps[CheckStep.ANSWER], key=_turn))
        held = dict(self._missing([*steps[CheckStep.HOLD], *steps[CheckStep.ANSWER]], now))
        plan = CheckPlan(
            activate=[check.metadata.name for check in self._facts.unclaimed()],
            on_their_way_out=[
                *(self._put_off(one, now) for one in self._unwritten(steps[CheckStep.SEND_AWAY])),
                *(
                    CheckWrite(one, check_entries.pending(one, ours, self._why(one), now))
                    for one in self._unwritten(steps[CheckStep.SETTLE])
                ),
            ],
            awaiting=len(steps[CheckStep.AWAIT]),
            held=len(held),
            unanswered=len(due) > _AT_ONCE,
        )
        situation = (self._facts.free_capacity.freed, frozenset(held))
        if due or (steps[CheckStep.AWAIT] and situation != self._tried):
            snapshot = self._snapshot(held, {one.uid: one for one in workloads})
            await self._answer(plan, due[:_AT_ONCE], snapshot, now)
            if not plan.unanswered:
                plan.situation = situation
                await self._let_in(plan, steps[CheckStep.AWAIT], snapshot)
        return plan

    def _remember(self, plan: CheckPlan) -> None:
        for uid, release in plan.released.items():
            self._released.setdefault(uid, release)
            self._sent.pop(uid, None)
        self._sent |= plan.returned
        if plan.situation is not None:
            self._tried = plan.situation

    async def _apply(self, plan: CheckPlan) -> None:
        """Carries the plan out: what is in one list has no order."""
        self._instruments.stand(awaiting=plan.awaiting, held=plan.held)
        for name in plan.activate:
            await self._writer.activate(name, self._clock())
        await _all(map(self._write, plan.on_their_way_out))
        if plan.unanswered:
            self._wake.set()
        await _all(map(self._write, plan.answers))
        await _all(map(self._end_wait, plan.let_in))

    def _unwritten(self, workloads: Iterable[CheckedWorkload]) -> list[CheckedWorkload]:
        """The Workloads of which nothing was written as they stand."""
        return [one for one in workloads if self._written.get(one.uid) != one.version]

    def _forget(self, there: Mapping[str, CheckedWorkload]) -> None:
        for uid, release in list(self._released.items()):
            if uid not in there or there[uid].reserved != release.reserved:
                del self._released[uid]
                self._seen.pop(uid, None)
        for kept in (self._sent, self._written, self._seen):
            for uid in kept.keys() - there.keys():
                del kept[uid]

    # --- who is let through, and for whom room is kept

    def _missing(
        self, workloads: Iterable[CheckedWorkload], now: Micros
    ) -> Iterable[tuple[str, Mapping[str, int]]]:
        """The pods of Workloads let through that have not been on nodes yet, by uid and pod set."""
        for one in workloads:
            release = self._released.get(one.uid)
            if release is None and any(check.state == "Pending" for check in self._ours(one)):
                continue
            since = (
                release.at
                if release
                else max((instant(check.last_transition_time) for check in self._ours(one)), default=0)
            )
            if since + from_seconds(self._settings.hold_seconds) <= now:
                continue
            seen = self._seen.setdefault(one.uid, {})
            for name, count in self._facts.free_capacity.bound(one).items():
                seen[name] = max(seen.get(name, 0), count)
            missing = {
                pods.pods.name: max(pods.count - seen.get(pods.pods.name, 0), 0) for pods in one.pod_sets
            }
            if any(missing.values()):
                yield one.uid, missing

    def _ours(self, workload: CheckedWorkload) -> list[CheckState]:
        return our_checks(workload, self._facts.checks)

    def _snapshot(
        self, held: Mapping[str, Mapping[str, int]], there: Mapping[str, CheckedWorkload]
    ) -> NodeSnapshot:
        strategy = CardStrategy(self._settings.strategy)
        snapshot = NodeSnapshot(self._facts.free_capacity.nodes(), self._facts.flavors, strategy)
        for uid, missing in held.items():
            snapshot.reserve_missing(there[uid], missing)
        return snapshot

    async def _answer(
        self, plan: CheckPlan, due: Iterable[CheckedWorkload], snapshot: NodeSnapshot, now: Micros
    ) -> None:
        """Adds an answer to each gang: one takes its room before the next is tried."""
        ours = self._facts.checks
        for one in due:
            release = self._released.get(one.uid)
            if release is None:
                with self._instruments.look_seconds.time():
                    answer = snapshot.fit_now(one)
                snapshot.reserve(answer)
            else:
                # Kueue wrote over our word with an older copy of its own: say it again.
                answer = release.answer
            if answer.fits:
                plan.released[one.uid] = ReleasedGang(one.reserved or 0, answer, now)
                entries = check_entries.ready(one, ours, answer.why, answer.zone, now)
            else:
                plan.returned[one.uid] = ReturnedGang(one, answer.why)
                entries = check_entries.retry(one, ours, answer.why, now)
            plan.answers.append(CheckWrite(one, entries))
            await asyncio.sleep(0)

    # --- who does not fit

    def _put_off(self, one: CheckedWorkload, now: Micros) -> CheckWrite:
        times = max((check.retry_count or 1 for check in self._ours(one)), default=1)
        # A time that is doubled more often than that is the longest anyway.
        longest = self._settings.retry_longest_seconds
        seconds = min(self._settings.retry_seconds * 2 ** min(times - 1, 16), longest)
        ours, why = self._facts.checks, self._why(one)
        return CheckWrite(one, check_entries.retry(one, ours, why, now, seconds=seconds))

    def _why(self, one: CheckedWorkload) -> str:
        sent = self._sent.get(one.uid)
        return sent.why if sent else ""

    async def _let_in(
        self, plan: CheckPlan, waiting: Iterable[CheckedWorkload], snapshot: NodeSnapshot
    ) -> None:
        """Adds the gangs that may go back into their queues, one by one: quota may still be short for them."""
        returned = self._sent | plan.returned
        for one in sorted(waiting, key=_turn)[:_TRIED]:
            if one.uid not in returned or not self._unwritten([one]):
                continue
            answer = snapshot.fit_now(returned[one.uid].workload)
            if answer.fits:
                snapshot.reserve(answer)
                plan.let_in.append(one)
            await asyncio.sleep(0)

    # --- writes

    async def _end_wait(self, one: CheckedWorkload) -> None:
        self._written[one.uid] = one.version
        if not await self._writer.end_wait(one):
            del self._written[one.uid]

    async def _write(self, write: CheckWrite) -> None:
        one, entries = write
        self._written[one.uid] = one.version
        if await self._writer.state(one, entries):
            self._instruments.answered(str(entries[0]["state"]))
        else:
            self._written.pop(one.uid, None)


async def _all(writes: Iterable[Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for write in writes:
            group.create_task(write)


def _turn(workload: CheckedWorkload) -> tuple[int, Micros, str]:
    """A Workload's place among those to answer: by priority, then creation, then uid."""
    return -workload.level, workload.created, workload.uid
