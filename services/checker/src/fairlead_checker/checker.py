"""The loop: observe what stands, decide what fits, write the answers, remember what was let through."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from fairlead_checker import check_entries
from fairlead_checker.check_entries import Entry
from fairlead_checker.check_traces import CheckTraces
from fairlead_checker.facts import Checked
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_checker.instruments import CheckerInstruments
from fairlead_checker.node_snapshot import NodeSnapshot, StartAnswer
from fairlead_checker.steps import CheckStep, our_checks, step_of
from fairlead_contracts.base.instants import Micros
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


class CheckerRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which a checker answers: its settings, as far as the loop goes by them."""

    strategy: CardStrategy
    hold: Micros
    retry_seconds: int
    retry_longest_seconds: int


class CheckerFacts(Protocol):
    """The facts of a cluster from which answers are made."""

    @property
    def free_capacity(self) -> FreeCapacity:
        """The free capacity of the nodes."""

    @property
    def workloads(self) -> list[Checked]:
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

    async def state(self, workload: Checked, entries: Sequence[Entry]) -> bool:
        """Write states of our checks; returns whether they stand."""

    async def end_wait(self, workload: Checked) -> bool:
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

    workload: Checked
    why: str


class Checker:
    """Answers the checks of one cluster while it leads.

    Args:
        facts: the facts of the cluster.
        writer: the writer of answers.
        rules: the rules by which it answers.
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
        rules: CheckerRules,
        instruments: CheckerInstruments,
        *,
        traces: CheckTraces,
        why_not: Callable[[], str | None],
        clock: Callable[[], Micros],
        wake: asyncio.Event,
    ) -> None:
        self._facts = facts
        self._writer = writer
        self._rules = rules
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
        now, ours = self._clock(), self._facts.checks
        for check in self._facts.unclaimed():
            await self._writer.activate(check.metadata.name, now)
        steps: dict[CheckStep, list[Checked]] = {step: [] for step in CheckStep}
        workloads = self._facts.workloads
        for workload in workloads:
            steps[step_of(workload, ours, now)].append(workload)
        self._forget({one.uid: one for one in workloads})
        # First those that are on their way out: until they are, Kueue may give them quota again.
        await _all(self._put_off(one) for one in steps[CheckStep.SEND_AWAY])
        await _all(self._settle(one) for one in steps[CheckStep.SETTLE])
        due = [
            one
            for one in sorted(steps[CheckStep.ANSWER], key=_turn)
            if self._written.get(one.uid) != one.version
        ]
        held = dict(self._missing([*steps[CheckStep.HOLD], *steps[CheckStep.ANSWER]], now))
        self._instruments.stand(awaiting=len(steps[CheckStep.AWAIT]), held=len(held))
        situation = (self._facts.free_capacity.freed, frozenset(held))
        if due or (steps[CheckStep.AWAIT] and situation != self._tried):
            snapshot = self._snapshot(held, {one.uid: one for one in workloads})
            await self._answer(due, snapshot, ours, now)
            if len(due) <= _AT_ONCE:
                self._tried = situation
                await self._let_in(steps[CheckStep.AWAIT], snapshot)

    def _forget(self, there: Mapping[str, Checked]) -> None:
        for uid, release in list(self._released.items()):
            if uid not in there or there[uid].reserved != release.reserved:
                del self._released[uid]
                self._seen.pop(uid, None)
        for kept in (self._sent, self._written, self._seen):
            for uid in kept.keys() - there.keys():
                del kept[uid]

    # --- who is let through, and for whom room is kept

    def _missing(self, workloads: Iterable[Checked], now: Micros) -> Iterable[tuple[str, Mapping[str, int]]]:
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
            if since + self._rules.hold <= now:
                continue
            seen = self._seen.setdefault(one.uid, {})
            for name, count in self._facts.free_capacity.bound(one).items():
                seen[name] = max(seen.get(name, 0), count)
            missing = {
                pods.pods.name: max(pods.count - seen.get(pods.pods.name, 0), 0) for pods in one.pod_sets
            }
            if any(missing.values()):
                yield one.uid, missing

    def _ours(self, workload: Checked) -> list[CheckState]:
        return our_checks(workload, self._facts.checks)

    def _snapshot(self, held: Mapping[str, Mapping[str, int]], there: Mapping[str, Checked]) -> NodeSnapshot:
        snapshot = NodeSnapshot(self._facts.free_capacity.nodes(), self._facts.flavors, self._rules.strategy)
        for uid, missing in held.items():
            snapshot.reserve_missing(there[uid], missing)
        return snapshot

    async def _answer(
        self, due: list[Checked], snapshot: NodeSnapshot, ours: frozenset[str], now: Micros
    ) -> None:
        writes = []
        for one in due[:_AT_ONCE]:
            release = self._released.get(one.uid)
            if release is None:
                with self._instruments.look_seconds.time():
                    answer = snapshot.fit_now(one)
                snapshot.reserve(answer)
            else:
                # Kueue wrote over our word with an older copy of its own: say it again.
                answer = release.answer
            writes.append(self._say(one, answer, ours, now))
            await asyncio.sleep(0)
        if len(due) > _AT_ONCE:
            self._wake.set()
        await _all(writes)

    async def _say(self, one: Checked, answer: StartAnswer, ours: frozenset[str], now: Micros) -> None:
        if answer.fits:
            self._released.setdefault(one.uid, ReleasedGang(one.reserved or 0, answer, now))
            self._sent.pop(one.uid, None)
            await self._write(one, check_entries.ready(one, ours, answer.why, answer.zone, now))
        else:
            self._sent[one.uid] = ReturnedGang(one, answer.why)
            await self._write(one, check_entries.retry(one, ours, answer.why, now))

    # --- who does not fit

    async def _put_off(self, one: Checked) -> None:
        times = max((check.retry_count or 1 for check in self._ours(one)), default=1)
        # A time that is doubled more often than that is the longest anyway.
        seconds = min(self._rules.retry_seconds * 2 ** min(times - 1, 16), self._rules.retry_longest_seconds)
        ours, now = self._facts.checks, self._clock()
        await self._write(one, check_entries.stay_out(one, ours, self._why(one), seconds, now))

    async def _settle(self, one: Checked) -> None:
        await self._write(one, check_entries.pending(one, self._facts.checks, self._why(one), self._clock()))

    def _why(self, one: Checked) -> str:
        sent = self._sent.get(one.uid)
        return sent.why if sent else ""

    async def _let_in(self, waiting: Iterable[Checked], snapshot: NodeSnapshot) -> None:
        """Puts gangs that fit back into their queues, one by one: quota may still be short for them."""
        writes = []
        for one in sorted(waiting, key=_turn)[:_TRIED]:
            sent = self._sent.get(one.uid)
            if sent is None or self._written.get(one.uid) == one.version:
                continue
            answer = snapshot.fit_now(sent.workload)
            if answer.fits:
                snapshot.reserve(answer)
                writes.append(self._end_wait(one))
            await asyncio.sleep(0)
        await _all(writes)

    async def _end_wait(self, one: Checked) -> None:
        self._written[one.uid] = one.version
        if not await self._writer.end_wait(one):
            del self._written[one.uid]

    async def _write(self, one: Checked, entries: Sequence[Entry]) -> None:
        if self._written.get(one.uid) == one.version:
            return
        self._written[one.uid] = one.version
        if await self._writer.state(one, entries):
            self._instruments.answered(str(entries[0]["state"]))
        else:
            self._written.pop(one.uid, None)


async def _all(writes: Iterable[Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for write in writes:
            group.create_task(write)


def _turn(workload: Checked) -> tuple[int, Micros, str]:
    """A Workload's place among those to answer: by priority, then creation, then uid."""
    return -workload.level, workload.created, workload.uid
