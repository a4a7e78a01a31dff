"""Aging as `explain` tells it: the bound in days, to the instant, and so that it holds; the rate in cards a day, by hand."""

import random
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import DAY, HOUR, Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Pool, Tenant
from fairlead_policy.explain.aging_text import aging_by_tenant, aging_in_words
from fairlead_policy.explain.bound_text import bound_in_words, bound_of
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.contention_by_core import demand
from fairlead_testkit.oracles.told_what_if import told_what_if, what_if_in
from fairlead_testkit.oracles.waiting import a_waiting_job

rngs = st.integers(0, 2**32).map(random.Random)
FAR = [Tenant(name=name) for name in ("ada", "bob", "cyd")]
TREE = [
    Tenant(name="org"),
    Tenant(name="ada", parent="org", weight=2),
    Tenant(name="bob", parent="org"),
    Tenant(name="cyd", weight=3),
]


def rules(tenants: list[Tenant] = FAR, aging: Aging | None = None, **keys: object) -> PoolRules:
    document = PolicyDocument(
        aging=aging or Aging(),
        pools=[Pool(name="gpu", members=["sim/gpu"])],
        tenants=tenants,
        **keys,  # type: ignore[arg-type] # by name, of the right types
    )
    return Rulebook(document, 1).pool_rules("gpu", demand(24))


def pool(scored_by: PoolRules) -> PoolFacts:
    """`ada` holds 18 of 24 cards, two and a quarter of the third that it is entitled to, and waits for one more."""
    order = PoolFacts(scored_by)
    order.run("r", "ada", demand(18))
    order.wait(a_waiting_job("old", tenant="ada", demand=demand(1)))
    return order


def position_in(order: PoolFacts, uid: str, now: Micros = 0) -> Position:
    found = order.position(uid, now)
    assert found is not None
    return found


def told(order: PoolFacts, uid: str, now: Micros = 0) -> str:
    position = position_in(order, uid, now)
    found = what_if_in(order.at(now), position)
    return "\n".join(told_what_if(found, position, order.rules, now))


def test_ten_days_for_each_part_are_told_with_the_day() -> None:
    assert (
        "No normal job that is submitted from 1970-01-23 12:00 UTC on (22.5 days after it) passes it, as long as its own "
        "tenant gets nothing else before it. 10 days of waiting make up for one whole part, and its tag is 2.25."
    ) in told(pool(rules()), "old").splitlines()


def test_the_bound_is_met_to_the_microsecond() -> None:
    order = pool(rules())
    bound = bound_of(position_in(order, "old"), order.rules)
    assert bound is not None
    assert bound == Fraction(225, 10) * DAY
    for later, first in ((bound - 1, "new"), (bound, "old")):
        order.wait(a_waiting_job("new", tenant="bob", submitted=later, demand=demand(1)))
        assert order.at(later).uids()[0] == first
        order.forget("new")


@given(rngs)
@settings(max_examples=cases(0.3))
def test_nobody_submitted_beyond_the_bound_stands_before_a_job_in_trees_too(rng: random.Random) -> None:
    scored_by = rules(rng.choice([FAR, TREE]), Aging(entitlement_per_day=rng.choice([0.1, 2.0])))
    order = PoolFacts(scored_by)
    for number in range(rng.randrange(2, 14)):
        tenant, size = rng.choice(("ada", "bob", "cyd")), rng.randrange(5)
        if rng.random() < 0.4:
            order.run(f"r{number}", tenant, demand(size))
        submitted = rng.randrange(40) * DAY // 2
        order.wait(a_waiting_job(f"u{number:02d}", tenant=tenant, submitted=submitted, demand=demand(size)))
    positions = order.at(40 * DAY).positions()[:]
    for rank, position in enumerate(positions):
        bound = bound_of(position, scored_by)
        assert bound is not None
        assert all(before.submitted - position.submitted < max(bound, 1) for before in positions[:rank])


def test_what_has_nothing_before_it_is_passed_by_nobody() -> None:
    order = PoolFacts(rules())
    order.wait(a_waiting_job("first", tenant="bob", demand=demand(1)))
    assert "No normal job that is submitted later passes it" in told(order, "first")


def test_beyond_a_cap_there_is_no_bound_and_that_is_told() -> None:
    long, short = pool(rules(aging=Aging(cap_days=30))), pool(rules(aging=Aging(cap_days=14)))
    assert "and that is within the cap of 30 d." in told(long, "old")
    assert "Later jobs may pass it for ever: 10 days of waiting" in told(short, "old")
    assert "Waiting counts no further than the cap of 14 d." in told(short, "old")


def test_where_there_is_no_bound_none_is_told() -> None:
    for scored_by in (
        rules(aging=Aging(entitlement_per_day=0)),
        rules([Tenant(name="ada", weight=0), Tenant(name="bob")]),
        rules(class_mode="additive", class_weights={"urgent": 0, "approved": 1, "normal": 2}),
    ):
        assert bound_in_words(position_in(pool(scored_by), "old"), scored_by) is None


def test_a_bound_of_less_than_a_day_is_told_in_hours_rounded_up() -> None:
    order = pool(rules(aging=Aging(entitlement_per_day=10)))
    assert "2.4 h of waiting make up for one whole part" in told(order, "old")
    assert "(5.4 h after it)" in told(order, "old")
    assert bound_of(position_in(order, "old"), order.rules) == Fraction(54, 10) * HOUR


def test_a_bound_beyond_the_last_day_of_the_calendar_is_told_without_a_day() -> None:
    scored_by = rules(aging=Aging(entitlement_per_day=1e-9))
    words = told(pool(scored_by), "old")
    assert "No normal job that is submitted 2.25e+09 days after it, or later, passes it" in words


POOLS = [Pool(name="gpu", members=["sim/gpu"])]
TEAMS = [Tenant(name="team-a", weight=3), Tenant(name="team-b", weight=2), Tenant(name="team-c")]


def words(document: PolicyDocument, capacity: Mapping[str, int]) -> list[str]:
    return aging_by_tenant(document, "gpu", capacity)


def test_a_day_is_told_in_parts_and_in_cards() -> None:
    document = PolicyDocument(pools=POOLS, tenants=TEAMS)
    assert aging_in_words(document) == (
        "aging: a day of waiting is worth 0.1 of what a tenant is entitled to: 10 days make up for its whole part"
    )
    # A tenth of 30, 20 and 10 cards.
    assert words(document, demand(60)) == [
        "pool gpu of 60 gpu: a day is worth 3 gpu for team-a, 2 gpu for team-b, 1 gpu for team-c"
    ]
    assert words(document, {}) == [
        "pool gpu: a day is worth 5.0 % of it for team-a, 3.3 % of it for team-b, 1.7 % of it for team-c"
    ]
    # Memory is never what is told of where there are cards or cores.
    assert "of 8 cpu" in words(document, {"memory": 2**40, "cpu": 8000})[0]


def test_many_tenants_and_few_cards_are_told_with_how_to_choose() -> None:
    """A thousand tenants on 512 cards: a job of 8 is 16 parts, 156 days."""
    thousand = PolicyDocument(pools=POOLS, tenants=[Tenant(name=f"t{number:03d}") for number in range(1000)])
    of_all, of_one = words(thousand, demand(512))
    assert of_all.endswith("0.0512 gpu for t005, for 994 more down to 0.0512 gpu")
    assert of_one == (
        "pool gpu: a job of 8 gpu is 15.6 parts of t000, 156 days of waiting: waiting hardly counts there. Choose the "
        "rate by how many are active at a time: where some 20 of 1000 equal parts are, `entitlement_per_day: 5` makes a day "
        "worth 0.1 of what each then gets"
    )
    assert "t000 is entitled to 0.1 % of it" in words(thousand, {})[1]


def test_tenants_of_equal_parts_are_told_by_name_and_one_that_is_left_is_counted() -> None:
    tenants = [Tenant(name=name) for name in "gfedcba"]
    of_all, *_ = words(PolicyDocument(pools=POOLS, tenants=tenants), demand(70))
    assert "is worth 1 gpu for a, 1 gpu for b, " in of_all
    assert of_all.endswith(" 1 gpu for f, for 1 more down to 1 gpu")


def test_tenants_that_are_not_listed_and_those_below_others_are_told() -> None:
    tree = [
        Tenant(name="org"),
        Tenant(name="team", parent="org", weight=3),
        Tenant(name="rest", parent="org"),
    ]
    document = PolicyDocument(pools=POOLS, tenants=tree, unlisted_weight=1.0)
    # org is 1 of 11: a day is worth a tenth of 3/4 and 1/4 of 100 of its 1100 cards; who is not listed has 100.
    assert words(document, demand(1100)) == [
        "pool gpu of 1,100 gpu: a day is worth 10 gpu for each unlisted tenant, 7.5 gpu for team, 2.5 gpu for rest"
    ]


def test_a_rate_of_nothing_a_cap_and_the_weights_of_older_controllers_are_told() -> None:
    nothing = PolicyDocument(pools=POOLS, tenants=TEAMS, aging=Aging(entitlement_per_day=0))
    assert aging_in_words(nothing).startswith("aging: waiting is worth nothing")
    assert words(nothing, demand(60)) == []
    capped = PolicyDocument(tenants=TEAMS, aging=Aging(cap_days=14))
    assert "for up to 14 days" in aging_in_words(capped)
    older = PolicyDocument(
        pools=POOLS, tenants=TEAMS, divide_by="weight", aging=Aging(entitlement_per_day=8640)
    )
    assert "8640 times the whole pool, divided by a tenant's weight" in aging_in_words(older)
    [of_all] = words(older, demand(60))
    assert of_all.startswith("pool gpu of 60 gpu: a day is worth more than the whole pool for team-a, ")


@pytest.mark.parametrize("tenants", [[], [Tenant(name="a", weight=0)]])
def test_where_nobody_has_a_part_nothing_is_told(tenants: list[Tenant]) -> None:
    found = words(PolicyDocument(pools=POOLS, tenants=tenants), demand(60))
    assert found == [] or "for a" in found[0]
