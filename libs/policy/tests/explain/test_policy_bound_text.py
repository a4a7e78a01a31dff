"""The bound as `explain` tells it: in days, to the instant, and so that it holds."""

import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.instants import DAY, HOUR, Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Pool, Tenant
from fairlead_policy.explain.bound_text import bound_in_words, bound_of
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.cases import cases
from fairlead_testkit.contention_by_core import demand
from fairlead_testkit.told_what_if import told_prospects, what_if_in
from fairlead_testkit.waiting import a_waiting_job

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


def place_in(order: PoolFacts, uid: str, now: Micros = 0) -> Place:
    found = order.place(uid, now)
    assert found is not None
    return found


def told(order: PoolFacts, uid: str, now: Micros = 0) -> str:
    place = place_in(order, uid, now)
    found = what_if_in(order.at(now), place)
    return "\n".join(told_prospects(found, place, order.rules, now))


def test_ten_days_for_each_part_are_told_with_the_day() -> None:
    assert (
        "No normal job that is submitted from 1970-01-23 12:00 UTC on (22.5 days after it) passes it, as long as its own "
        "tenant gets nothing else before it. 10 days of waiting make up for one whole part, and its tag is 2.25."
    ) in told(pool(rules()), "old").splitlines()


def test_the_bound_is_met_to_the_microsecond() -> None:
    order = pool(rules())
    bound = bound_of(place_in(order, "old"), order.rules)
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
    places = order.at(40 * DAY).places()[:]
    for rank, place in enumerate(places):
        bound = bound_of(place, scored_by)
        assert bound is not None
        assert all(before.submitted - place.submitted < max(bound, 1) for before in places[:rank])


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
        assert bound_in_words(place_in(pool(scored_by), "old"), scored_by) is None


def test_a_bound_of_less_than_a_day_is_told_in_hours_rounded_up() -> None:
    order = pool(rules(aging=Aging(entitlement_per_day=10)))
    assert "2.4 h of waiting make up for one whole part" in told(order, "old")
    assert "(5.4 h after it)" in told(order, "old")
    assert bound_of(place_in(order, "old"), order.rules) == Fraction(54, 10) * HOUR


def test_a_bound_beyond_the_last_day_of_the_calendar_is_told_without_a_day() -> None:
    scored_by = rules(aging=Aging(entitlement_per_day=1e-9))
    words = told(pool(scored_by), "old")
    assert "No normal job that is submitted 2.25e+09 days after it, or later, passes it" in words
