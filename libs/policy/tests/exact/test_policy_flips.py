"""The order moves by time alone only through the cap, and then at the instants foretold."""

import random
from fractions import Fraction
from itertools import pairwise
from math import floor

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import HOUR
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job


def pool(rules: PoolRules, jobs: list[tuple[str, int, int]]) -> PoolFacts:
    """Jobs as (tenant, use before it, submitted): each tenant has one."""
    order = PoolFacts(rules)
    for tenant, use, submitted in jobs:
        order.run(f"r-{tenant}", tenant, {"gpu": use})
        order.wait(a_waiting_job(tenant, tenant=tenant, submitted=submitted, demand={"gpu": 1}))
    return order


def rules(rate: Fraction, cap: int | None, capacity: int = 1) -> PoolRules:
    return PoolRules(
        capacity={"gpu": capacity}, classes=("normal",), rate=rate, cap=cap, unlisted_entitlement=Fraction(1)
    )


def test_two_jobs_swap_away_from_any_cap_crossing() -> None:
    # Rate 1, cap 10: j caps at 10, k at 17; they swap at 12. At 12 itself the keys are equal and j is older.
    order = pool(rules(Fraction(1), 10), [("j", 5, 0), ("k", 0, 7)])
    for now in (0, 9, 10, 11, 12):
        assert order.at(now).uids() == ["j", "k"]
        assert order.at(now).next_flip() == 13
    assert order.at(13).uids() == ["k", "j"]
    assert order.at(13).next_flip() is None


def test_two_jobs_swap_after_days() -> None:
    order = pool(rules(Fraction(6, 100) / HOUR, 48 * HOUR), [("A", 2, 0), ("B", 1, 100 * HOUR)])
    flip = order.at(0).next_flip()
    assert flip is not None
    assert round(flip / HOUR, 1) == 131.3
    assert order.at(flip - 1).uids() == ["A", "B"]
    assert order.at(flip).uids() == ["B", "A"]


def test_a_rate_too_small_for_a_float_is_no_error() -> None:
    tiny = Fraction(1, 10**330)
    order = pool(rules(tiny, 10), [("j", 0, 0), ("k", 0, 7), ("l", 3, 9)])
    assert order.at(5).uids() == ["j", "k", "l"]
    assert order.at(5).next_flip() is None


def test_nothing_moves_without_a_cap_or_without_aging() -> None:
    jobs = [("j", 5, 0), ("k", 0, 7)]
    assert pool(rules(Fraction(1), None), jobs).at(0).next_flip() is None
    assert pool(rules(Fraction(0), 10), jobs).at(0).next_flip() is None


def test_equal_tags_of_unlike_terms_never_flip_and_hide_no_flip() -> None:
    # a and b tie exactly by 2/4 and 3/6 of different weights; the true flip is that of j and k, later.
    order = PoolFacts(
        PoolRules(
            capacity={"gpu": 12},
            classes=("normal",),
            rate=Fraction(1, 10),
            cap=10,
            entitlements={"a": Fraction(2), "b": Fraction(3), "j": Fraction(1), "k": Fraction(1)},
        )
    )
    for tenant, use, submitted in (("a", 2, 0), ("b", 3, 1), ("j", 60, 100), ("k", 50, 130)):
        order.run(f"r-{tenant}", tenant, {"gpu": use})
        order.wait(a_waiting_job(tenant, tenant=tenant, submitted=submitted, demand={}))
    flip = order.at(0).next_flip()
    # 10 + 130 - (60 - 50) / 12 / (1 / 10) = 131.67
    assert flip == 132
    assert order.at(flip).uids() != order.at(flip - 1).uids()


@given(st.integers(0, 2**32).map(random.Random))
@settings(max_examples=cases())
def test_the_next_flip_is_the_first_of_all_neighbours_exactly(rng: random.Random) -> None:
    """cap + submitted_k - (tag_j - tag_k) / rate, in fractions; numbers so large that floats lose whole units."""
    far, capacity = rng.choice([50, 2**45, 2**57]), rng.choice([7, 2**40 + 1, 2**55 - 1])
    # Tags far above 1 that differ by little: a float of them is worth hundreds of units of time.
    base, spread = rng.choice([(0, capacity), (2**59 // capacity * capacity, 20)])
    plain = rules(
        rng.choice([Fraction(1, 3), Fraction(6, 100) / HOUR, Fraction(1, 10**12), Fraction(1, 10**18)]),
        far // 2,
        capacity,
    )
    jobs = [
        (
            f"t{number}",
            base + rng.choice([0, 2**23]) + rng.randrange(spread),
            rng.choice([0, far]) + rng.randrange(12),
        )
        for number in range(rng.randint(2, 9))
    ]
    order, now = pool(plain, jobs), rng.randrange(2 * far)
    positions = order.at(now).positions()[:]
    flips = []
    for j, k in pairwise(positions):
        ahead = Fraction(j.use - k.use, capacity)
        if ahead > 0 and k.submitted > j.submitted:
            flips.append(floor(far // 2 + k.submitted - ahead / plain.rate) + 1)
    assert order.at(now).next_flip() == min(flips, default=None)


jobs_of_tenants = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 10), st.integers(0, 2), st.booleans()),
    max_size=7,
)


@given(
    jobs_of_tenants,
    st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(3)]),
    st.integers(1, 8),
    st.integers(0, 15),
)
@settings(max_examples=cases())
def test_the_order_stands_until_the_instant_foretold_and_not_longer(
    found: list[tuple[int, int, int, int, bool]], rate: Fraction, cap: int, now: int
) -> None:
    order = PoolFacts(
        PoolRules(
            capacity={"gpu": 6, "cpu": 4},
            classes=("urgent", "normal"),
            rate=rate,
            cap=cap,
            entitlements={f"t{number}": Fraction(weight) for number, weight in enumerate((1, 2, 3, 1, 2, 0))},
        )
    )
    for number, (tenant, gpus, submitted, use, urgent) in enumerate(found):
        order.run(f"r{number}", f"t{tenant}", {"gpu": use})
        order.wait(
            a_waiting_job(
                f"u{number}",
                tenant=f"t{tenant}",
                job_class="urgent" if urgent else "normal",
                submitted=submitted,
                demand={"gpu": gpus, "cpu": use},
            )
        )
    ahead = order.at(now).next_flip()
    before = order.at(now).uids()
    changes = [then for then in range(now + 1, 20) if order.at(then).uids() != before]
    assert ahead == (changes[0] if changes else None)
    assert order.at(now).next_flip(window=len(found) + 1) == ahead


def test_the_flips_of_heads_are_foretold_from_the_heads_alone() -> None:
    rng = random.Random(5)
    for _ in range(cases()):
        order = PoolFacts(rules(Fraction(1, 8), 6, capacity=4))
        for number in range(14):
            order.wait(
                a_waiting_job(
                    f"u{number}",
                    tenant=f"t{rng.randrange(4)}",
                    submitted=rng.randrange(25),
                    demand={"gpu": rng.randrange(4)},
                    queue=JobQueue("c", f"q{rng.randrange(2)}"),
                )
            )
        now = rng.randrange(10)
        first = order.at(now).next_flip(window=2)
        for then in range(now, 40 if first is None else first):
            assert [
                [position.uid for position in heads] for heads in order.at(then).queue_heads(2).values()
            ] == [[position.uid for position in heads] for heads in order.at(now).queue_heads(2).values()]
