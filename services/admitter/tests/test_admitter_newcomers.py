"""Newcomers, which a plan leaves alone as no decision can have ordered them, and windows for what one end frees."""

from collections.abc import Mapping

from fairlead_admitter.decide.merged_order import MergedHeads, Ranked, take_heads
from fairlead_admitter.decide.newcomers import NEW_SECONDS, Newcomers
from fairlead_admitter.decide.steering import steer
from fairlead_admitter.observe.decision_gate import DecisionOrigin
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts, RunningSizes
from fairlead_contracts.messages.state import JobState, Phase, subject_of
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band
from fairlead_policy.levels.window import Window, WindowSize
from fairlead_policy.snapshot.stated_jobs import JobChange
from fairlead_testkit.inputs.builders import NOW, a_decision, a_job, a_position, a_queue, a_queue_heads

CLASS_BANDS = [ClassBand(band=Band(default=0, lowest=1, highest=1000))]
CARD = 1000


def facts_with(*jobs: JobState) -> ClusterFacts:
    facts = ClusterFacts("c1")
    facts.apply({"queue": a_queue()} | {subject_of(job): job for job in jobs})
    return facts


def test_nothing_is_lifted_over_a_job_that_no_decision_has_ordered() -> None:
    known, newcomer = a_job("b", queue_time=NOW), a_job("a", queue_time=NOW)
    facts = facts_with(known, newcomer)
    window = [Ranked(0, a_position(uid=known.uid), known)]
    assert len(steer(window, facts, ["main"], Expectations(), CLASS_BANDS).writes) == 1
    assert steer(window, facts, ["main"], Expectations(), CLASS_BANDS, newcomers={newcomer.uid}).writes == []


def one_shard(_: JobState) -> int:
    return 0


def test_a_newcomer_is_decided_on_when_its_decision_has_seen_it_or_its_time_is_over() -> None:
    newcomers = Newcomers()
    job = a_job("a")
    newcomers.note([JobChange(None, job)], 10, 0.0, one_shard)
    assert newcomers.undecided([9]) == {job.uid}
    assert newcomers.undecided([10]) == set()
    newcomers.note([], 11, NEW_SECONDS / 2, one_shard)
    assert newcomers.undecided([9]) == {job.uid}
    newcomers.forget_old(NEW_SECONDS)
    assert newcomers.undecided([9]) == set()


def test_a_newcomer_is_held_against_the_decision_of_its_own_shard() -> None:
    newcomers = Newcomers()
    for seq in (10, 11, 12):
        newcomers.note([JobChange(None, a_job(f"at-{seq}"))], seq, 0.0, lambda _: 1)
    assert newcomers.undecided([5, 11]) == {"team-a/at-12"}, "that of the other shard is older"
    newcomers.note([JobChange(None, a_job("other"))], 13, 0.0, one_shard)
    assert newcomers.undecided([5, 12]) == {"team-a/other"}
    newcomers.reshard(one_shard)
    assert newcomers.undecided([11]) == {"team-a/at-12", "team-a/other"}, "another policy, of one shard"


def test_who_starts_or_goes_is_no_newcomer_and_who_only_changes_does_not_become_one() -> None:
    newcomers = Newcomers()
    one, two = a_job("one"), a_job("two")
    newcomers.note([JobChange(None, one), JobChange(None, two)], 10, 0.0, one_shard)
    gone = [JobChange(one, a_job("one", phase=Phase.RUNNING)), JobChange(two, None)]
    newcomers.note(gone, 11, 0.1, one_shard)
    old = a_job("old")
    newcomers.note([JobChange(old, a_job("old", level=7))], 12, 0.2, one_shard)
    assert newcomers.undecided([0]) == set()
    # Evicted and waiting again: no decision knows it as waiting.
    newcomers.note([JobChange(a_job("back", phase=Phase.RUNNING), a_job("back"))], 13, 0.3, one_shard)
    assert newcomers.undecided([12]) == {"team-a/back"}


def window_of(jobs: list[JobState], waiting: int, window_size: WindowSize) -> Window[Ranked]:
    positions = [a_position(uid=job.uid) for job in jobs]
    origins = {job.uid: DecisionOrigin(a_decision(), a_queue_heads()) for job in jobs}
    return take_heads(
        MergedHeads(positions, origins, whole=True), {"main": waiting}, facts_with(*jobs), window_size
    )


def cards(number: int) -> Mapping[str, int]:
    return {"nvidia.com/gpu": number * CARD}


def test_a_window_holds_what_may_start_together_when_one_job_ends() -> None:
    jobs = [a_job(f"j{number:02}", demand=cards(1)) for number in range(20)]

    def size(least: int, most: int, room: int) -> int:
        window_size = WindowSize(least=least, most=most, room=cards(room), together=cards(room))
        return len(window_of(jobs, 100, window_size).jobs)

    assert size(4, 16, 3) == 4
    assert len(window_of(jobs, 100, WindowSize(least=4, most=16)).jobs) == 4
    assert size(4, 16, 8) == 8
    assert size(4, 16, 50) == 16
    assert len(window_of(jobs, 20, WindowSize(least=30, most=30)).jobs) == 20


def test_a_window_over_several_queues_holds_positions_of_each_or_of_all_together() -> None:
    jobs = [a_job(f"{queue}{number}", queue=queue) for number in range(3) for queue in ("x", "y", "z")]
    positions = [a_position(uid=job.uid) for job in jobs]
    origins = {job.uid: DecisionOrigin(a_decision(), a_queue_heads(queue=job.queue)) for job in jobs}
    heads = MergedHeads(positions, origins, whole=True)

    def size(waiting: int, *, across: bool) -> int:
        window_size = WindowSize(least=2, across_queues=across, most=16)
        return len(take_heads(heads, dict.fromkeys("xyz", waiting), facts_with(*jobs), window_size).jobs)

    assert size(9, across=False) == 4, "the first queue of which two are known"
    assert size(9, across=True) == 2
    assert size(1, across=True) == 2, "whether or not more waits in the queue of the last one"


def test_what_no_single_end_makes_room_for_does_not_hide_those_that_can_start() -> None:
    gangs = [a_job(f"gang-{number}", demand=cards(32)) for number in range(5)]
    small = [a_job(f"small-{number}", demand=cards(1)) for number in range(20)]
    window = window_of([*gangs, *small], 100, WindowSize(least=4, most=16, room=cards(1), together=cards(1)))
    assert [ranked.job.id for ranked in window.jobs] == [
        *(f"gang-{number}" for number in range(5)),
        *(f"small-{number}" for number in range(4)),
    ]
    assert len(window_of([*gangs, *small], 100, WindowSize(least=4, most=6, room=cards(1))).jobs) == 6


def test_a_large_job_counts_that_only_a_rare_end_makes_room_for() -> None:
    large = [a_job(f"large-{number}", demand=cards(8)) for number in range(20)]
    window_size = WindowSize(least=1, most=16, room=cards(150), together=cards(2))
    assert len(window_of(large, 100, window_size).jobs) == 1
    assert len(window_of([a_job("small", demand=cards(1)), *large], 100, window_size).jobs) == 2


def test_the_largest_end_is_the_most_of_each_resource_that_one_running_job_holds() -> None:
    facts = facts_with(
        a_job("r1", phase=Phase.RUNNING, demand={"cpu": 8, "nvidia.com/gpu": 1}),
        a_job("r2", phase=Phase.RUNNING, demand={"cpu": 2, "nvidia.com/gpu": 4}),
        a_job("w", demand={"cpu": 99}),
    )
    assert facts.running.freed(["main"]) == {"cpu": 8, "nvidia.com/gpu": 4}
    assert facts.running.freed(["other"]) == {}
    gone = a_job("r2", phase=Phase.ENDED, rev=2, demand={"cpu": 2, "nvidia.com/gpu": 4})
    facts.apply({subject_of(gone): gone})
    assert facts.running.freed(["main"]) == {"cpu": 8, "nvidia.com/gpu": 1}


def test_the_usual_end_is_what_one_running_job_in_four_holds_of_each_resource() -> None:
    def usual(*gpus: int) -> Mapping[str, int]:
        held = enumerate(map(cards, gpus))
        jobs = [a_job(f"r{number}", phase=Phase.RUNNING, demand=demand) for number, demand in held]
        return facts_with(*jobs).running.freed(["main"], 0.25)

    assert usual(150, 1, 1, 1) == cards(150)
    assert usual(150, 1, 1, 1, 1) == cards(1)
    assert usual(150, 8, 1, 1, 1) == cards(8)
    assert usual(3, 3, 2, 2, 1, 1) == cards(3)
    assert usual() == {}


def test_what_few_running_jobs_hold_any_of_no_end_usually_frees() -> None:
    held = [{"cpu": 1}] * 4 + [{"cpu": 2, "nvidia.com/gpu": 1}]
    jobs = [a_job(f"r{number}", phase=Phase.RUNNING, demand=demand) for number, demand in enumerate(held)]
    assert facts_with(*jobs).running.freed(["main"], 0.25) == {"cpu": 1, "nvidia.com/gpu": 0}


def test_sizes_are_counted_by_queue() -> None:
    sizes = RunningSizes()
    first, second = a_job("a", demand={"cpu": 1}), a_job("b", demand={"cpu": 1})
    sizes.put(first)
    sizes.put(second)
    sizes.take(first)
    assert sizes.freed(["main"]) == {"cpu": 1}
    sizes.take(second)
    assert sizes.freed(["main"]) == {}
