"""A node's holding as it counts (H-DRF), against sums of fractions in full."""

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.fixed_point import FINE, GRID, bounded, bounded_near
from fairlead_policy.tenants.rescaling import ChildShares, CountedHolding, dominant_of
from fairlead_testkit.inputs.cases import cases

type TagsOfChild = tuple[list[Fraction], bool]
"""Holding of a child by resource, and whether it is live."""

RESOURCES = ("cpu", "gpu", "memory")


def counted(share: Fraction) -> Fraction:
    """The share as it is up to a denominator of 2^64, else rounded to parts of that."""
    return share if share.denominator <= GRID else Fraction(round(share * GRID), GRID)


def by_fractions(
    children: dict[int, TagsOfChild], entitlements: list[Fraction], own: list[Fraction], rules: PoolRules
) -> list[Fraction]:
    scaled = {number: held for number, (held, live) in children.items() if live and entitlements[number]}
    shares = [max(held) / entitlements[number] for number, held in scaled.items()]
    lowest = min((share for share in shares if share or rules.lowest_of_live), default=Fraction(0))
    total = own
    for number, (held, live) in children.items():
        if number in scaled:
            factor = lowest * entitlements[number] / max(held) if max(held) else Fraction(0)
            held = [part * factor for part in held]  # noqa: PLW2901 # the same, scaled
        elif not live:
            named = zip(RESOURCES, held, strict=True)
            held = [Fraction(0) if name in rules.saturated else part for name, part in named]  # noqa: PLW2901
        total = [one + other for one, other in zip(total, held, strict=True)]
    return [counted(part) for part in total]


@given(st.randoms(use_true_random=False), st.sampled_from([4, 60, 10**6, 10**15]))
@settings(max_examples=cases())
def test_a_node_counts_to_hold_the_very_number_that_sums_in_full_give(
    rng: random.Random, longest: int
) -> None:
    """Long denominators are rounded and short ones are not, whichever children come, change and end."""

    def part() -> Fraction:
        return Fraction(rng.randrange(longest), rng.randrange(1, longest))

    size = rng.choice([1, 2, 3, 12])
    entitlements = [rng.choice([Fraction(0), Fraction(1, 3), Fraction(1), part()]) for _ in range(size)]
    own = [rng.choice([Fraction(0), part()]) for _ in RESOURCES]
    rules = PoolRules(
        capacity=dict.fromkeys(RESOURCES, 1),
        classes=("normal",),
        lowest_of_live=rng.random() < 0.3,
        saturated=frozenset(rng.choice([(), ("gpu",)])),
    )
    child_shares = ChildShares(entitlements, own, rules)
    children: dict[int, TagsOfChild] = {}
    for _ in range(3 * size):
        number = rng.randrange(size)
        held = rng.choice([[Fraction(0)] * 3, [part(), Fraction(0), part()], [part(), part(), part()]])
        children[number] = held, rng.random() < 0.8
        child_shares.set_child(
            number, CountedHolding.of([p.as_integer_ratio() for p in held]), children[number][1]
        )
        if rng.random() < 0.3:
            child_shares = child_shares.copy()
        expected = by_fractions(children, entitlements, own, rules)
        found = child_shares.held()
        assert [Fraction(one, found.under) for one in found.parts] == expected
        most = child_shares.dominant()
        assert (Fraction(*most.part), most.at) == (max(expected), expected.index(max(expected)))


@given(st.integers(1, 2**70), st.integers(0, 2**72), st.integers(-(2**20), 2**20))
@settings(max_examples=cases())
def test_a_number_near_a_sum_tells_what_the_sum_counts_as_or_nothing(under: int, over: int, off: int) -> None:
    near = (over << FINE) // under + off
    told = bounded_near(near, 2**20 + 1)
    assert told is None or Fraction(*told) == Fraction(*bounded(over, under))


def test_a_number_says_nothing_where_it_is_near_to_a_short_fraction_or_to_the_middle_of_two_steps() -> None:
    third, middle = (1 << FINE) // 3, (1 << (FINE - 65)) + (5 << (FINE - 64))
    assert bounded_near(third, 4) is None
    assert bounded_near(middle + (1 << 40), 1 << 41) is None
    long = (1 << FINE) // (2**89 - 1) * 123_456_789_012_345_678
    assert bounded_near(long, 4) == (round(Fraction(long, 1 << FINE) * GRID), GRID)


def test_of_equal_parts_the_first_is_the_dominant_one() -> None:
    assert dominant_of([(1, 4), (1, 2), (2, 4)]) == ((1, 2), 1)
    assert dominant_of([(0, 1), (0, 3)]) == ((0, 1), 0)
