"""Changes that would move a job: each claim is tried by ordering anew, with it and with one unit less."""

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR, MINUTE, Micros, from_datetime
from fairlead_contracts.messages.explanations import Counterfactual, WhatIf
from fairlead_policy.explain.counterfactuals import passes_at, starts_to_fall_behind
from fairlead_policy.explain.explanation import NEIGHBOURS, targets_of
from fairlead_policy.explain.neighbourhood import around_position, count_before
from fairlead_policy.explain.what_if import breakdown_of
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.inputs.builders import a_position
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.told_what_if import told_what_if, what_if_in
from fairlead_testkit.oracles.waiting import a_waiting_job, judged

NOW = 10 * HOUR
TENANTS = ("ada", "bob", "cyd")

ORG = {"ada": "org", "bob": "org"}
seeds = st.integers(0, 2**32)
RATES = (Fraction(0), Fraction(1, 20) / HOUR, Fraction(1, 3) / HOUR)
WEIGHTS = (Fraction(1), Fraction(2), Fraction(7, 3))


def in_units(stated: dict[str, int]) -> dict[str, int]:
    """Whole cores and cards in base units."""
    return {name: 1000 * amount for name, amount in stated.items()}


def amounts_of(rng: random.Random) -> dict[str, int]:
    return {"cpu": rng.randint(0, 6), "gpu": rng.randint(0, 4)}


def pools(
    *, past: bool = False, tree: bool | None = False, modes: tuple[ClassMode, ...] = ("strict",)
) -> "st.SearchStrategy[Case]":
    """Some jobs of three tenants, with what these run; in a tree, outside one, or either."""

    def case_of(seed: int) -> Case:
        rng = random.Random(seed)
        waiting = [
            (
                rng.choice(TENANTS),
                rng.choice(("urgent", "normal", "normal")),
                rng.randint(0, 10),
                amounts_of(rng),
            )
            for _ in range(rng.randint(2, 7))
        ]
        grown = rng.choice((True, False)) if tree is None else tree
        rules = PoolRules(
            capacity={"cpu": 24_000, "gpu": 12_000},
            classes=("urgent", "normal"),
            rate=rng.choice(RATES),
            cap=rng.choice((None, 2 * HOUR, 5 * HOUR)),
            entitlements={name: rng.choice(WEIGHTS) for name in (*TENANTS, "org")},
            parents=ORG if grown else {},
            class_mode=rng.choice(modes),
            class_weights={"urgent": Fraction(1), "normal": Fraction(3, 2)},
        )
        use = {tenant: in_units(amounts_of(rng)) for tenant in TENANTS}
        return Case(waiting, use, {"ada": in_units(amounts_of(rng))} if past else {}, rules)

    return seeds.map(case_of)


class Case:
    """A pool that can be ordered anew with a change."""

    def __init__(
        self,
        waiting: Sequence[tuple[str, str, int, dict[str, int]]],
        use: dict[str, dict[str, int]],
        past: dict[str, dict[str, int]],
        rules: PoolRules,
    ) -> None:
        self.rules, self.use, self.past = rules, use, past
        self.jobs = [
            a_waiting_job(
                f"j{number}",
                tenant=tenant,
                job_class=job_class,
                submitted=age * HOUR,
                demand={name: amount for name, amount in in_units(demand).items() if amount},
            )
            for number, (tenant, job_class, age, demand) in enumerate(waiting)
        ]

    @property
    def asked(self) -> list[WaitingJob]:
        """Two of the jobs, any two: to explain all of them would cost more than other pools."""
        return self.jobs[:2]

    @property
    def tried(self) -> set[str]:
        """Jobs of trees, or of classes that are not strict: ends are found by trying."""
        return {job.uid for job in self.jobs if job.tenant in self.rules.parents or not self.rules.strict}

    def order(
        self, change: dict[tuple[str, str], int] | None = None, classes: dict[str, str] | None = None
    ) -> PoolFacts:
        """The order from scratch, with more or less use by (tenant, resource), and other classes by uid."""
        order = PoolFacts(self.rules)
        for tenant, use in self.use.items():
            held = {name: amount + (change or {}).get((tenant, name), 0) for name, amount in use.items()}
            assert all(amount >= 0 for amount in held.values())
            order.run(f"runs-{tenant}", tenant, held)
        for tenant, past in self.past.items():
            order.remember(tenant, past)
        for job in self.jobs:
            job_class = (classes or {}).get(job.uid, job.job_class)
            classed = msgspec.structs.replace(job, job_class=job_class)
            order.wait(judged(classed, self.rules.capacity))
        return order


def before(order: PoolFacts, first: str, second: str, now: Micros = NOW) -> bool:
    uids = order.at(now).uids()
    return uids.index(first) < uids.index(second)


def moves_of(order: PoolFacts, uid: str) -> list[Counterfactual]:
    position = order.position(uid, NOW)
    assert position is not None
    return what_if_in(order.at(NOW), position).counterfactuals


@settings(max_examples=cases())
@given(pools(past=True))
def test_the_least_end_moves_a_job_and_one_unit_less_of_anything_does_not(case: Case) -> None:
    order = case.order()
    for job in case.asked:
        ends = [move for move in moves_of(order, job.uid) if move.cause == "ends"]
        for move in ends:
            change = {(job.tenant, name): -amount for name, amount in move.amounts.items()}
            changed = case.order(change)
            assert before(changed, job.uid, move.passed)
            if move.rank is not None:
                assert changed.at(NOW).uids()[move.rank] == job.uid
            for least, amount in change.items():
                assert not before(case.order(change | {least: amount + 1}), job.uid, move.passed)
        position = order.position(job.uid, NOW)
        assert position is not None
        claimed = {move.passed for move in ends}
        for target in targets_of(
            position, around_position(order.at(NOW), position, NEIGHBOURS), case.rules, NOW
        ):
            if target.uid not in claimed:
                idle = case.order({(job.tenant, name): -held for name, held in case.use[job.tenant].items()})
                assert not before(idle, job.uid, target.uid)


@settings(max_examples=cases())
@given(pools(tree=None, modes=("strict", "additive", "multiplicative")))
def test_ends_and_time_move_a_job_as_told_and_one_unit_or_microsecond_less_does_not(case: Case) -> None:
    order = case.order()
    undisturbed = order.at(NOW).uids()
    for job in case.asked:
        for move in moves_of(order, job.uid):
            if move.cause == "ends":
                change = check_end(case, job, move)
                if job.uid in case.tried:
                    less = {part: amount + 1000 for part, amount in change.items()}
                    assert not before(case.order(less), job.uid, move.passed)
            elif move.cause == "time":
                check_instant(order, job.uid, move)
    # Trying leaves no trace.
    assert order.at(NOW).uids() == undisturbed
    assert order.at(NOW).positions()[:] == case.order().at(NOW).positions()[:]
    assert order.snapshot.standings() == case.order().snapshot.standings()


def check_end(case: Case, job: WaitingJob, move: Counterfactual) -> dict[tuple[str, str], int]:
    """Order anew with so much less in use; gives the change."""
    change = {(job.tenant, name): -amount for name, amount in move.amounts.items()}
    uids = case.order(change).at(NOW).uids()
    assert uids.index(job.uid) < uids.index(move.passed)
    assert move.rank is None or uids[move.rank] == job.uid
    return change


def of_what_no_pool_has(case: Case, rng: random.Random) -> Case:
    """The same with tenants that hold and ask for what the pool has none of: their shares are infinite until that has ended."""
    case.rules = replace(case.rules, capacity={**case.rules.capacity, "tpu": 0})
    for tenant in ("ada", "bob"):
        case.use[tenant]["tpu"] = 1000 * rng.choice((1, 2))
    for number, job in enumerate(case.jobs):
        asked = {"tpu": 1000} if rng.random() < 0.1 else {}
        case.jobs[number] = msgspec.structs.replace(job, demand={**job.demand, **asked})
    return case


SOFT: tuple[ClassMode, ...] = ("additive", "multiplicative")
"""Between strict classes, and in a tree, an end that makes a share finite seldom passes finite ones."""


@settings(max_examples=cases())
@given(
    st.one_of(pools(tree=False, modes=SOFT), pools(tree=None, modes=("strict", *SOFT))),
    st.randoms(use_true_random=False),
)
def test_an_end_gives_the_rank_that_is_told_of_infinite_shares_too(case: Case, rng: random.Random) -> None:
    case = of_what_no_pool_has(case, rng)
    order = case.order()
    for job in case.jobs:
        for move in moves_of(order, job.uid):
            if move.cause == "ends":
                check_end(case, job, move)
    assert order.at(NOW).positions()[:] == case.order().at(NOW).positions()[:]


@settings(max_examples=cases())
@given(pools())
def test_the_least_start_of_another_pushes_it_behind_and_one_unit_less_does_not(case: Case) -> None:
    positions = case.order().at(NOW).positions()[:]
    for number, position in enumerate(positions):
        for other in positions[:number]:
            found = starts_to_fall_behind(position, other, case.rules, NOW)
            if other.tenant != position.tenant and found is not None:
                resource, amount = found
                assert before(case.order({(other.tenant, resource): amount}), position.uid, other.uid)
                less = case.order({(other.tenant, resource): amount - 1})
                assert not before(less, position.uid, other.uid)


def test_no_start_is_told_where_one_may_use_a_resource_up() -> None:
    waiting = [("ada", "normal", 1, {"gpu": 1}), ("cyd", "normal", 1, {"gpu": 1})]
    plain = PoolRules(
        capacity={"cpu": 24_000, "gpu": 12_000},
        classes=("urgent", "normal"),
        entitlements=dict.fromkeys(TENANTS, Fraction(1)),
    )
    for rescaled in (False, True):
        order = Case(waiting, {}, {}, replace(plain, rescaled=rescaled)).order()
        assert [move.cause for move in moves_of(order, "j1")].count("starts") == (not rescaled)


@settings(max_examples=cases())
@given(pools(tree=None, modes=("strict", "additive", "multiplicative")), st.sampled_from([None, 2.5]))
def test_a_class_gives_the_rank_that_is_told(case: Case, override: float | None) -> None:
    case.jobs[0] = msgspec.structs.replace(case.jobs[0], override=override)
    order = case.order()
    first = order.at(NOW).uids()[0]
    for job in case.asked:
        told = [move for move in moves_of(order, job.uid) if move.cause == "class"]
        counts = case.rules.strict or job.override is None
        assert len(told) == (job.job_class == "normal" and counts and job.uid != first)
        for move in told:
            changed = case.order(classes={job.uid: move.job_class}).at(NOW).uids()
            assert move.rank == changed.index(job.uid)
    assert order.at(NOW).positions()[:] == case.order().at(NOW).positions()[:]


@settings(max_examples=cases())
@given(pools())
def test_time_moves_a_pair_at_the_told_instant_and_never_else(case: Case) -> None:
    order = case.order()
    positions = order.at(NOW).positions()[:]
    orders = {instant: order.at(instant).uids() for instant in range(NOW, NOW + 20 * HOUR, HOUR)}
    for number, position in enumerate(positions):
        for other in positions[:number]:
            if position.tenant == other.tenant:
                continue
            at = passes_at(position, other, case.rules, NOW)
            if at is not None:
                assert before(order, other.uid, position.uid, at - 1)
                assert before(order, position.uid, other.uid, at)
            for instant, uids in orders.items():
                passed = uids.index(position.uid) < uids.index(other.uid)
                assert passed == (at is not None and instant >= at)


def check_instant(order: PoolFacts, uid: str, move: Counterfactual) -> None:
    assert move.at is not None
    at = from_datetime(move.at)
    told = -(-at // MINUTE) * MINUTE
    found = [before(order, uid, move.passed, on) for on in (at - 1, at, told)]
    assert found == [not move.ahead, move.ahead, move.ahead]


def test_instants_are_left_out_where_time_moves_the_sequence_of_a_tree_too() -> None:
    waiting = [("ada", "normal", 0, {"gpu": 1}), ("cyd", "normal", 5, {"gpu": 1})]
    stated = PoolRules(
        capacity={"cpu": 24_000, "gpu": 12_000},
        classes=("urgent", "normal"),
        rate=Fraction(1, 20) / HOUR,
        cap=8 * HOUR,
        entitlements=dict.fromkeys((*TENANTS, "org"), Fraction(1)),
        class_weights={"urgent": Fraction(1), "normal": Fraction(3, 2)},
    )
    use = {tenant: in_units({"gpu": int(tenant == "ada")}) for tenant in TENANTS}
    tried: list[tuple[dict[str, str], ClassMode, bool]] = [
        ({}, "additive", True),
        (ORG, "strict", True),
        (ORG, "additive", False),
    ]
    for parents, mode, told in tried:
        scored_by = replace(stated, parents=parents, class_mode=mode)
        order = Case(waiting, use, {}, scored_by).order()
        position = order.position("j1", NOW)
        assert position is not None
        found = what_if_in(order.at(NOW), position)
        assert [move.cause for move in found.counterfactuals].count("time") == told
        assert not found.still


@settings(max_examples=cases())
@given(pools(tree=None))
def test_neighbours_room_and_breakdown_are_those_of_the_whole_order(case: Case) -> None:
    order = case.order()
    positions = order.at(NOW).positions()[:]
    for rank in (0, len(positions) // 2, len(positions) - 1):
        position = positions[rank]
        found = around_position(order.at(NOW), position, 3)
        assert [one.uid for one in found.nearest] == [one.uid for one in positions[:rank]][::-1][:3]
        assert [one.uid for one in found.behind] == [one.uid for one in positions[rank + 1 :]][:3]
        what_if = what_if_in(order.at(NOW), position)
        assert what_if.room is not None
        for name, asked in position.demand.items():
            used = sum(part[name] for part in case.use.values())
            assert found.used.get(name, 0) == used
            assert found.asked.get(name, 0) == sum(one.demand.get(name, 0) for one in positions[:rank])
            missing = used + asked - case.rules.capacity[name]
            assert what_if.room.missing.get(name, 0) == max(0, missing)
        breakdown = breakdown_of(order.at(NOW), position)
        assert breakdown is not None
        assert max(breakdown.shares.values(), default=0.0) == position.tag


def smaller(rules: PoolRules, left_out: Sequence[str]) -> PoolRules:
    """A pool of which some jobs ask more than it has, of which some resources do not count."""
    return replace(
        rules, capacity={"cpu": 5000, "gpu": 3000}, resource_weights=dict.fromkeys(left_out, Fraction(0))
    )


@settings(max_examples=cases())
@given(
    pools(tree=None, modes=("strict", "additive")),
    st.sampled_from(((), ("cpu",), ("gpu",), ("cpu", "gpu"), ("tpu",))),
)
def test_a_turn_is_of_all_that_can_start_and_of_resources_that_do_not_count_too(
    case: Case, left_out: Sequence[str]
) -> None:
    case.rules = smaller(case.rules, left_out)
    order = case.order()
    positions = order.at(NOW).positions()[:]
    for rank, position in enumerate(positions):
        found = around_position(order.at(NOW), position, 3)
        start = [
            one
            for one in positions[:rank]
            if all(amount <= case.rules.capacity[name] for name, amount in one.demand.items())
        ]
        for name in position.demand:
            assert found.asked.get(name, 0) == sum(one.demand.get(name, 0) for one in start)


WILD = st.sampled_from((-5, 0, 1, 999, 2**30, 2**60, 2**62, 2**63, 10**25))
wild_rules = st.builds(
    PoolRules,
    capacity=st.dictionaries(st.sampled_from(("cpu", "gpu")), st.sampled_from((0, 1, 64_000, 2**50))),
    classes=st.just(("urgent", "normal")),
    rate=st.sampled_from((Fraction(0), Fraction(1, 10**12), Fraction(10))),
    cap=st.sampled_from((None, 0, 1, 2**60)),
    entitlements=st.dictionaries(
        st.sampled_from((*TENANTS, "org")),
        st.sampled_from((Fraction(0), Fraction(1, 10**9), Fraction(1), Fraction(10**9))),
    ),
    parents=st.sampled_from(({}, ORG)),
    rescaled=st.booleans(),
)
wild_jobs = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.sampled_from(("urgent", "normal", "unknown")),
        st.sampled_from((0, -(2**61), 2**63, NOW)),
        st.dictionaries(st.sampled_from(("cpu", "gpu", "tpu")), WILD),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=cases())
@given(wild_rules, wild_jobs, st.dictionaries(st.sampled_from(TENANTS), WILD))
def test_wild_facts_get_words_and_their_exact_neighbours(
    scored_by: PoolRules, waiting: list[tuple[str, str, int, dict[str, int]]], use: dict[str, int]
) -> None:
    order = PoolFacts(scored_by)
    for tenant, amount in use.items():
        order.run(f"runs-{tenant}", tenant, {"gpu": amount})
    for number, (tenant, job_class, submitted, demand) in enumerate(waiting):
        order.wait(
            a_waiting_job(
                f"j{number}", tenant=tenant, job_class=job_class, submitted=submitted, demand=demand
            )
        )
    uids = order.at(NOW).uids()
    for rank, uid in enumerate(uids):
        position = order.position(uid, NOW)
        assert position is not None
        found = what_if_in(order.at(NOW), position)
        assert all(told_what_if(found, position, scored_by, NOW))
        assert msgspec.json.decode(msgspec.json.encode(found), type=WhatIf) == found
        assert sum(count_before(order.at(NOW), position).values()) == rank
        nearby = around_position(order.at(NOW), position, 3)
        assert [one.uid for one in nearby.nearest] == uids[max(0, rank - 3) : rank][::-1]
        assert [one.uid for one in nearby.behind] == uids[rank + 1 : rank + 4]


def test_position_of_nobody_stands_alone() -> None:
    order = PoolFacts(PoolRules(capacity={"cpu": 1}, classes=("normal",)))
    assert order.position("nobody", NOW) is None
    stranger = a_position(uid="x", tenant="t")
    assert around_position(order.at(NOW), stranger, 3).nearest == []
