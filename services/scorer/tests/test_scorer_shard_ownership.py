"""The ownership of a shard against a scripted subject: level-triggered, one publish at a time, stepping down, trying again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fairlead_bus import LostOwnershipError, PayloadTooLargeError, PublishUncertainError
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.messages.decisions import DECISION, Decision
from fairlead_contracts.messages.members import LeaderLease
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT, DecisionContent
from fairlead_scorer.decide.pace import LATE_TIMES, LONGEST_PACE_SECONDS, rest_after
from fairlead_scorer.decide.shard_ownership import ShardDecision, ShardName, ShardOwnership
from fairlead_testkit import eventually
from fairlead_testkit.inputs.builders import NOW, a_basis, a_decision, a_tenant_share
from fairlead_testkit.timing.in_hand import beside

SHARD = ShardName("c1/gpu", 3)


class ScriptedSubject:
    """A decision subject whose answers the test writes; `gate` holds a publish on its way."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.claims = 0
        self.written: list[Decision] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.under_way = 0
        self.confirmed = 0
        self.taken = False

    async def claim(self, claim: Callable[[], bytes]) -> int:
        self.claims += 1
        self.written.append(DECISION.decode(claim()))
        self.epoch = 100 * self.claims
        return self.epoch

    async def publish(self, payload: bytes) -> int:
        self.under_way += 1
        assert self.under_way == 1
        try:
            await self.gate.wait()
            if self.failures:
                error = self.failures.pop(0)
                if isinstance(error, LostOwnershipError):
                    self.epoch = None
                raise error
            self.written.append(DECISION.decode(payload))
            return len(self.written)
        finally:
            self.under_way -= 1

    async def confirm(self) -> None:
        self.confirmed += 1
        if self.taken:
            self.taken = False
            self.epoch = None
            raise LostOwnershipError("taken")


class Decider:
    """Decides the version that it has; keeps the limits it was given."""

    def __init__(self) -> None:
        self.version = 1
        self.behind = True
        self.trusted = True
        self.limits: list[int] = []
        self.rest = 0.0

    def change(self) -> None:
        self.version += 1
        self.behind = True

    def may_publish(self, shard: ShardName) -> bool:
        return self.trusted and shard == SHARD

    def is_behind(self, shard: ShardName) -> bool:
        return self.behind and shard == SHARD

    def decide(self, shard: ShardName, limit: int) -> ShardDecision:
        assert shard == SHARD
        self.behind = False
        self.limits.append(limit)
        content = DecisionContent(
            basis=a_basis(), queue_heads=[], standings=[a_tenant_share(waiting=self.version)]
        )
        return ShardDecision(content=content, state_seq=self.version, clusters=("c1",))

    def pace(self, shard: ShardName) -> float:
        assert shard == SHARD
        return self.rest

    def put_back(self, shard: ShardName) -> None:
        assert shard == SHARD
        self.behind = True

    def written(self, shard: ShardName, decided: ShardDecision, epoch: int, turn: int) -> bytes:
        return to_packed(
            a_decision(
                pool=shard.pool,
                shard=shard.number,
                owner="me",
                epoch=epoch,
                turn=turn,
                revision=dict.fromkeys(decided.clusters, decided.state_seq),
                standings=decided.content.standings,
            )
        )


class OwnershipLog:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def claimed(self, shard: ShardName, epoch: int) -> None:
        self.lines.append(f"claimed {shard} {epoch}")

    def lost(self, shard: ShardName) -> None:
        self.lines.append(f"lost {shard}")

    def published(self, shard: ShardName, decided: ShardDecision) -> None:
        self.lines.append(f"published {shard} {decided.state_seq}")

    def failed(self, shard: ShardName, error: Exception) -> None:
        self.lines.append(f"failed {shard} {type(error).__name__}")


class OwnershipHarness:
    """An ownership and all that it deals with."""

    def __init__(self, quiet_seconds: float = 0.02) -> None:
        self.subject, self.decider, self.observer = ScriptedSubject(), Decider(), OwnershipLog()
        self.changed_hands = 0
        self.ownership = ShardOwnership(
            SHARD,
            lambda: self.subject,
            self.decider,
            self.observer,
            rest=0.01,
            confirm_after=lambda: quiet_seconds,
            changed_hands=self._note,
        )

    def _note(self) -> None:
        self.changed_hands += 1

    def versions(self) -> list[tuple[int, int, int]]:
        """(epoch, turn, version) of each write."""
        return [
            (decision.epoch, decision.turn, decision.standings[0].waiting)
            for decision in self.subject.written
        ]

    async def wrote(self, *versions: tuple[int, int, int]) -> None:
        await eventually(lambda: self.versions() == list(versions), 20, what=f"{versions} are written")


@asynccontextmanager
async def a_stand(quiet_seconds: float = 0.02) -> AsyncIterator[OwnershipHarness]:
    stand = OwnershipHarness(quiet_seconds)
    async with beside(stand.ownership.run()):
        stand.ownership.look()
        yield stand


async def test_the_claim_holds_the_decision_and_the_decision_follows_under_its_epoch() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        assert stand.ownership.owned
        assert stand.observer.lines == ["claimed c1/gpu/3 100", "published c1/gpu/3 1"]


async def test_a_shard_changes_hands_when_it_is_claimed_or_lost_and_not_with_each_decision() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        await eventually(lambda: stand.changed_hands == 1, 20, what="it is claimed")
        stand.decider.change()
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 2, 2))
        await eventually(lambda: stand.ownership.caught_up, 20, what="it is decided")
        assert stand.changed_hands == 1
        stand.subject.failures.append(LostOwnershipError("somebody else"))
        stand.decider.change()
        stand.ownership.look()
        await eventually(lambda: stand.changed_hands > 1, 20, what="it is lost")


async def test_what_changes_during_a_slow_publish_is_published_after_it_the_newest_alone() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.subject.gate.clear()
        stand.decider.change()
        stand.ownership.look()
        await eventually(lambda: stand.subject.under_way == 1)
        for _ in range(5):
            stand.decider.change()
            stand.ownership.look()
        assert not stand.ownership.caught_up
        stand.subject.gate.set()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 2, 2), (100, 3, 7))
        assert stand.ownership.decided_seq == 7


async def test_the_next_decision_waits_as_long_as_its_decider_says() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.decider.rest = 0.1
        stand.decider.change()
        stand.ownership.look()
        before = asyncio.get_running_loop().time()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 2, 2))
        stand.decider.change()
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 2, 2), (100, 3, 3))
        assert asyncio.get_running_loop().time() - before >= stand.decider.rest


def test_shards_are_decided_more_seldom_while_levels_of_their_clusters_come_too_late() -> None:
    def leader(cluster: str, late_by: float) -> LeaderLease:
        return LeaderLease(
            role="admitter", cluster=cluster, replica="a", epoch=1, renewed=NOW, late_by=late_by
        )

    def rest(least: float, leases: list[LeaderLease], clusters: list[str], at: float = 7.0) -> float:
        return round(rest_after(least, leases, clusters, from_seconds(at)), 6)

    assert rest(0.02, [], ["c1"]) == 0.02
    assert rest(0.02, [leader("c1", 0.0), leader("c2", 0.2)], ["c1"]) == 0.02
    assert rest(0.02, [leader("c1", 0.1), leader("c2", 0.2)], ["c1", "c2"], 0.0) == LATE_TIMES * 0.2
    assert rest(0.02, [leader("c1", 30.0)], ["c1"], 8.0) == LONGEST_PACE_SECONDS
    assert rest(0.02, [leader("c1", 30.0)], ["c1"], 7.3) == 0.7, "all shards rest until the same instants"
    assert rest(0.02, [leader("c1", 30.0)], ["c1"], 7.99) == 0.02, "and never for less than the least"
    assert rest(3.0, [leader("c1", 30.0)], ["c1"]) == 3.0


async def test_equal_content_is_not_published_again_but_counts_as_decided() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.decider.behind = True
        assert not stand.ownership.caught_up
        stand.ownership.look()
        await eventually(lambda: stand.ownership.caught_up, 20, what="it counts as decided")
        assert len(stand.subject.written) == 2


async def test_after_a_doubt_equal_content_is_published_again() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.ownership.doubt()
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 2, 1))


async def test_a_lost_shard_is_claimed_again_under_a_new_epoch() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.subject.failures.append(LostOwnershipError("somebody else"))
        stand.decider.change()
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1), (0, 0, 2), (200, 1, 2))
        assert "lost c1/gpu/3" in stand.observer.lines


async def test_a_lost_shard_that_was_given_up_is_not_claimed_again() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.subject.failures.append(LostOwnershipError("somebody else"))
        stand.decider.change()
        stand.ownership.look()
        stand.ownership.give_up()
        await eventually(lambda: not stand.ownership.owned)
        assert stand.subject.claims == 1


@pytest.mark.parametrize("error", [PublishUncertainError("no ack"), PayloadTooLargeError(10**6, 0)])
async def test_a_publish_that_failed_is_tried_again(error: Exception) -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.subject.failures.append(error)
        stand.decider.change()
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1), (100, 3, 2))


async def test_a_payload_that_was_too_large_is_decided_with_a_smaller_limit() -> None:
    async with a_stand() as stand:
        stand.subject.failures.append(PayloadTooLargeError(900_000, 500_000))
        await stand.wrote((0, 0, 1), (100, 2, 1))
        assert stand.decider.limits == [PAYLOAD_LIMIT, PAYLOAD_LIMIT // 2]


async def test_nothing_leaves_while_it_may_not() -> None:
    stand = OwnershipHarness()
    stand.decider.trusted = False
    async with beside(stand.ownership.run()):
        stand.ownership.look()
        stand.decider.trusted = True
        assert stand.subject.written == []
        stand.ownership.look()
        await stand.wrote((0, 0, 1), (100, 1, 1))


async def test_a_shard_that_is_given_up_ends_its_ownership() -> None:
    stand = OwnershipHarness()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(stand.ownership.run())
        stand.ownership.give_up()
    assert stand.subject.claims == 0


async def test_a_quiet_owner_looks_whether_the_shard_is_its_own_and_claims_it_anew_where_it_is_not() -> None:
    async with a_stand() as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        await eventually(lambda: stand.subject.confirmed >= 2)
        assert stand.ownership.owned
        stand.subject.taken = True
        await stand.wrote((0, 0, 1), (100, 1, 1), (0, 0, 1), (200, 1, 1))
        assert "lost c1/gpu/3" in stand.observer.lines


async def test_an_owner_looks_soon_after_its_claim_as_a_late_one_of_another_may_have_come_after_it() -> None:
    async with a_stand(quiet_seconds=3600.0) as stand:
        await stand.wrote((0, 0, 1), (100, 1, 1))
        stand.subject.taken = True
        await stand.wrote((0, 0, 1), (100, 1, 1), (0, 0, 1), (200, 1, 1))
        await eventually(lambda: stand.subject.confirmed == 2)  # the second claim is looked at, too
        assert stand.ownership.owned
