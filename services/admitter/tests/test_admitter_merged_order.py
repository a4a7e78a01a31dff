"""The beginning of a merged front is the beginning of the whole merge, however deep it goes."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.observe.decision_gate import PoolHeads
from fairlead_contracts.base.instants import HOUR
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Tenant
from fairlead_policy.order.merging import merge_places
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.builders import NOW, a_basis, a_decision, a_front, a_place


def rules_of(cap_hours: float | None) -> PoolRules:
    tenants = [Tenant(name=f"t{number}", weight=1.0 + number) for number in range(6)]
    document = PolicyDocument(
        tenants=tenants, aging=Aging(cap_days=None if cap_hours is None else cap_hours / 24)
    )
    return Rulebook(document, 1).pool_rules("c1/gpu", a_basis().capacity)


def shard_front(dice: random.Random, shard: int, rules: PoolRules) -> list[Place]:
    places = [
        a_place(
            uid=f"{shard}-{number}",
            tenant=f"t{shard}",
            use=dice.randrange(8000),
            submitted=NOW - dice.randrange(4 * HOUR),
            job_class=dice.choice(["urgent", "normal"]),
        )
        for number in range(dice.choice([0, 1, 5, 40]))
    ]
    # As of the instant at which the shard decided: an hour ago.
    return merge_places([places], rules, NOW - HOUR)


@given(st.randoms(use_true_random=False), st.integers(1, 20), st.sampled_from([None, 2.0, 100.0]))
def test_every_beginning_is_exact_and_the_last_one_is_whole(
    dice: random.Random, size: int, cap_hours: float | None
) -> None:
    rules = rules_of(cap_hours)
    decisions = tuple(
        a_decision(shard=shard, fronts=[a_front(places=shard_front(dice, shard, rules))])
        for shard in range(5)
    )
    front = PoolHeads(basis=a_basis(), decisions=decisions)
    whole = merge_places([places for _, places in front.parts()], rules, NOW)
    merged = MergedOrder(front, rules, NOW, size)
    beginning = merged.beginning
    while not beginning.whole:
        assert beginning.places == whole[: len(beginning.places)]
        beginning = merged.deepen()
    assert beginning.places == whole
    assert {place.uid for place in whole} == set(beginning.origins)
