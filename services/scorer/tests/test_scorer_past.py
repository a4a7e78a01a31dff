"""Past use in the cluster cache: whoever owns a shard, after whatever went wrong, has the same integers of it."""

import copy
import math
import random
from collections.abc import Callable, Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR, SECOND, Micros
from fairlead_contracts.messages.decisions import KeptPast, StatedPastUse
from fairlead_contracts.messages.state import JobState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_policy.usage.past import Decay, PastUse, tick_of
from fairlead_scorer.decide.decision import DecisionContent, decide, same
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.past import SETTLE_AFTER, FinishedRun, finished_run
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_mark, a_pool, a_queue
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.timing.in_hand import all_steps

POOL = "c1/gpu"
GPU = "nvidia.com/gpu"
MINUTE = 60 * SECOND
LATE = NOW + 1000 * HOUR
"""Instant of a clock by which no word is from the future."""
TENANTS = ("team-a", "team-b", "team-c")


def a_policy(half_life_hours: float | None = 1.0, **changes: object) -> PolicyDocument:
    tenants = [Tenant(name=name) for name in TENANTS]
    return a_document(tenants=tenants, half_life_hours=half_life_hours, shards=4, **changes)


def facts(*states: State) -> dict[str, State | None]:
    return {subject_of(state): state for state in states}


def a_cache(document: PolicyDocument, *states: State) -> ClusterCache:
    cache = ClusterCache()
    all_steps(cache.adopting(document, 1))
    all_steps(cache.learning(facts(a_pool(), a_queue(), *states)))
    return cache


def decided(cache: ClusterCache, now: Micros) -> list[DecisionContent]:
    pool = cache.pools[POOL]
    return [decide(pool, shard, now) for shard in range(pool.shards)]


def past_of(contents: Iterable[DecisionContent]) -> dict[str, dict[str, int]]:
    return {one.tenant: one.past for content in contents for one in content.standings if one.past}


def persisted(contents: Iterable[DecisionContent]) -> list[StatedPastUse]:
    return [
        StatedPastUse(pool=POOL, shard=shard, basis=content.basis, kept=content.kept)
        for shard, content in enumerate(contents)
    ]


def ours(_pool: str, _shard: int) -> bool:
    return True


def others(_pool: str, _shard: int) -> bool:
    return False


def a_run(tenant: str, number: int, started: Micros, gpu: int = 1) -> JobState:
    return a_job(f"j{number}", scope=tenant, demand={GPU: 1000 * gpu}, phase=Phase.RUNNING, started=started)


def ended(job: JobState, at: Micros) -> JobState:
    return msgspec.structs.replace(job, phase=Phase.ENDED, ended=at, rev=9)


def told(job: JobState, at: Micros) -> FinishedRun:
    found = finished_run(ended(job, at))
    assert found is not None
    return found


class PastUseModel:
    """Jobs that start, end, are stopped and put back, and are forgotten; what is known of them, and by whom."""

    def __init__(self, dice: random.Random, document: PolicyDocument) -> None:
        self.dice = dice
        self.now = NOW
        self.document = document
        self.state: dict[str, State | None] = facts(a_pool(), a_queue())
        self.events: list[FinishedRun] = []
        self.open: list[JobState] = []
        self.true: list[FinishedRun] = []
        self.count = 0
        self.owner = a_cache(document)
        self.contents = decided(self.owner, self.now)

    def live(self) -> None:
        """A while goes by, and things happen in it."""
        pause = self.dice.choice([SECOND, 40 * SECOND, 3 * MINUTE, HOUR // 2])
        self.now += self.dice.randint(1, pause)
        for _ in range(self.dice.randint(0, 3)):
            self._happens(self.now - self.dice.randint(0, min(pause, 50 * SECOND)))

    def _happens(self, at: Micros) -> None:
        if self.open and self.dice.random() < 0.5:
            job = self.open.pop(self.dice.randrange(len(self.open)))
            at = max(at, (job.started or 0) + 1)
            self.true.append(told(job, at))
            if self.dice.random() < 0.5:
                self._say(ended(job, at))
            else:  # stopped and put back, or deleted: an event alone says until when it ran
                again = msgspec.structs.replace(job, phase=Phase.WAITING, started=None, rev=9)
                self._hear(told(job, at))
                self._say(again) if self.dice.random() < 0.5 else self._forget(job)
        else:
            self.count += 1
            job = a_run(self.dice.choice(TENANTS), self.count, at, self.dice.randint(0, 5))
            self.open.append(job)
            self._say(job)
        for state in [one for one in self.state.values() if isinstance(one, JobState)]:
            if state.ended is not None and state.ended < self.now - 5 * MINUTE:
                self._forget(state)

    def _say(self, state: State) -> None:
        self.state |= facts(state)
        all_steps(self.owner.learning(facts(state)))
        if isinstance(state, JobState) and (run := finished_run(state)) is not None:
            self._hear(run)

    def _forget(self, state: State) -> None:
        self.state.pop(subject_of(state), None)
        all_steps(self.owner.learning({subject_of(state): None}))

    def _hear(self, run: FinishedRun) -> None:
        self.events.append(run)
        self.owner.hear([run])
        if self.dice.random() < 0.2:
            self.owner.hear(self.dice.sample(self.events, 1))  # at least once, and long after

    def decide(self) -> list[DecisionContent]:
        self.contents = decided(self.owner, self.now)
        return self.contents

    def successor(self) -> ClusterCache:
        """A scorer that starts now: it has the last decisions, the last state, and all events, some of them twice."""
        cache = ClusterCache()
        heard = [*self.events, *self.dice.choices(self.events, k=len(self.events))] if self.events else []
        self.dice.shuffle(heard)

        def follow() -> None:
            cache.follow(persisted(self.contents), others, LATE)

        steps: list[Callable[[], None]] = [
            lambda: all_steps(cache.adopting(self.document, 1)),
            lambda: all_steps(cache.learning(self.state)),
            lambda: cache.hear(heard),
            follow,
        ]
        self.dice.shuffle(steps)
        for step in steps:
            step()
        return cache


def a_busy_while(cache: ClusterCache, hours: int, queue: str = "main") -> Micros:
    """Lets a hundred short runs an hour pass, while one pool alone is decided; gives the instant after."""
    for number in range(100 * hours):
        at = NOW + number * HOUR // 100
        run = msgspec.structs.replace(told(a_run("team-a", number, at), at + SECOND), queue=queue)
        cache.hear([run])
        if number % 100 == 0:
            decided(cache, at)
    decided(cache, NOW + hours * HOUR)
    return NOW + hours * HOUR


@given(st.integers(0, 2**32), st.sampled_from([1 / 60, 1.0, 30.0]))
@settings(max_examples=cases())
def test_who_takes_over_at_any_moment_has_the_same_to_the_byte(seed: int, hours: float) -> None:
    world = PastUseModel(random.Random(seed), a_policy(hours))
    begun = world.now
    for _ in range(world.dice.randint(1, 12)):
        world.live()
        if world.dice.random() < 0.7:
            world.decide()
        if world.dice.random() < 0.4:
            heir = world.successor()
            assert decided(heir, world.now) == decided(world.owner, world.now)
            world.owner = heir
    # And that is what the runs themselves come to, from the first decision on.
    half_life = round(hours * HOUR)
    plain = PastUse(Decay(half_life, tick_of(half_life)))
    tick = tick_of(half_life)
    plain.begin(begun // tick - math.ceil(SETTLE_AFTER / tick), {})
    for run in world.true:
        plain.end(run.key, run.scope, run.ended, run.demand)
    for job in world.open:
        plain.run((job.uid, job.started or 0), job.scope, job.demand)
    plain.advance(world.now // tick)
    assert past_of(world.decide()) == {name: plain.of(name) for name in TENANTS if plain.of(name)}


def test_an_order_moves_by_what_a_tenant_used_yesterday() -> None:
    jobs = [
        a_job("new", scope="team-b", gpu=2, submitted=NOW),
        a_job("old", scope="team-a", gpu=2, submitted=NOW - 1),
    ]
    cache = a_cache(a_policy(24.0), *jobs)
    decided(cache, NOW - 24 * HOUR)
    run = a_run("team-a", 1, NOW - 24 * HOUR, 8)
    cache.hear([told(run, NOW - 12 * HOUR)])
    first = min(
        (position.key, position.id)
        for one in decided(cache, NOW)
        for heads in one.queue_heads
        for position in heads.positions
    )
    assert first[1] == "new"
    [standing] = [one for content in decided(cache, NOW) for one in content.standings if one.past]
    assert (standing.tenant, standing.use) == ("team-a", {})
    assert standing.past[GPU] == pytest.approx(8000 * (2**-0.5 - 0.5), rel=0.01)
    assert standing.share == pytest.approx(standing.past[GPU] / 16_000)


def test_only_a_tick_or_news_changes_a_decision() -> None:
    cache = a_cache(a_policy(), a_run("team-a", 1, NOW - HOUR))
    decided(cache, NOW)
    tick = tick_of(HOUR)
    at = (NOW // tick + 2) * tick
    pool = cache.pools[POOL]
    assert pool.next_flip(0, at) == at + tick
    before = decided(cache, at)
    assert all(same(*pair) for pair in zip(before, decided(cache, at + tick - 1), strict=True))
    after = decided(cache, at + tick)
    assert {content.basis.past for content in before} == {at // tick}
    assert {content.basis.past for content in after} == {at // tick + 1}


def test_it_begins_with_nothing_when_it_is_switched_on_and_ends_with_it() -> None:
    cache = a_cache(a_policy(None), a_run("team-a", 1, NOW - 100 * HOUR))
    [*contents] = decided(cache, NOW)
    assert {(content.basis.past, content.kept) for content in contents} == {(0, None)}
    all_steps(cache.adopting(a_policy(), 2))
    assert past_of(decided(cache, NOW)).get("team-a", {}).get(GPU, 0) < 50, (
        "a minute or two of an hour's half-life"
    )
    assert past_of(decided(cache, NOW + HOUR))["team-a"][GPU] == pytest.approx(500, rel=0.05)
    all_steps(cache.adopting(a_policy(None), 3))
    assert past_of(decided(cache, NOW + HOUR)) == {}
    all_steps(cache.adopting(a_policy(), 4))
    assert past_of(decided(cache, NOW + HOUR)).get("team-a", {}).get(GPU, 0) < 50


def test_another_half_life_and_another_parent_keep_what_was_used() -> None:
    cache = a_cache(a_policy(), a_run("team-a", 1, NOW, 8))
    decided(cache, NOW)
    all_steps(cache.learning(facts(ended(a_run("team-a", 1, NOW, 8), NOW + HOUR))))
    at = NOW + HOUR + 10 * MINUTE
    before = past_of(decided(cache, at))["team-a"][GPU]
    tenants = [Tenant(name="org", weight=2.0), *(Tenant(name=name, parent="org") for name in TENANTS)]
    all_steps(cache.adopting(msgspec.structs.replace(a_policy(10.0), tenants=tenants), 2))
    contents = decided(cache, at)
    assert past_of(contents)["team-a"][GPU] == pytest.approx(before, rel=0.05)
    assert past_of(contents)["org"] == past_of(contents)["team-a"]
    later = past_of(decided(cache, at + 10 * HOUR))["team-a"][GPU]
    assert later == pytest.approx(before / 2, rel=0.05)


def test_the_past_of_a_tenant_that_is_no_more_counts_for_nobody_and_fades() -> None:
    cache = a_cache(a_policy(), a_run("team-a", 1, NOW))
    decided(cache, NOW)
    all_steps(cache.learning(facts(ended(a_run("team-a", 1, NOW), NOW + HOUR))))
    renamed = msgspec.structs.replace(a_policy(), tenants=[Tenant(name="team-b")])
    decided(cache, NOW + HOUR + 2 * MINUTE)
    all_steps(cache.adopting(renamed, 2))
    past = past_of(decided(cache, NOW + HOUR + 3 * MINUTE))
    assert set(past) == {"team-a"}
    assert past_of(decided(cache, NOW + 80 * HOUR)) == {}
    assert all(
        content.kept is not None and not content.kept.tenants for content in decided(cache, NOW + 200 * HOUR)
    )


def test_what_another_owner_settled_later_counts_and_what_it_settled_earlier_does_not() -> None:
    cache = a_cache(a_policy())
    shard = cache.pools[POOL].shard_of("team-a")
    tick = tick_of(HOUR)
    parts = str(5000 * 2**32)
    late = KeptPast(
        at=NOW // tick * tick, half_life=HOUR, tenants={"team-a": {GPU: parts}, "nobody": {GPU: parts}}
    )
    early = msgspec.structs.replace(late, at=late.at - tick, tenants={})
    basis = cache.pools[POOL].basis_of(shard)
    for kept, whose in (
        (late, others),
        (early, others),
        (msgspec.structs.replace(late, at=late.at + tick, tenants={}), ours),
    ):
        cache.follow([StatedPastUse(pool=POOL, shard=shard, basis=basis, kept=kept)], whose, LATE)
    assert past_of(decided(cache, NOW))["team-a"] == {GPU: 5000}
    cache.follow([StatedPastUse(pool="elsewhere", shard=99, kept=late)], others, LATE)


def test_runs_that_are_settled_are_forgotten() -> None:
    cache = a_cache(a_policy())
    for number in range(5000):
        at = NOW + number * SECOND
        cache.hear([told(a_run("team-a", number, at), at + SECOND)])
        if number % 100 == 0:
            decided(cache, at)
    assert len(cache._over) < 2500
    assert past_of(decided(cache, NOW + 5001 * SECOND))["team-a"][GPU] == pytest.approx(
        1000 * (1 - 2 ** -(5000 / 3600)), rel=0.03
    )


@pytest.mark.parametrize("ahead", [-50 * SECOND, 50 * SECOND])
def test_an_owner_whose_clock_is_wrong_by_less_than_a_minute_leaves_what_another_would_have_had(
    ahead: Micros,
) -> None:
    right, wrong = a_cache(a_policy()), a_cache(a_policy())
    decided(right, NOW)
    left = decided(wrong, NOW)
    for minute in range(1, 30):
        now = NOW + minute * MINUTE
        before = a_run("team-a", minute - 1, now - MINUTE, 2)
        for cache in (right, wrong):
            all_steps(cache.learning(facts(a_run("team-a", minute, now, 2), ended(before, now))))
        decided(right, now)
        left = decided(wrong, now + ahead)
    heir = a_cache(a_policy())
    all_steps(heir.learning(facts(*right.facts.jobs)))
    heir.follow(persisted(left), others, LATE)
    later = NOW + 31 * MINUTE
    assert past_of(decided(heir, later)) == past_of(decided(right, later)) != {}


def test_a_shard_of_too_many_tenants_goes_on_deciding_and_says_that_it_keeps_nothing() -> None:
    cache = a_cache(a_policy())
    decided(cache, NOW)
    for number in range(2000):
        all_steps(
            cache.learning(
                facts(
                    a_run(f"scope-{number}", number, NOW),
                    ended(a_run(f"scope-{number}", number, NOW), NOW + HOUR),
                )
            )
        )
    decided(cache, NOW + HOUR + 10 * MINUTE)
    pool = cache.pools[POOL]
    whole, cut = (decide(pool, 0, NOW + HOUR + 10 * MINUTE, limit=limit) for limit in (900_000, 16_384))
    assert whole.kept is not None
    assert len(whole.kept.tenants) > 300
    assert not whole.shortened
    assert (cut.kept, cut.standings, cut.shortened) == (None, [], True)


def test_of_two_words_on_an_end_the_earlier_counts_whichever_comes_first() -> None:
    run = a_run("team-a", 1, NOW, 8)
    early, late = told(run, NOW + MINUTE), told(run, NOW + 9 * MINUTE)
    found = []
    for words in ([early, late], [late, early]):
        cache = a_cache(a_policy())
        decided(cache, NOW)
        for word in words:
            cache.hear([word])
        found.append(past_of(decided(cache, NOW + 10 * MINUTE)))
        all_steps(cache.adopting(a_policy(), 2))
        found.append(past_of(decided(cache, NOW + 10 * MINUTE)))
    assert found[0]["team-a"][GPU] == pytest.approx(8000 * (1 - 2 ** (-1 / 60)), rel=0.15)
    assert all(one == found[0] for one in found)


def test_what_was_kept_between_two_ticks_of_another_half_life_is_not_counted_again() -> None:
    cache = a_cache(a_policy(1000.0))
    tick = tick_of(1000 * HOUR)
    at = NOW // tick * tick - 20 * tick + SECOND
    cache.follow([StatedPastUse(pool=POOL, shard=0, kept=KeptPast(at=at, half_life=HOUR))], others, LATE)
    past = cache.pools[POOL].past
    assert past is not None
    assert past[0].settled == at // tick + 1


def used_for_two_hours(cache: ClusterCache) -> dict[str, dict[str, int]]:
    """The past that both scorers of the tests below have seen: half a pool, used by one tenant."""
    all_steps(cache.learning(facts(a_run("team-a", 1, NOW - 3 * HOUR, 4))))
    cache.follow(persisted(decided(cache, NOW)), ours, LATE)
    contents = decided(cache, NOW + 2 * HOUR)
    cache.follow(persisted(contents), ours, LATE)
    return past_of(contents)


@pytest.mark.parametrize("shards", [8, 2])
def test_decisions_by_a_policy_that_is_not_heard_of_yet_are_laid_by_until_it_is(shards: int) -> None:
    first, other = a_cache(a_policy()), a_cache(a_policy())
    before = used_for_two_hours(first)
    assert used_for_two_hours(other) == before
    moved = msgspec.structs.replace(a_policy(), shards=shards)
    shard = first.pools[POOL].shard_of("team-a")
    all_steps(first.adopting(moved, 2))
    assert first.pools[POOL].shard_of("team-a") != shard, "or the test shows nothing"
    later = NOW + 2 * HOUR + 10 * MINUTE
    stated = decided(first, later)
    other.follow(persisted(stated), others, LATE)
    assert past_of(decided(other, later)) == past_of(stated), "still by the old policy"
    all_steps(other.adopting(moved, 2))
    assert decided(other, later) == stated
    assert past_of(stated)["team-a"][GPU] > before["team-a"][GPU]


def test_a_decision_by_the_policy_before_erases_nothing_of_what_moved() -> None:
    slow, quick = a_cache(a_policy()), a_cache(a_policy())
    used_for_two_hours(slow)
    used_for_two_hours(quick)
    all_steps(quick.adopting(msgspec.structs.replace(a_policy(), shards=2), 2))
    later = NOW + 2 * HOUR + 10 * MINUTE
    stated = past_of(decided(slow, later))
    quick.follow(persisted(decided(slow, later)), others, LATE)
    assert past_of(decided(quick, later)) == stated


def test_who_starts_right_after_shards_changed_takes_them_from_the_old_ones() -> None:
    old, heir = a_cache(a_policy()), ClusterCache()
    used_for_two_hours(old)
    later = NOW + 2 * HOUR + 10 * MINUTE
    stated = decided(old, later)
    heir.follow(persisted(stated), others, LATE)
    all_steps(heir.adopting(msgspec.structs.replace(a_policy(), shards=8), 2))
    all_steps(heir.learning(facts(a_pool(), a_queue(), a_run("team-a", 1, NOW - 3 * HOUR, 4))))
    assert past_of(decided(heir, later)) == past_of(stated)


@pytest.mark.parametrize("decided_meanwhile", [True, False])
def test_what_was_switched_off_does_not_come_back_with_who_ran_on(decided_meanwhile: bool) -> None:
    cache, late = a_cache(a_policy()), a_cache(a_policy())
    used_for_two_hours(cache)
    before = decided(cache, NOW + 2 * HOUR)
    assert past_of(before)
    all_steps(cache.adopting(a_policy(None), 2))
    all_steps(late.adopting(a_policy(None), 2))
    all_steps(cache.learning(facts(ended(a_run("team-a", 1, NOW - 3 * HOUR, 4), NOW + 2 * HOUR + MINUTE))))
    at = NOW + 2 * HOUR + 10 * MINUTE
    off = decided(cache, at)
    for one in (cache, late):
        all_steps(one.adopting(a_policy(), 3))
        one.follow(persisted(off if decided_meanwhile else before), others, LATE)
        assert past_of(decided(one, at)) == {}


def test_a_word_from_before_it_was_switched_off_counts_for_no_pool_that_comes_later() -> None:
    cache = ClusterCache()
    all_steps(cache.adopting(a_policy(None), 2))
    all_steps(cache.adopting(a_policy(), 3))
    other = a_cache(a_policy())
    used_for_two_hours(other)
    cache.follow(persisted(decided(other, NOW + 2 * HOUR)), others, LATE)
    all_steps(cache.learning(facts(a_pool(), a_queue())))
    assert past_of(decided(cache, NOW + 2 * HOUR)) == {}


def with_a_pool_that_is_gone(half_life_hours: float = 1.0) -> ClusterCache:
    """A cache of two pools, one whose cluster is away: it was decided once and cannot be any more."""
    gone: list[State] = [
        a_pool(name="gpu", cluster="c2"),
        a_queue(name="side", cluster="c2"),
        a_mark(cluster="c1"),
    ]
    cache = a_cache(a_policy(half_life_hours), *gone)
    for pool in cache.pools.values():
        for shard in range(pool.shards):
            decide(pool, shard, NOW)
    assert len(cache.pools) == 2
    return cache


def test_a_pool_that_cannot_be_decided_keeps_no_runs_of_other_pools() -> None:
    cache = with_a_pool_that_is_gone()
    a_busy_while(cache, 60)
    assert len(cache._over) < 2500


def test_events_are_read_from_where_pools_that_can_be_decided_need_them() -> None:
    cache = with_a_pool_that_is_gone()
    incarnation = a_mark().incarnation
    later = a_busy_while(cache, 10)
    horizon = cache.horizon(incarnation)
    assert horizon is not None
    assert horizon > later - 5 * MINUTE
    all_steps(cache.learning(facts(a_mark(cluster="c2"))))
    horizon = cache.horizon(incarnation)
    assert horizon is not None
    assert horizon < NOW, "it is back, and needs what has been since"


def test_a_pool_that_cannot_be_decided_keeps_its_runs_for_as_long_as_the_events_are_there() -> None:
    cache = with_a_pool_that_is_gone(200.0)
    [name] = cache.pools.keys() - {POOL}
    away = cache.pools[name]
    for number in range(2001):
        at = NOW + number * HOUR // 100
        cache.hear(
            [
                msgspec.structs.replace(
                    told(a_run("team-a", 20_000 + number, at, 16), at + 20 * SECOND),
                    cluster="c2",
                    queue="side",
                )
            ]
        )
    decided(cache, NOW + 20 * HOUR)
    a_busy_while(cache, 25)
    assert away.past is not None
    assert sum(run.cluster == "c2" for run in cache._over.values()) == 2001
    shard = away.shard_of("team-a")
    expected = decide(copy.deepcopy(away), shard, NOW + 400 * HOUR).standings
    assert expected[0].past
    decided(cache, NOW + 400 * HOUR)
    for number in range(6000):
        at = NOW + 399 * HOUR + number
        cache.hear([told(a_run("team-b", 9000 + number, at), at + 1)])
    assert not any(run.cluster == "c2" for run in cache._over.values())
    assert decide(away, shard, NOW + 400 * HOUR).standings == expected
    assert (away.past.horizon() or 0) > NOW + 200 * HOUR


def test_a_clock_that_was_ahead_for_a_moment_leaves_all_shards_at_one_tick() -> None:
    right, wrong = a_cache(a_policy()), a_cache(a_policy())
    runs = [a_run(name, number, NOW - 3 * HOUR, 4) for number, name in enumerate(TENANTS)]
    for cache in (right, wrong):
        all_steps(cache.learning(facts(*runs)))
        decided(cache, NOW)
    pool = wrong.pools[POOL]
    glitch = decide(pool, pool.shard_of("team-a"), NOW + HOUR)
    assert glitch.kept is not None
    assert glitch.kept.at > NOW + MINUTE
    for minutes in (1, 30, 59, 62):
        now = NOW + minutes * MINUTE
        assert {content.basis.past for content in decided(wrong, now)} == {now // tick_of(HOUR)}
    later = NOW + 5 * HOUR
    assert past_of(decided(wrong, later)) == past_of(decided(right, later)), "nothing ended: nothing is lost"


def test_what_is_settled_beyond_our_clock_is_not_followed_where_we_know_better() -> None:
    cache, wrong = a_cache(a_policy()), a_cache(a_policy())
    before = used_for_two_hours(cache)
    used_for_two_hours(wrong)
    now = NOW + 2 * HOUR
    said = persisted(decided(wrong, now + 3 * HOUR))
    assert cache.follow(said, others, now) == said
    assert past_of(decided(cache, now)) == before
    heir = a_cache(a_policy())
    assert heir.follow(said, others, now) == []
    assert past_of(decided(heir, now)) != {}, "better than nothing"
    assert cache.follow(said, others, now + 3 * HOUR) == []
