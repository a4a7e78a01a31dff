"""What the rate of aging means, in cards a day: figures worked out by hand."""

from collections.abc import Mapping

import pytest

from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Pool, Tenant
from fairlead_policy.explain.aging_text import aging_in_words, worth_in_words
from fairlead_testkit.contention_by_core import demand

POOLS = [Pool(name="gpu", members=["sim/gpu"])]
TEAMS = [Tenant(name="team-a", weight=3), Tenant(name="team-b", weight=2), Tenant(name="team-c")]


def words(document: PolicyDocument, capacity: Mapping[str, int]) -> list[str]:
    return worth_in_words(document, "gpu", capacity)


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
