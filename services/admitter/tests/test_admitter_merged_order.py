"""The beginning of merged heads is the beginning of the whole merge, however deep it goes."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.merged_order import MergedOrder, Ranked, take_heads
from fairlead_admitter.observe.decision_gate import PoolHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.instants import HOUR
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import subject_of
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Tenant
from fairlead_policy.levels.window import WindowSize
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.inputs.builders import NOW, a_basis, a_decision, a_job, a_position, a_queue_heads


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


def some_heads(dice: random.Random, cap_hours: float | None) -> tuple[PoolHeads, PoolRules]:
    """The heads of five shards, and the rules by which they are merged."""
    rules = rules_of(cap_hours)
    parts = [shard_positions(dice, shard, rules) for shard in range(5)]
    decisions = tuple(
        a_decision(shard=shard, queue_heads=[a_queue_heads(positions=part, waiting=len(part))])
        for shard, part in enumerate(parts)
    )
    return PoolHeads(basis=a_basis(), decisions=decisions), rules


@given(st.randoms(use_true_random=False), st.integers(1, 20), st.sampled_from([None, 2.0, 100.0]))
def test_every_beginning_is_exact_and_the_last_one_is_whole(
    dice: random.Random, size: int, cap_hours: float | None
) -> None:
    heads, rules = some_heads(dice, cap_hours)
    whole = merge_positions([positions for _, positions in heads.parts()], rules, NOW)
    merged = MergedOrder(heads, rules, NOW, size)
    beginning = merged.beginning
    while not beginning.whole:
        assert beginning.positions == whole[: len(beginning.positions)]
        beginning = merged.deepen()
    assert beginning.positions == whole
    assert {position.uid for position in whole} == set(beginning.origins)


@given(st.randoms(use_true_random=False), st.integers(1, 100), st.integers(0, 3))
def test_a_window_is_the_same_however_deep_others_have_looked_before(
    dice: random.Random, size: int, deeper: int
) -> None:
    heads, rules = some_heads(dice, None)
    window_size = WindowSize(least=size, most=2 * size)
    facts = ClusterFacts("c1")
    jobs = [
        a_job(one.uid, uid=one.uid, scope=one.scope) for _, positions in heads.parts() for one in positions
    ]
    facts.apply({subject_of(job): job for job in jobs})
    merged = MergedOrder(heads, rules, NOW, size=1)
    first = window_of(merged, heads, facts, window_size)
    for _ in range(deeper):
        merged.deepen()
    assert window_of(merged, heads, facts, window_size) == first


def test_a_beginning_ends_where_a_part_may_go_on_however_deep_another_is() -> None:
    """Where much is free a shard's heads may go deeper, and another's not yet."""
    parts = [
        [a_position(uid=f"{shard}-{number}", tenant="t0", use=shard + 2 * number) for number in range(most)]
        for shard, most in enumerate((8, 3))
    ]

    def known(waiting: int) -> list[str]:
        decisions = tuple(
            a_decision(shard=shard, queue_heads=[a_queue_heads(positions=part, waiting=most)])
            for shard, (part, most) in enumerate(zip(parts, (8, waiting), strict=True))
        )
        merged = MergedOrder(PoolHeads(basis=a_basis(), decisions=decisions), rules_of(None), NOW, size=3)
        return [position.uid for position in merged.known().positions]

    assert known(4) == ["0-0", "1-0", "0-1", "1-1", "0-2", "1-2"]
    assert len(known(3)) == 11


def window_of(
    merged: MergedOrder, heads: PoolHeads, facts: ClusterFacts, window_size: WindowSize
) -> list[Ranked]:
    """The window, as deep as it is needed."""
    window = take_heads(merged.beginning, heads.waiting("c1"), facts, window_size)
    while not window.closed:
        window = take_heads(merged.deepen(), heads.waiting("c1"), facts, window_size)
    return window.jobs
