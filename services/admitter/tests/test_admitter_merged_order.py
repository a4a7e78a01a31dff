"""The beginning of merged heads is the beginning of the whole merge, however deep it goes."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.observe.decision_gate import PoolHeads
from fairlead_contracts.base.instants import HOUR
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Tenant
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.builders import NOW, a_basis, a_decision, a_position, a_queue_heads


def rules_of(cap_hours: float | None) -> PoolRules:
    tenants = [Tenant(name=f"t{number}", weight=1.0 + number) for number in range(6)]
    document = PolicyDocument(
        tenants=tenants, aging=Aging(cap_days=None if cap_hours is None else cap_hours / 24)
    )
    return Rulebook(document, 1).pool_rules("c1/gpu", a_basis().capacity)


def shard_positions(dice: random.Random, shard: int, rules: PoolRules) -> list[Position]:
    positions = [
        a_position(
            uid=f"{shard}-{number}",
            tenant=f"t{shard}",
            use=dice.randrange(8000),
            submitted=NOW - dice.randrange(4 * HOUR),
            job_class=dice.choice(["urgent", "normal"]),
        )
        for number in range(dice.choice([0, 1, 5, 40]))
    ]
    # As of the instant at which the shard decided: an hour ago.
    return merge_positions([positions], rules, NOW - HOUR)


@given(st.randoms(use_true_random=False), st.integers(1, 20), st.sampled_from([None, 2.0, 100.0]))
def test_every_beginning_is_exact_and_the_last_one_is_whole(
    dice: random.Random, size: int, cap_hours: float | None
) -> None:
    rules = rules_of(cap_hours)
    decisions = tuple(
        a_decision(shard=shard, queue_heads=[a_queue_heads(positions=shard_positions(dice, shard, rules))])
        for shard in range(5)
    )
    heads = PoolHeads(basis=a_basis(), decisions=decisions)
    whole = merge_positions([positions for _, positions in heads.parts()], rules, NOW)
    merged = MergedOrder(heads, rules, NOW, size)
    beginning = merged.beginning
    while not beginning.whole:
        assert beginning.positions == whole[: len(beginning.positions)]
        beginning = merged.deepen()
    assert beginning.positions == whole
    assert {position.uid for position in whole} == set(beginning.origins)
