"""The bound in a tree: what may pass a waiting job is the sum over the levels up to where the two ways meet."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job

rngs = st.integers(0, 2**32).map(random.Random)
TREES: tuple[dict[str, str], ...] = (
    {"a": "A", "b": "A", "c": "B"},
    {"a": "X", "b": "X", "X": "A", "c": "A", "d": "B"},
    {"a": "X", "b": "Y", "X": "A", "Y": "A", "A": "O", "c": "O"},
)

LEAVES = ("a", "b", "c", "d")
RATE = Fraction(1, 8)


def random_pool(rng: random.Random, cap: int | None = None) -> PoolFacts:
    parents = rng.choice(TREES)
    weights = {name: Fraction(rng.choice([1, 1, 2, 3])) for name in sorted({*LEAVES, *parents.values()})}
    rules = PoolRules(
        capacity={"cpu": 12, "gpu": 8},
        classes=("urgent", "normal"),
        rate=RATE,
        cap=cap,
        entitlements=weights,
        parents=parents,
    )
    order = PoolFacts(rules)
    for number in range(rng.randrange(3, 9)):
        order.wait(
            a_waiting_job(
                f"u{number:02d}",
                tenant=rng.choice(LEAVES),
                job_class=rng.choice(["urgent", "normal", "normal", "normal"]),
                submitted=rng.randrange(16),
                demand={"cpu": rng.randrange(4), "gpu": rng.randrange(3)},
            )
        )
    for number in range(rng.randrange(5)):
        order.run(f"r{number}", rng.choice(LEAVES), {"cpu": rng.randrange(4), "gpu": rng.randrange(3)})
    return order


def levels(position: Position, rules: PoolRules) -> Iterator[tuple[str, Fraction]]:
    """The tenants on the job's way up, the leaf first, each with its exact start tag."""
    top = position.top or position.tenant
    known = [
        *((one.tenant, one.dominant, one.use) for one in position.within),
        (top, position.dominant, position.use),
    ]
    for tenant, dominant, use in known:
        tag = Fraction(use, rules.capacity[dominant]) if use else Fraction(0)
        yield tenant, tag / rules.entitlement_of(tenant)


def below(j: Position, k: Position, rules: PoolRules) -> list[Fraction]:
    """The tags of j's way up to where it meets k's."""
    others = rules.way_up(k.tenant)
    return [tag for _, tag in takewhile(lambda level: level[0] not in others, levels(j, rules))]


def passed(positions: list[Position]) -> Iterator[tuple[Position, Position]]:
    """Each older job with each later one of its class that stands before it."""
    for rank, k in enumerate(positions):
        for j in positions[rank + 1 :]:
            if k.submitted > j.submitted and k.job_class == j.job_class:
                yield j, k


@given(rngs)
@settings(max_examples=cases())
def test_a_later_job_passes_only_within_the_sum_over_the_levels(rng: random.Random) -> None:
    """The bound holds with a cap, too, while the older job is below it."""
    cap, now = rng.choice([None, rng.randrange(1, 16)]), rng.randrange(12, 24)
    order = random_pool(rng, cap)
    for j, k in passed(order.at(now).positions()[:]):
        if cap is None or now - j.submitted <= cap:
            assert k.submitted - j.submitted < sum(below(j, k, order.rules), Fraction(0)) / RATE


def test_no_single_level_is_a_bound() -> None:
    """a's 4 of 8 GPUs let its sibling's later job go first, and by that one's key j is passed from outside.

    Each level alone is worth 4 units of waiting, and k came 6 after j: only the sum, 8, bounds it.
    """
    parents = {"a": "A", "b": "A"}
    ones = {name: Fraction(1) for name in ("a", "b", "A", "c")}
    order = PoolFacts(
        PoolRules(capacity={"gpu": 8}, classes=("normal",), rate=RATE, entitlements=ones, parents=parents)
    )
    order.run("r", "a", {"gpu": 4})
    for uid, tenant, submitted in (("j", "a", 0), ("i", "b", 3), ("k", "c", 6)):
        order.wait(a_waiting_job(uid, tenant=tenant, submitted=submitted, demand={}))
    k, i, j = order.at(6).positions()[:]
    assert (k.uid, i.uid, j.uid) == ("k", "i", "j")
    assert [tag / RATE for tag in below(j, k, order.rules)] == [4, 4]
