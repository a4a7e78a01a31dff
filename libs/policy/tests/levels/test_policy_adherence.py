"""Figures of admissions and of idle room, against a replay that counts everything one step at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.state import CohortQuota, FlavorQuota, JobState, Phase, QueueState
from fairlead_policy.levels.adherence import (
    HINDERED_SECONDS,
    AdherenceFold,
    Holdings,
    PoolInstant,
    passed_over,
    would_start,
)
from fairlead_testkit.inputs.builders import a_job, a_queue

GPU = "nvidia.com/gpu"
FLAVOR = "any"
QUEUES = ("main", "side")


def a_quota(gpus: int) -> list[FlavorQuota]:
    return [FlavorQuota(flavor=FLAVOR, nominal={GPU: gpus})]


def queues_of(quotas: Sequence[int], *, cohort: str = "") -> list[QueueState]:
    return [
        a_queue(name=name, quotas=a_quota(gpus), cohort=cohort, strategy="BestEffortFIFO")
        for name, gpus in zip(QUEUES, quotas, strict=False)
    ]


def waiting(name: str, gpus: int, queue: str = "main") -> JobState:
    return a_job(name, queue=queue, demand={GPU: gpus})


def started(job: JobState) -> JobState:
    return msgspec.structs.replace(job, phase=Phase.RUNNING, charged={FLAVOR: dict(job.demand)})


def holdings(
    queues: Sequence[QueueState], running: Sequence[JobState], *, strict: Sequence[str] = ()
) -> Holdings:
    held: dict[str, dict[tuple[str, str], int]] = {queue.name: {} for queue in queues}
    for job in running:
        own = held[job.queue]
        own[FLAVOR, GPU] = own.get((FLAVOR, GPU), 0) + job.demand[GPU]
    roots = {queue.cohort for queue in queues} - {""}
    return Holdings(
        queues=queues, cohorts=[CohortQuota(name=name) for name in roots], held=held, strict=frozenset(strict)
    )


def misses(order: Sequence[JobState], admitted: Sequence[JobState], after: Holdings) -> dict[str, int]:
    return {uid.partition("/")[2]: jobs for uid, jobs in passed_over(order, admitted, after)}


def test_the_first_that_fits_is_right_although_a_gang_stands_before_it() -> None:
    gang, small, later = waiting("gang", 4), waiting("small", 1), waiting("later", 1)
    after = holdings(queues_of([4]), [started(small), started(waiting("old", 3))])
    assert misses([gang, small, later], [started(small)], after) == {"small": 0}
    after = holdings(queues_of([4]), [started(later), started(waiting("old", 3))])
    assert misses([gang, small, later], [started(later)], after) == {"later": 1}


def test_behind_a_strict_head_nobody_is_next() -> None:
    gang, small = waiting("gang", 4), waiting("small", 1)
    after = holdings(queues_of([4]), [started(small)], strict=["main"])
    assert misses([gang, small], [started(small)], after) == {"small": 1}
    other = waiting("other", 1, "side")
    after = holdings(queues_of([4, 0], cohort="all"), [started(other)], strict=["main"])
    assert misses([gang, small, other], [started(other)], after) == {"other": 1}  # the gang fits
    held = [started(other), started(waiting("old", 1))]
    after = holdings(queues_of([4, 0], cohort="all"), held, strict=["main"])
    assert misses([gang, small, other], [started(other)], after) == {
        "other": 0
    }  # it does not, and keeps `small` back


def test_quota_that_is_not_lent_is_nobody_elses() -> None:
    """The queue `side` keeps one GPU for itself: who starts there takes nothing from who waits for what is lent."""
    lends_none = FlavorQuota(flavor=FLAVOR, nominal={GPU: 1}, lending={GPU: 0})
    queues = [
        a_queue(name="main", quotas=a_quota(1), cohort="all", strategy="BestEffortFIFO"),
        a_queue(name="side", quotas=[lends_none], cohort="all", strategy="BestEffortFIFO"),
    ]
    a, own, more = waiting("a", 1), waiting("own", 1, "side"), waiting("more", 1, "side")
    assert misses([a, own], [started(own)], holdings(queues, [started(own)])) == {"own": 0}
    both = holdings(queues, [started(own), started(more)])
    assert misses([a, more], [started(more)], both) == {"more": 1}


def test_several_at_once_are_taken_in_the_order() -> None:
    a, b, c, d = (waiting(name, 1) for name in "abcd")
    after = holdings(queues_of([2]), [started(b), started(a)])
    assert misses([a, b, c, d], [started(b), started(a)], after) == {"a": 0, "b": 0}
    after = holdings(queues_of([2]), [started(d), started(a)])
    assert misses([a, b, c, d], [started(d), started(a)], after) == {"a": 0, "d": 2}


def test_who_stands_in_no_order_stands_behind_all() -> None:
    a, deep = waiting("a", 1), waiting("deep", 1)
    assert misses([a], [started(deep)], holdings(queues_of([1]), [started(deep)])) == {"deep": 1}
    assert misses([], [started(deep)], holdings(queues_of([1]), [started(deep)])) == {"deep": 0}


def test_idle_is_what_waiting_jobs_would_take() -> None:
    order = [waiting("gang", 4), waiting("a", 2), waiting("b", 2), waiting("c", 1)]
    free = holdings(queues_of([8]), [started(waiting("old", 5))])
    assert [job.id for job in would_start(order, free)] == ["a", "c"]
    strict = holdings(queues_of([8]), [started(waiting("old", 5))], strict=["main"])
    assert would_start(order, strict) == []


def test_the_kindest_of_the_orders_counts() -> None:
    a, b = waiting("a", 1), waiting("b", 1)
    fold = AdherenceFold()
    after = holdings(queues_of([1]), [started(b)])
    fold.look(PoolInstant(at=1.0, orders=[[a, b], [b, a]], admitted=[started(b)], holdings=after))
    assert (fold.judged, fold.missed) == (1, 0)
    fold.look(PoolInstant(at=2.0, orders=[[a, b]], admitted=[started(b)], holdings=after))
    assert (fold.judged, fold.missed) == (2, 1)


def test_what_is_not_seen_is_not_counted() -> None:
    fold, a = AdherenceFold(), waiting("a", 2)
    free = holdings(queues_of([3]), [])
    fold.look(PoolInstant(at=10.0, orders=[[a]], holdings=free))
    fold.lose_sight()
    fold.look(PoolInstant(at=1000.0, orders=[[a]], holdings=free))
    assert fold.idle == {}
    fold.look(PoolInstant(at=1001.5, orders=[], holdings=free))
    assert fold.idle == {GPU: 3.0}
    fold.look(PoolInstant(at=2000.0, orders=[], holdings=free))
    assert fold.idle == {GPU: 3.0}


def test_a_job_that_no_flavor_takes_counts_from_the_first_look_as_one_that_is_held_back() -> None:
    stuck = msgspec.structs.replace(waiting("stuck", 2), flavorless=True)
    b, fold = waiting("b", 2), AdherenceFold()
    assert misses([stuck, b], [started(b)], holdings(queues_of([2]), [started(b)])) == {"b": 0}
    free = holdings(queues_of([2]), [])
    assert [job.id for job in would_start([stuck, b], free)] == ["b"]
    fold.look(PoolInstant(at=0.0, orders=[[stuck]], holdings=free))
    assert (fold.hindered, fold.stands_idle) == (1, False)
    fold.look(
        PoolInstant(
            at=1.0,
            orders=[[stuck, b]],
            admitted=[started(b)],
            holdings=holdings(queues_of([2]), [started(b)]),
        )
    )
    assert (fold.judged, fold.missed, fold.hindered) == (1, 0, 1)


def test_a_job_that_something_else_holds_back_counts_for_a_while_only() -> None:
    fold, stuck, b = AdherenceFold(), waiting("stuck", 2), waiting("b", 2)
    free = holdings(queues_of([2]), [])
    for second in range(200):
        fold.look(PoolInstant(at=float(second), orders=[[stuck]], holdings=free))
    assert fold.idle == {GPU: 2 * HINDERED_SECONDS}
    assert fold.hindered == 1
    fold.look(
        PoolInstant(
            at=200.0,
            orders=[[stuck, b]],
            admitted=[started(b)],
            holdings=holdings(queues_of([2]), [started(b)]),
        )
    )
    assert (fold.judged, fold.missed) == (1, 0)


# --- against a replay


@dataclass
class Replay:
    """One lone pool, of one resource: everything is counted anew at each step, without any code of ours."""

    quotas: dict[str, int]
    shared: bool
    order: list[JobState] = field(default_factory=list)
    running: list[JobState] = field(default_factory=list)
    judged: int = 0
    missed: int = 0
    idle: float = 0.0

    def room_for(self, job: JobState, running: Sequence[JobState]) -> bool:
        mine = [other for other in running if self.shared or other.queue == job.queue]
        quota = sum(self.quotas.values()) if self.shared else self.quotas[job.queue]
        return sum(other.demand[GPU] for other in mine) + job.demand[GPU] <= quota

    def pass_time(self, seconds: float) -> None:
        running, more = list(self.running), 0
        for job in self.order:
            if self.room_for(job, running):
                running.append(job)
                more += job.demand[GPU]
        self.idle += more * seconds

    def admit(self, job: JobState) -> None:
        filled = list(self.running)
        for other in self.order[: self.order.index(job)]:
            filled += [other] if self.room_for(other, filled) else []
        self.judged += 1
        self.missed += not self.room_for(job, filled)
        self.order.remove(job)
        self.running.append(job)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "admit", "end", "reorder", "rest"]),
        st.integers(0, 10**6),
        st.integers(1, 3),
        st.sampled_from(QUEUES),
        st.integers(0, 4).map(lambda eighths: eighths / 8),  # not so long that anything counts as hindered
    ),
    max_size=40,
)


@given(quotas=st.tuples(st.integers(0, 5), st.integers(0, 5)), shared=st.booleans(), steps=STEPS)
def test_a_whole_history_is_counted_as_a_replay_counts_it(
    quotas: tuple[int, int], shared: bool, steps: list[tuple[str, int, int, str, float]]
) -> None:
    queues = queues_of(quotas, cohort="all" if shared else "")
    replay, fold = Replay(dict(zip(QUEUES, quotas, strict=True)), shared), AdherenceFold()
    now = 0.0

    def see(order: Sequence[JobState], admitted: Sequence[JobState] = ()) -> None:
        running = [started(job) for job in replay.running]
        look = PoolInstant(at=now, orders=[order], admitted=admitted, holdings=holdings(queues, running))
        fold.look(look)

    see([])
    for number, (what, choice, gpus, queue, seconds) in enumerate(steps):
        replay.pass_time(seconds)
        now += seconds
        before = list(replay.order)
        admitted: list[JobState] = []
        if what == "arrive":
            replay.order.insert(choice % (len(before) + 1), waiting(f"j{number}", gpus, queue))
        elif what == "end" and replay.running:
            replay.running.pop(choice % len(replay.running))
        elif what == "reorder" and before:
            replay.order.append(replay.order.pop(choice % len(before)))
        elif what == "admit":
            fitting = [job for job in before if replay.room_for(job, replay.running)]
            if fitting:
                job = fitting[choice % len(fitting)]
                replay.admit(job)
                admitted = [started(job)]
        see(before if admitted else replay.order, admitted)
    assert (fold.judged, fold.missed) == (replay.judged, replay.missed)
    assert fold.idle.get(GPU, 0.0) == pytest.approx(replay.idle)
