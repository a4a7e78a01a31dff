"""Decisions that count, and the time from which a pool has an order at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.observe.decision_gate import (
    DecisionGate,
    DecisionVerdict,
    Doubt,
    Holders,
    PoolHeads,
    UnsettledPool,
)
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.members import MemberLease
from fairlead_testkit.inputs.builders import (
    a_basis,
    a_decision,
    a_holding,
    a_member,
    a_position,
    a_queue_heads,
)

POOL = "c1/gpu"


def lease(replica: str, shards: list[int], *, current: bool = True) -> MemberLease:
    return a_member(replica=replica, holdings=[a_holding(pool=POOL, shards=shards, current=current)])


def claim(shard: int, owner: str) -> Decision:
    return a_decision(shard=shard, owner=owner, epoch=0, turn=0, basis=None, queue_heads=[], revision={})


def settled(gate: DecisionGate, *leases: MemberLease, policy: int = 1) -> PoolHeads | UnsettledPool:
    """The pool's heads as somebody asks who looks again and again: leases that stand are the same value each time."""
    holders = HELD_BY_BOTH if leases == BOTH else Holders(leases)
    return gate.settle(POOL, shards=2, policy=policy, holders=holders)


def two_shards() -> DecisionGate:
    gate = DecisionGate()
    gate.accept(a_decision(shard=0, owner="a"))
    gate.accept(a_decision(shard=1, owner="b"))
    return gate


BOTH = (lease("a", [0]), lease("b", [1]))
HELD_BY_BOTH = Holders(BOTH)


def test_a_pool_is_looked_at_anew_only_once_something_changed() -> None:
    gate = two_shards()
    heads = settled(gate, *BOTH)
    assert settled(gate, *BOTH) is heads
    assert settled(gate, *BOTH, policy=2) == UnsettledPool(doubt=Doubt.OTHER_POLICY, shard=0, owner="a")
    assert settled(gate, BOTH[0]) == UnsettledPool(doubt=Doubt.OWNER_GONE, shard=1, owner="b")
    assert settled(gate, *BOTH) == heads
    newer = a_decision(shard=1, owner="b", turn=9)
    gate.accept(newer)
    found = settled(gate, *BOTH)
    assert isinstance(found, PoolHeads)
    assert found.decisions[1] is newer
    gate.withdraw(POOL, 1)
    assert settled(gate, *BOTH) == UnsettledPool(doubt=Doubt.MISSING, shard=1)


def test_a_pool_is_settled_once_every_shard_was_decided_by_a_live_owner() -> None:
    gate = DecisionGate()
    gate.accept(a_decision(shard=0, owner="a"))
    assert settled(gate, *BOTH) == UnsettledPool(doubt=Doubt.MISSING, shard=1)
    gate.accept(a_decision(shard=1, owner="b"))
    heads = settled(gate, *BOTH)
    assert isinstance(heads, PoolHeads)
    assert [decision.shard for decision in heads.decisions] == [0, 1]


@pytest.mark.parametrize(
    ("leases", "policy", "doubt"),
    [
        ((lease("a", [0]),), 1, Doubt.OWNER_GONE),
        ((lease("a", [0]), lease("b", [])), 1, Doubt.NOT_HELD),
        ((lease("a", [0, 1]), lease("b", [])), 1, Doubt.NOT_HELD),
        ((lease("a", [0]), lease("b", [1], current=False)), 1, Doubt.NOT_CURRENT),
        (BOTH, 2, Doubt.OTHER_POLICY),
    ],
)
def test_an_owner_that_may_not_speak_unsettles_the_pool(
    leases: tuple[MemberLease, ...], policy: int, doubt: Doubt
) -> None:
    found = settled(two_shards(), *leases, policy=policy)
    assert isinstance(found, UnsettledPool)
    assert found.doubt is doubt


@pytest.mark.parametrize("other", [{"capacity": {"cpu": 1}}, {"rules": 1}], ids=["capacity", "rules"])
def test_decisions_of_two_capacities_or_of_two_releases_rules_are_not_merged(
    other: dict[str, object],
) -> None:
    gate = two_shards()
    gate.accept(a_decision(shard=1, owner="b", turn=2, basis=a_basis(**other)))
    found = settled(gate, *BOTH)
    assert isinstance(found, UnsettledPool)
    assert found.doubt is Doubt.MIXED_BASIS


def test_lower_epochs_and_turns_are_dropped() -> None:
    gate = DecisionGate()
    assert gate.accept(a_decision(epoch=5, turn=3)) is DecisionVerdict.TAKEN
    assert gate.accept(a_decision(epoch=5, turn=3)) is DecisionVerdict.REPEATED
    assert gate.accept(a_decision(epoch=5, turn=2)) is DecisionVerdict.LOWER_TURN
    assert gate.accept(a_decision(epoch=4, turn=9)) is DecisionVerdict.LOWER_EPOCH
    assert gate.accept(a_decision(epoch=6, turn=1)) is DecisionVerdict.TAKEN
    assert DecisionVerdict.LOWER_EPOCH.dropped
    assert not DecisionVerdict.REPEATED.dropped


def test_a_claim_unsettles_until_its_owner_decides_with_a_higher_epoch() -> None:
    gate = two_shards()
    assert gate.accept(claim(1, "c")) is DecisionVerdict.CLAIM
    assert gate.accept(claim(1, "c")) is DecisionVerdict.REPEATED
    found = settled(gate, *BOTH, lease("c", [1]))
    assert isinstance(found, UnsettledPool)
    assert found.doubt is Doubt.CHANGING_HANDS
    # The former owner has a decision on its way: its epoch ended with the claim.
    assert gate.accept(a_decision(shard=1, owner="b", turn=2)) is DecisionVerdict.LOWER_EPOCH
    assert gate.accept(a_decision(shard=1, owner="c", epoch=9)) is DecisionVerdict.TAKEN
    assert isinstance(settled(gate, lease("a", [0]), lease("c", [1])), PoolHeads)


def test_a_deleted_decision_is_missing_and_its_epoch_still_stands() -> None:
    gate = two_shards()
    gate.withdraw(POOL, 1)
    found = settled(gate, *BOTH)
    assert isinstance(found, UnsettledPool)
    assert found.doubt is Doubt.MISSING
    assert gate.accept(a_decision(shard=1, owner="b", epoch=0, turn=9)) is DecisionVerdict.LOWER_EPOCH


def test_queue_heads_tell_where_each_position_comes_from_and_how_many_wait() -> None:
    gate = DecisionGate()
    here = a_queue_heads(waiting=7, positions=[a_position(uid="x")])
    there = a_queue_heads(cluster="c2", waiting=5, positions=[a_position(uid="y")])
    stuck = a_queue_heads(waiting=3, positions=[a_position(uid="z")], flavorless=True)
    gate.accept(a_decision(shard=0, owner="a", queue_heads=[here, stuck, there]))
    gate.accept(a_decision(shard=1, owner="b", queue_heads=[a_queue_heads(waiting=2, positions=[])]))
    heads = settled(gate, *BOTH)
    assert isinstance(heads, PoolHeads)
    assert heads.waiting("c1") == {"main": 9}, "without whom no flavor takes"
    assert [origin.heads for origin, _ in heads.parts()] == [here, stuck, there]
    again = settled(gate, *BOTH)
    assert isinstance(again, PoolHeads)
    assert heads.same_as(again)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=30))
def test_whatever_arrives_the_highest_epoch_and_turn_seen_is_what_counts(
    stamps: list[tuple[int, int]],
) -> None:
    gate = DecisionGate()
    best: tuple[int, int] | None = None
    for epoch, turn in stamps:
        verdict = gate.accept(a_decision(shard=0, owner="a", epoch=epoch, turn=turn))
        assert (verdict is DecisionVerdict.TAKEN) == (best is None or (epoch, turn) > best)
        best = max(best or (0, 0), (epoch, turn))
    found = gate.settle(POOL, shards=1, policy=1, holders=Holders([lease("a", [0])]))
    if best is None:
        assert isinstance(found, UnsettledPool)
    else:
        assert isinstance(found, PoolHeads)
        assert (found.decisions[0].epoch, found.decisions[0].turn) == best


def test_a_claim_that_holds_its_content_is_no_decision_of_the_past() -> None:
    gate = two_shards()
    content = a_decision(shard=0, owner="new", epoch=0, turn=0)
    assert gate.accept(content) is DecisionVerdict.CLAIM
    assert settled(gate, *BOTH) != UnsettledPool(doubt=Doubt.MISSING, shard=0)
    fresh = DecisionGate()
    assert fresh.accept(content) is DecisionVerdict.TAKEN
