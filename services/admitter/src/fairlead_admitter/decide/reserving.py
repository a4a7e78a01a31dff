"""Reserve mode beside a frontend: who heads each pool's line, what was promised to it, and who may pass.

The decision is policy's (`reserve.easy`); here it gets its facts, from the state and from the trail of writes, and is kept
in memory between two turns, also while the lead is in doubt. Nothing of it is stored: who takes over finds the head by
the level that it stands at, and what it promises then is never later than what was promised before (see `reserve.easy`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from fairlead_admitter.decide.frontend_order import FrontendOrder
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.steering import GONE
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.state import JobState, Phase, PoolState, QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band
from fairlead_policy.reserve.easy import recalled, reserve, reserves, timing_of
from fairlead_policy.reserve.reservation import Reservation, ReservationState, ReserveInputs, Timing, Waiting
from fairlead_policy.reserve.shadow import CapacityHold


class ReservedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's queue, as far as it is reserved."""

    pool: str
    queue: str
    capacity: Mapping[str, int]
    timing: Timing
    strict: bool
    bands: Mapping[str, Band]


class ReservationObserver(Protocol):
    """Hears what is decided of reservations, to tell it."""

    def pause(self) -> None:
        """Stands by: what is open may be another's to tell."""

    def go_on(self) -> None:
        """Goes on after a pause in which nobody else has led."""

    def begin_anew(self) -> None:
        """Forgets what is open: another replica may have told of it."""

    def pools(self) -> set[str]:
        """The pools of which something is told."""

    def not_wanted(self, pool: str) -> None:
        """Hears that the policy promises no starts in the pool."""

    def held_back(self, pool: str, why: str) -> None:
        """Hears the reason for which starts cannot be promised although the policy wants them; empty where they can."""

    def decided(self, pool: str, found: Reservation, job_of: Callable[[str], JobState | None]) -> None:
        """Hears the newest decision on the pool's reservation, with the fate of earlier promises and passes."""


class ReservedPool(msgspec.Struct, frozen=True):
    """The memory of a pool's reservation between two turns."""

    standing: ReservationState
    ranked: dict[str, Ranked] = {}
    """The head, a recalled one too, and those that pass: they keep their position though the order may put them out of sight."""
    wake: Micros | None = None


class ReserveDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a pool's reservations, to be remembered and told."""

    wanted: bool = True
    """Whether the policy promises starts there."""
    why_not: str = ""
    """The reason for which none can be promised although the policy wants it."""
    after: ReservedPool | None = None
    """The pool's reservation to be remembered; None for nothing."""
    found: Reservation | None = None
    """The reservation that was decided anew; None where nothing was."""


NOT_WANTED = ReserveDecision(wanted=False)


class Reservations:
    """The promises, pool by pool: remembered between two turns.

    Args:
        record: hears what is decided, to tell it.
        writable: whether levels can be written now: a pass that cannot be given shall not count.
    """

    def __init__(
        self,
        record: ReservationObserver,
        job_of: Callable[[str], JobState | None],
        writable: Callable[[], bool],
    ) -> None:
        self.writable = writable
        self._record, self._job_of = record, job_of
        self._kept: dict[str, ReservedPool] = {}
        self._paused: dict[str, ReservedPool] = {}
        self._epoch: int | None = None

    def lead(self, epoch: int | None) -> None:
        """Leads from now on, or stands by (None): what stands in the frontend counts.

        Where a lead that was in doubt goes on under its epoch, nobody else has led meanwhile (see `bus.Leadership`): what
        was promised and given still counts, and a pass that is due is taken back although no order is known.
        """
        if epoch is None:
            self._paused, self._kept = self._kept, {}
            self._record.pause()
        elif epoch == self._epoch:
            self._kept, self._paused = self._paused, {}
            self._record.go_on()
        else:
            self._epoch, self._kept, self._paused = epoch, {}, {}
            self._record.begin_anew()

    def keep(self, pools: Collection[str]) -> None:
        """Forgets pools that are not there any more, and tells that nothing is promised in them."""
        for pool in (self._kept.keys() | self._record.pools()) - set(pools):
            self._let_go(pool)

    def of(self, pool: str) -> ReservedPool | None:
        """The memory of the pool."""
        return self._kept.get(pool)

    def remember(self, pool: str, decided: ReserveDecision) -> None:
        """Remembers what was decided of the pool."""
        if not decided.wanted:
            self._let_go(pool)
            return
        self._record.held_back(pool, decided.why_not)
        if decided.after is None:
            self._kept.pop(pool, None)
        else:
            self._kept[pool] = decided.after
        if decided.found is not None:
            self._record.decided(pool, decided.found, self._job_of)

    def _let_go(self, pool: str) -> None:
        self._kept.pop(pool, None)
        self._record.not_wanted(pool)

    def wake_in(self, now: Micros) -> float | None:
        """Seconds until a pass must be taken back or a promise be kept; None where nothing is due.

        What was due before now was looked at by the turn that is just over.
        """
        due = [kept.wake for kept in self._kept.values() if kept.wake is not None and kept.wake > now]
        return (min(due) - now) / SECOND if due else None


class ReservePlanner:
    """Plans one pool's reservation at one instant. Pure.

    Args:
        writable: whether levels can be written now.
    """

    def __init__(
        self, facts: ClusterFacts, expectations: Expectations, kept: ReservedPool | None, *, writable: bool
    ) -> None:
        self._facts, self._kept, self._writable = facts, kept, writable
        self._frontend = FrontendOrder(facts, expectations)

    def line(
        self,
        pool: str,
        queues: Sequence[QueueState],
        document: PolicyDocument,
        class_bands: Sequence[ClassBand],
    ) -> ReservedQueue | ReserveDecision:
        """The pool's line, if starts are promised there; else whether the policy wants them, and why they cannot be."""
        if not reserves(document, pool):
            return NOT_WANTED
        stated = {queue.pool: self._facts.pools.get(queue.pool) for queue in queues}
        why = why_not(queues, [found for found in stated.values() if found is not None])
        if why:
            return ReserveDecision(why_not=why)
        [queue] = queues
        [found] = stated.values()
        return ReservedQueue(
            pool=pool,
            queue=queue.name,
            capacity={} if found is None else found.capacity,
            timing=timing_of(document),
            strict=document.class_mode == "strict",
            bands={class_band.job_class or "": class_band.band for class_band in class_bands},
        )

    def arrange(
        self, line: ReservedQueue, known: Sequence[Ranked], more: int, now: Micros
    ) -> tuple[list[Ranked], ReserveDecision]:
        """The window as the promise wants it, and what is to be remembered.

        Args:
            known: the pool's order as far as it is known, of this queue.
            more: number of positions behind the head that are labelled, too.
        """
        ranked, found = self._decide(line, known, now)
        held = [*found.passing, *([] if found.head is None else [found.head.uid])]
        reach = max((found.order.index(uid) + 1 for uid in held), default=0)
        return [ranked[uid] for uid in found.order[: reach + more]], self._decided(found, ranked)

    def withdraw(self, line: ReservedQueue, now: Micros) -> tuple[list[str], ReserveDecision]:
        """The uids of jobs whose passes are taken back, where no order is known to arrange: time goes on without one."""
        if self._kept is None or not self._kept.standing.passes:
            return [], ReserveDecision(after=self._kept)
        ranked, found = self._decide(line, (), now)
        withdrawn = [uid for uid, one in found.standing.passes.items() if one.withdrawn is not None]
        return withdrawn, self._decided(found, ranked)

    def _decide(
        self, line: ReservedQueue, known: Sequence[Ranked], now: Micros
    ) -> tuple[dict[str, Ranked], Reservation]:
        ranked = {one.job.uid: one for one in [*known, *self._out_of_sight(line, known)]}
        scene = self._scene(line, list(ranked.values()), now)
        found = reserve(scene, self._before(line, scene))
        return ranked, found

    def _out_of_sight(self, line: ReservedQueue, known: Sequence[Ranked]) -> Iterator[Ranked]:
        """Yields jobs that were promised something, and are among no heads of the order any more.

        Where nothing is remembered, each job that carries a level may be one: a predecessor wrote it.
        """
        seen = {one.job.uid for one in known}
        kept = self._kept
        ranked = {} if kept is None else kept.ranked
        for uid in self._frontend.labelled(line.queue, line.bands) if kept is None else ranked:
            job = self._facts.job(uid)
            if uid not in seen and job is not None and job.phase is Phase.WAITING:
                one = ranked.get(uid)
                yield Ranked(GONE, None, job) if one is None else Ranked(one.rank, one.position, job)

    def _before(self, line: ReservedQueue, scene: ReserveInputs) -> ReservationState:
        """The reservation that was decided before."""
        kept = self._kept
        if kept is not None:
            return kept.standing
        return ReservationState(recalled=recalled(scene, self._frontend.labelled(line.queue, line.bands)))

    def _scene(self, line: ReservedQueue, ranked: Sequence[Ranked], now: Micros) -> ReserveInputs:
        return ReserveInputs(
            now=now,
            timing=line.timing,
            writable=self._writable,
            capacity=line.capacity,
            running=[
                CapacityHold(
                    uid=job.uid,
                    demand=job.demand,
                    ends=None if job.ends_by is None else job.ends_by + line.timing.grace,
                )
                for job in self._facts.running.of(line.queue)
            ],
            order=[self._waiting(one.job, strict=line.strict) for one in ranked],
            held=[self._waiting(job, strict=line.strict) for job in self._held()],
            ahead=lambda uid: self._frontend.ahead(uid, line.bands),
        )

    def _held(self) -> Iterator[JobState]:
        """Jobs with a pass that may not start just now."""
        kept = self._kept
        for uid in () if kept is None else kept.standing.passes:
            job = self._facts.job(uid)
            if job is not None and job.phase is Phase.HELD:
                yield job

    def _waiting(self, job: JobState, *, strict: bool) -> Waiting:
        job_class = (self._facts.job_class(job.uid) or "") if strict else ""
        return Waiting(uid=job.uid, demand=job.demand, job_class=job_class, limit=job.run_limit)

    def _decided(self, found: Reservation, ranked: Mapping[str, Ranked]) -> ReserveDecision:
        standing = found.standing
        promised = "" if standing.promise is None else standing.promise.uid
        uids = (*standing.passes, promised, standing.recalled)
        kept = {uid: ranked[uid] for uid in uids if uid in ranked}
        return ReserveDecision(
            after=ReservedPool(standing=standing, ranked=kept, wake=found.wake), found=found
        )


def why_not(queues: Sequence[QueueState], pools: Sequence[PoolState]) -> str:
    """The reason, in words, for which no start can be promised in a pool of one cluster; empty where it can."""
    if len(queues) != 1 or len(pools) != 1:
        return f"the pool has {len(queues)} queues here: reserve mode needs one that is alone"
    if not queues[0].active:
        return f"queue {queues[0].name} starts nothing just now"
    if not pools[0].reservable:
        return (
            pools[0].reservable_why
            or f"queue {queues[0].name} is not known to keep a place for a job that does not fit"
        )
    return ""
