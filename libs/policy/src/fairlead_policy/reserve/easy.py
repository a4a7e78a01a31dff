"""Reserve mode: the first job that does not fit is promised a start, and small ones pass it where they end before.

The frontend starts jobs strictly in order and stops at the first that does not fit: the *head*. It gets a promise, its
*shadow*: by then enough of what runs has ended, every run taken at its limit and grace. A job that fits beside what runs
gets a *pass*, a position before the head, if it has ended by the shadow, or if the head fits beside it then. That is EASY
backfill (Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001), done from
outside, by a writer whose word takes time to arrive. Six things keep the promise where that writer is slow or dies:

- It is made only once the frontend has had nothing before the head for a reaction time: all that started before is known
  then. From there on only a pass can start before it.
- A pass that is given now begins within twice the reaction time, or is taken back by then: once for its arrival, once
  for that of its withdrawal. So it needs `now + 2 * reaction + limit + grace <= shadow`.
- It is given for a demand and a limit: a job that asks for more afterwards loses it, and counts as what it is now.
- It counts as a run from the moment at which it is given: no unit of capacity is given twice. It counts until it is seen
  to run, or surely stands behind the head again.
- When the head starts, the passes that were given for it are taken back, and the next head has no promise before they are.
- One that was not used is not given again for a while: what we think fits may not fit for the frontend.

So no promise breaks by its passes, whenever the writer dies: each is safe by itself at the moment at which it is given.
Two cases are left: a pass that does not fit for the frontend although it fits here, and nobody alive to take it back; and a
job that asks for more after it got its pass, and starts before the withdrawal arrives.

**After a restart** nothing is remembered, and nothing need be. A promise that is made anew is never later than the one
before: what ran then ends by the same instants, and every pass that began since ends by the old shadow or leaves room
for the head beside it. So at the old shadow the head fits, and the new one is the first instant at which it does.

Jobs behind the head may start earlier than without passes, and the head later than it would have: that happens where runs
end before their limits. What is kept is the promise.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.reserve.reservation import (
    Breach,
    BreakCause,
    HeadInPlace,
    NoReservation,
    Pass,
    Promise,
    Reservation,
    ReservationState,
    ReserveInputs,
    Timing,
    Waiting,
    Withdrawal,
)
from fairlead_policy.reserve.shadow import CapacityHold, Shadow, fits, free_of, shadow_of

_BY_ITS_JOB = (Withdrawal.UNUSED, Withdrawal.HELD, Withdrawal.CHANGED)
"""Causes for which a pass is taken back that are its job's, and not the head's."""


def reserves(document: PolicyDocument, pool: str) -> bool:
    """Whether the policy wants reserve mode for a pool."""
    stated = next((one.mode for one in document.pools if one.name == pool), None)
    return (stated or document.mode) == "reserve"


def timing_of(document: PolicyDocument) -> Timing:
    """The reaction times and graces of the policy."""
    stated = document.reserve
    return Timing(
        reaction=round(stated.reaction_seconds * SECOND),
        grace=round(stated.grace_seconds * SECOND),
        rest=round(stated.rest_seconds * SECOND),
    )


def reserve(scene: ReserveInputs, before: ReservationState) -> Reservation:
    """The head, its promise, and who may pass it.

    Args:
        before: the decisions that stand. Passes of jobs that are in neither `order` nor `held` are forgotten.
    """
    return _Deciding(scene, before).reservation()


def recalled(scene: ReserveInputs, stands: Sequence[str]) -> str:
    """The head before a restart: of those that carry a level, in the frontend's order, the first that does not fit; or empty."""
    waiting = {one.uid: one for one in scene.order}
    free = free_of(scene.capacity, scene.running)
    for one in (waiting[uid] for uid in stands if uid in waiting):
        if fits(one.demand, scene.capacity) and not fits(one.demand, free):
            return one.uid
        free.subtract(one.demand)
    return ""


class _Deciding:
    """A decision, made from the facts of an instant and the state before."""

    def __init__(self, scene: ReserveInputs, before: ReservationState) -> None:
        self._scene = scene
        self._now = scene.now
        self._before = before
        self._order = [one for one in scene.order if fits(one.demand, scene.capacity)]
        self._aside = tuple(one.uid for one in scene.order if not fits(one.demand, scene.capacity))
        self._waiting = {one.uid: one for one in self._order}
        self._held = {one.uid for one in scene.held}
        self._jobs = {one.uid: one for one in (*scene.order, *scene.held)}
        self._kept_promise = self._if_still_valid(before.promise)
        self._arranged = self._with_head_in_place()
        self._counted_passes = {uid: one for uid, one in before.passes.items() if uid in self._jobs}
        self._starting, self._head = self._split_at_head()
        self._shadow: Shadow | None = None
        if self._head is not None:
            self._shadow = shadow_of(
                self._head.demand, scene.capacity, self._runs(), self._now, lag=scene.timing.reaction
            )
        self._breach = self._found_breach()
        if self._breach is not None:
            self._kept_promise = None

    def reservation(self) -> Reservation:
        """The decision: promise, passes, order, and what changed."""
        in_place = self._head_in_place()
        promise = self._promised(in_place)
        passes, withdrawn = self._still_passing(promise)
        given = self._new_passes(promise) if promise is not None and self._scene.writable else []
        passes |= {one.uid: one for one in given}
        rested = self._now + self._scene.timing.rest
        standing = ReservationState(
            promise=promise,
            passes=passes,
            resting={uid: until for uid, until in self._before.resting.items() if until > self._now}
            | {one.uid: rested for one in withdrawn if one.withdrawn in _BY_ITS_JOB},
            in_place=in_place,
            recalled=self._still_recalled(promise, in_place),
        )
        return Reservation(
            standing=standing,
            order=self._wanted_order(promise, passes),
            head=self._head,
            shadow=self._shadow,
            why_none=None if promise is not None else self._why_none(),
            given=tuple(given),
            withdrawn=tuple(withdrawn),
            breach=self._breach,
            starting=tuple(one.uid for one in self._starting),
            aside=self._aside,
            wake=self._next_wake(standing),
        )

    def _if_still_valid(self, promise: Promise | None) -> Promise | None:
        """The promise, unless its job waits no more or is of another class now."""
        job = None if promise is None else self._waiting.get(promise.uid)
        return (
            promise
            if promise is not None and job is not None and job.job_class == promise.job_class
            else None
        )

    def _with_head_in_place(self) -> list[Waiting]:
        """The policy's order, with the job that was promised a start before the rest of its class."""
        uid = self._before.recalled if self._kept_promise is None else self._kept_promise.uid
        head = self._waiting.get(uid)
        if head is None:
            return self._order
        rest = [one for one in self._order if one.uid != head.uid]
        at = next((at for at, one in enumerate(rest) if one.job_class == head.job_class), None)
        at = self._order.index(head) if at is None else at
        return [*rest[:at], head, *rest[at:]]

    def _split_at_head(self) -> tuple[list[Waiting], Waiting | None]:
        """The jobs that fit, in order, and the head, which does not. A promised job is the head until it starts."""
        free = free_of(self._scene.capacity, [*self._scene.running, *self._passing_runs()])
        starting: list[Waiting] = []
        promised = "" if self._kept_promise is None else self._kept_promise.uid
        for one in self._arranged:
            if one.uid in self._counted_passes:
                continue
            if one.uid == promised or not fits(one.demand, free):
                return starting, one
            free.subtract(one.demand)
            starting.append(one)
        return starting, None

    def _passing_runs(self) -> list[CapacityHold]:
        return [
            CapacityHold(uid=one.uid, demand=self._jobs[one.uid].demand, ends=self._end_of_pass(one))
            for one in self._counted_passes.values()
        ]

    def _end_of_pass(self, one: Pass) -> Micros | None:
        """The latest instant at which a pass has ended, by what it was given for and by what its job asks now."""
        limit = self._jobs[one.uid].limit
        if limit is None or one.ends is None or one.limit is None:
            return None
        return one.ends + max(0, limit - one.limit)

    def _runs(self) -> list[CapacityHold]:
        """The runs that hold capacity: what runs, passes, and jobs that are about to start."""
        now, timing = self._now, self._scene.timing
        starting = [
            CapacityHold(uid=one.uid, demand=one.demand, ends=timing.latest_end(now, one.limit))
            for one in self._starting
        ]
        return [*self._scene.running, *self._passing_runs(), *starting]

    # --- who was found in front

    def _still_recalled(self, promise: Promise | None, in_place: HeadInPlace | None) -> str:
        """The head as recalled, until it has a promise, or it is known that it had none.

        It had none where runs without an end keep it from one: what began since the promise of a head ends by its shadow
        or leaves room for it. For a reaction time more of them may be seen than that.
        """
        uid = self._before.recalled
        if promise is not None or self._breach is not None:
            return ""
        at_the_head = in_place is not None and in_place.uid == uid
        endless = at_the_head and self._why_none() is NoReservation.ENDLESS
        return "" if endless and self._is_in_place_for_a_reaction(in_place) else uid

    def _is_in_place_for_a_reaction(self, in_place: HeadInPlace | None) -> bool:
        """Whether a head was in place for a reaction time: all that started before it is seen by then."""
        return in_place is not None and self._now >= in_place.since + self._scene.timing.reaction

    # --- the promise

    def _found_breach(self) -> Breach | None:
        lost = self._before.promise
        if lost is not None and lost.uid in self._aside:
            return Breach(lost, BreakCause.CAPACITY)
        promise, head = self._kept_promise, self._head
        if promise is None or head is None:
            return None
        if head.uid != promise.uid:
            return Breach(promise, BreakCause.HIGHER_CLASS)
        # What is seen may be a reaction time old: the head may have started meanwhile.
        late = self._now > promise.shadow + self._scene.timing.reaction
        return Breach(promise, self._cause(promise)) if late else None

    def _cause(self, promise: Promise) -> BreakCause:
        shadow = self._shadow
        if shadow is not None and shadow.overdue:
            return BreakCause.OVERDUE
        if shadow is not None and shadow.at == self._now:
            return BreakCause.NOT_STARTED
        if any(self._scene.capacity.get(name, 0) < amount for name, amount in promise.capacity.items()):
            return BreakCause.CAPACITY
        return BreakCause.OVERTAKEN

    def _head_in_place(self) -> HeadInPlace | None:
        """The head, where nothing stands before it, nor is about to start."""
        if self._head is None or self._starting or self._scene.ahead(self._head.uid) not in ((), frozenset()):
            return None
        known = self._before.in_place
        return (
            known
            if known is not None and known.uid == self._head.uid
            else HeadInPlace(self._head.uid, self._now)
        )

    def _promised(self, in_place: HeadInPlace | None) -> Promise | None:
        """The promise that holds from now on: it only gets earlier."""
        head, shadow = self._head, self._shadow
        if head is None or shadow is None:
            return None
        if self._kept_promise is not None:
            at = self._kept_promise.shadow
            if shadow.at is not None:
                # From then on no pass stands in the head's way, not even one that does not start.
                at = min(at, max([shadow.at, *(one.begins for one in self._counted_passes.values())]))
            return msgspec.structs.replace(self._kept_promise, shadow=at)
        if shadow.at is None or shadow.at <= self._now or not self._is_in_place_for_a_reaction(in_place):
            return None
        return Promise(
            uid=head.uid,
            job_class=head.job_class,
            shadow=shadow.at,
            made=self._now,
            capacity=dict(self._scene.capacity),
        )

    def _why_none(self) -> NoReservation:
        if self._head is None or self._shadow is None:
            return NoReservation.NO_HEAD
        if self._shadow.at is None:
            return NoReservation.OVERDUE if self._shadow.overdue else NoReservation.ENDLESS
        starting = self._starting or self._shadow.at <= self._now
        return NoReservation.STARTING if starting else NoReservation.NOT_IN_PLACE

    # --- passes

    def _still_passing(self, promise: Promise | None) -> tuple[dict[str, Pass], list[Pass]]:
        """The passes that still count, and those of them that are taken back from now on."""
        passes: dict[str, Pass] = {}
        withdrawn: list[Pass] = []
        for uid, one in self._counted_passes.items():
            why = self._why_withdrawn(one, promise)
            if one.withdrawn is None and why is not None:
                passes[uid] = msgspec.structs.replace(one, withdrawn=why)
                withdrawn.append(passes[uid])
            elif one.withdrawn is None or not self._surely_behind(one):
                passes[uid] = one
        return passes, withdrawn

    def _surely_behind(self, one: Pass) -> bool:
        """Whether a pass that was taken back cannot begin any more, and has not begun unseen."""
        ahead = () if self._head is None else self._scene.ahead(self._head.uid)
        settled = self._now > one.begins + self._scene.timing.reaction
        return settled and ahead is not None and one.uid not in ahead

    def _why_withdrawn(self, one: Pass, promise: Promise | None) -> Withdrawal | None:
        given_for = self._before.promise
        if given_for is None or given_for.uid not in self._waiting:
            return Withdrawal.HEAD_GONE
        if promise is None or promise.uid != given_for.uid:
            return Withdrawal.PROMISE_LOST
        if one.uid in self._held:
            return Withdrawal.HELD
        if self._outgrown(one):
            return Withdrawal.CHANGED
        return Withdrawal.UNUSED if self._withdrawal_due(one) <= self._now else None

    def _outgrown(self, one: Pass) -> bool:
        """Whether the job asks for more than its pass was given for; its limit is free if the head fits beside it."""
        demand = self._jobs[one.uid].demand
        larger = any(amount > one.demand.get(name, 0) for name, amount in demand.items())
        return larger or not (one.beside or self._end_of_pass(one) == one.ends)

    def _withdrawal_due(self, one: Pass) -> Micros:
        """The instant at which to take an unused pass back, so that the withdrawal arrives in time."""
        return one.begins - self._scene.timing.reaction

    def _new_passes(self, promise: Promise) -> list[Pass]:
        head, shadow = self._head, self._shadow
        if head is None or shadow is None or shadow.at is None or shadow.at > promise.shadow:
            return []  # it is in danger: nobody passes it any more
        begins = self._now + 2 * self._scene.timing.reaction
        if begins > promise.shadow:
            return []
        free = free_of(self._scene.capacity, self._runs())
        spare = Counter(shadow.spare)
        given = []
        for one in self._arranged[self._arranged.index(head) + 1 :]:
            if not self._may_pass(one, head) or not fits(one.demand, free):
                continue
            ends = self._scene.timing.latest_end(self._now, one.limit)
            beside = ends is None or ends > promise.shadow
            if beside and not fits(one.demand, spare):
                continue
            free.subtract(one.demand)
            if beside:
                spare.subtract(one.demand)
            given.append(
                Pass(
                    uid=one.uid,
                    demand=one.demand,
                    limit=one.limit,
                    given=self._now,
                    begins=begins,
                    ends=ends,
                    beside=beside,
                )
            )
        return given

    def _may_pass(self, one: Waiting, head: Waiting) -> bool:
        resting = self._before.resting.get(one.uid, self._now) > self._now
        return one.job_class == head.job_class and one.uid not in self._counted_passes and not resting

    # --- what is wanted

    def _wanted_order(self, promise: Promise | None, passes: Mapping[str, Pass]) -> tuple[str, ...]:
        uids = [one.uid for one in self._arranged]
        if promise is None:
            return tuple(uids)
        at = uids.index(promise.uid)
        passing = [uid for uid in uids if uid in passes and passes[uid].withdrawn is None]
        first = [uid for uid in uids[:at] if uid not in passing]
        return (*first, *passing, promise.uid, *(uid for uid in uids[at + 1 :] if uid not in passing))

    def _next_wake(self, standing: ReservationState) -> Micros | None:
        timing = self._scene.timing
        due = [self._withdrawal_due(one) for one in standing.passes.values() if one.withdrawn is None]
        due += [
            one.begins + timing.reaction + 1 for one in standing.passes.values() if one.withdrawn is not None
        ]
        if standing.promise is not None:
            due.append(standing.promise.shadow + timing.reaction + 1)
        elif standing.in_place is not None:
            due.append(standing.in_place.since + timing.reaction)
        return min((at for at in due if at > self._now), default=None)
