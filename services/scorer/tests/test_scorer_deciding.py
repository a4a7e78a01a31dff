"""The content of a decision, when it counts as the same, and how it keeps the payload limit."""

import msgspec
import pytest

from fairlead_contracts.base.instants import HOUR, SECOND, Micros
from fairlead_contracts.messages.state import JobState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Aging
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import ORDER_RULES
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT, DecisionContent, decide, same
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.oracles.waiting import uids
from fairlead_testkit.timing.in_hand import all_steps


def a_single_shard(*jobs: JobState, window: int = 100, cap_hours: float | None = None) -> ScoredPool:
    cache = ClusterCache()
    all_steps(
        cache.adopting(
            a_document(
                shards=1, window=window, aging=Aging(cap_days=None if cap_hours is None else cap_hours / 24)
            ),
            7,
        )
    )
    states: list[State] = [a_pool(), a_queue(), a_queue(name="side"), *jobs]
    all_steps(cache.learning({subject_of(state): state for state in states}))
    return cache.pools["c1/gpu"]


def names(content: DecisionContent) -> dict[str, list[str]]:
    return {heads.queue: [position.id for position in heads.positions] for heads in content.queue_heads}


def test_a_decision_holds_the_heads_of_each_queue_and_says_how_many_wait_behind() -> None:
    jobs = [a_job(f"m{number}", submitted=NOW + number) for number in range(5)]
    content = decide(a_single_shard(*jobs, a_job("s", queue="side"), window=3), 0, NOW)
    assert names(content) == {"main": ["m0", "m1", "m2"], "side": ["s"]}
    assert [heads.waiting for heads in content.queue_heads] == [5, 1]
    assert content.basis.policy == 7
    assert [standing.tenant for standing in content.standings] == ["team-a"]


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "StrictFIFO"])
def test_heads_go_deeper_once_a_job_ended_that_held_more_than_they_ask_for(strategy: str) -> None:
    """Until that is taken. A queue that parks nobody starts them by the order that stands, and small ends are as they were."""
    queue = a_queue(frontend="kueue", strategy=strategy)
    large = a_job("large", gpu=9, phase=Phase.RUNNING)
    small = [a_job(f"s{number}", phase=Phase.RUNNING) for number in range(7)]
    waiting = [a_job(f"m{number:02}", submitted=NOW + number) for number in range(30)]
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(shards=2, window=3), 7))
    facts: list[State] = [a_pool(), queue, large, *small, *waiting]
    all_steps(cache.learning({subject_of(state): state for state in facts}))
    pool = cache.pools["c1/gpu"]
    [shard] = [one for one in range(2) if pool.tenants_of(one)]

    def heads(*jobs: JobState) -> int:
        all_steps(cache.learning({subject_of(job): job for job in jobs}))
        assert shard in pool.dirty
        pool.mark_clean(shard)
        return max(map(len, names(decide(pool, shard, NOW)).values()))

    def as_is(job: JobState, phase: Phase) -> JobState:
        return msgspec.structs.replace(job, phase=phase, rev=job.rev + 1)

    parks = strategy == "BestEffortFIFO"
    assert heads(waiting[0]) == 3
    assert heads(*(as_is(job, Phase.ENDED) for job in small[:3])) == 3
    assert heads(as_is(large, Phase.ENDED)) == (12 if parks else 3)
    assert heads(*(as_is(job, Phase.RUNNING) for job in waiting[:8])) == (6 if parks else 3)
    assert heads(as_is(waiting[8], Phase.RUNNING)) == 3
    assert heads(as_is(small[3], Phase.ENDED)) == 3


def test_heads_are_as_deep_as_ever_once_what_came_free_cannot_be_taken() -> None:
    """What is free in another queue of the pool is no use to those who wait: it would keep them deep for ever."""
    queue = a_queue(frontend="kueue", strategy="BestEffortFIFO")
    large = a_job("large", gpu=9, phase=Phase.RUNNING)
    waiting = [a_job(f"m{number:02}", submitted=NOW + number) for number in range(30)]
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(shards=1, window=3), 7))
    facts: list[State] = [a_pool(), queue, large, *waiting]
    all_steps(cache.learning({subject_of(state): state for state in facts}))
    pool = cache.pools["c1/gpu"]

    def heads(now: Micros) -> int:
        return max(map(len, names(decide(pool, 0, now)).values()))

    assert heads(NOW) == 3
    ended = msgspec.structs.replace(large, phase=Phase.ENDED, rev=large.rev + 1)
    all_steps(cache.learning({subject_of(ended): ended}))
    assert [heads(NOW + at * SECOND) for at in (30, 90, 91, 120)] == [24, 24, 3, 3]


def test_jobs_that_are_larger_than_the_pool_fill_heads_of_their_own_as_long_as_they_are() -> None:
    """A window of them would leave nobody else a level."""
    large = [a_job(f"x{number}", gpu=40, submitted=NOW + number) for number in range(5)]
    small = [a_job(f"m{number}", submitted=NOW + 9 + number) for number in range(3)]
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(window=3, shards=1), 7))
    facts: list[State] = [a_pool(), a_queue(), *large, *small]
    all_steps(cache.learning({subject_of(state): state for state in facts}))

    def heads() -> list[tuple[bool, int, list[str]]]:
        content = decide(cache.pools["c1/gpu"], 0, NOW)
        return [
            (bool(one.flavorless), one.waiting, [position.id for position in one.positions])
            for one in content.queue_heads
        ]

    assert heads() == [(False, 3, ["m0", "m1", "m2"]), (True, 5, ["x0", "x1", "x2"])]
    grown = a_pool(capacity={name: 10 * amount for name, amount in a_pool().capacity.items()}, rev=2)
    all_steps(cache.learning({subject_of(grown): grown}))
    assert heads() == [(False, 8, ["x0", "x1", "x2"])]


@pytest.mark.parametrize("why", ["flavorless", "limited"])
def test_jobs_that_are_passed_by_fill_heads_of_their_own(why: str) -> None:
    jobs = [a_job(f"m{number}", submitted=NOW + number) for number in range(9)]
    pool = a_single_shard(*jobs, window=3)
    before = decide(pool, 0, NOW)
    stuck = [msgspec.structs.replace(job, rev=2, **{why: True}) for job in jobs[:5]]
    content = decide(a_single_shard(*stuck, *jobs[5:], window=3), 0, NOW)
    queue_heads = [
        (bool(one.flavorless), one.waiting, [position.id for position in one.positions])
        for one in content.queue_heads
    ]
    assert queue_heads == [(False, 4, ["m5", "m6", "m7"]), (True, 5, ["m0", "m1", "m2"])]
    assert uids(content.queue_heads[1].positions) == uids(before.queue_heads[0].positions), (
        "they keep their places in the order"
    )
    assert not same(before, content)
    one_left = decide(a_single_shard(jobs[0]), 0, NOW)
    assert not same(one_left, decide(a_single_shard(stuck[0]), 0, NOW)), "nothing but that has changed"


def test_a_job_is_in_line_again_as_soon_as_a_flavor_takes_it() -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_document(shards=1), 7))
    stuck = a_job("a", flavorless=True)

    def flavorless() -> list[bool]:
        return [bool(heads.flavorless) for heads in decide(cache.pools["c1/gpu"], 0, NOW).queue_heads]

    all_steps(cache.learning({subject_of(state): state for state in (a_pool(), a_queue(), stuck)}))
    assert flavorless() == [True]
    taken = msgspec.structs.replace(stuck, rev=2, flavorless=msgspec.UNSET)
    all_steps(cache.learning({subject_of(taken): taken}))
    assert flavorless() == [False]


def test_who_reads_a_decision_tells_the_rules_of_two_releases_apart() -> None:
    assert decide(a_single_shard(a_job()), 0, NOW).basis.rules == ORDER_RULES


def test_keys_that_rise_with_the_clock_are_no_difference_but_positions_are() -> None:
    pool = a_single_shard(a_job("a", submitted=NOW - 9 * HOUR), a_job("b", submitted=NOW), cap_hours=1.0)
    before, after = decide(pool, 0, NOW), decide(pool, 0, NOW + HOUR // 60)
    assert before != after
    assert same(before, after)
    pool.count(msgspec.structs.replace(a_waiting(pool), uid="c", id="c"), ("c1", "gpu"))
    assert not same(before, decide(pool, 0, NOW))


def a_waiting(pool: ScoredPool) -> WaitingJob:
    position = decide(pool, 0, NOW).queue_heads[0].positions[0]
    return WaitingJob(
        uid=position.uid,
        scope=position.scope,
        id=position.id,
        tenant=position.tenant,
        job_class=position.job_class,
        submitted=position.submitted,
        demand=position.demand,
        queue=JobQueue("c1", "main"),
    )


@pytest.mark.parametrize("limit", [4000, 20_000, 60_000])
def test_heads_are_halved_until_the_decision_fits(limit: int) -> None:
    jobs = [a_job(f"job-{number:04}-{'x' * 100}", submitted=NOW + number) for number in range(500)]
    content = decide(a_single_shard(*jobs, window=500), 0, NOW, limit=limit)
    assert content.shortened
    assert len(msgspec.msgpack.encode(content)) <= limit
    assert content.queue_heads[0].waiting == 500
    assert [position.id for position in content.queue_heads[0].positions] == sorted(job.id for job in jobs)[
        : len(content.queue_heads[0].positions)
    ]
    assert not decide(a_single_shard(*jobs, window=500), 0, NOW).shortened


def test_heads_of_jobs_that_ask_for_many_resources_are_measured_too() -> None:
    asked = {f"example.com/one-of-many-resources-{number:04}": 1000 for number in range(1000)}
    jobs = [a_job(f"job-{number:02}", demand=asked, submitted=NOW + number) for number in range(32)]
    content = decide(a_single_shard(*jobs, window=32), 0, NOW)
    assert content.shortened
    assert len(msgspec.msgpack.encode(content)) <= PAYLOAD_LIMIT
    assert [len(heads.positions) for heads in content.queue_heads] == [16]
