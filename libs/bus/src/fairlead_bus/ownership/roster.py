"""Live members and leaders, as the `members` bucket has them."""

import asyncio
from collections.abc import Callable

from fairlead_bus.connection.bus import Bus
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_bus.streams.mirror import Mirror
from fairlead_contracts.base.codec import Codec
from fairlead_contracts.messages.members import LEADER_LEASE, MEMBER_LEASE, LeaderLease, MemberLease
from fairlead_contracts.subjects import kv_subject, leader_key, member_key
from fairlead_contracts.topology import MEMBERS


class Roster:
    """A mirror of all leases. A lease ends when its key is deleted or when the server's marker says that it expired.

    Trap: leases that were queued while this process was paused look fresh when it goes on. Judge yourself by your own
    last acked renewal (`Membership.trusted`, `Leadership.epoch`), never by the roster.

    Args:
        wake: set when there is something to look at.
        each_renewal: whether a lease that was only renewed sets `wake`, as each is every second. Whoever asks only who
            lives and holds what need not look then.
    """

    def __init__(self, bus: Bus, *, wake: asyncio.Event, each_renewal: bool = True) -> None:
        def mirror[L](keys: str, codec: Codec[L], repeats: Callable[[L, L], bool]) -> Mirror[L]:
            return Mirror(
                bus,
                stream=bucket_stream(MEMBERS),
                filter=kv_subject(MEMBERS, keys),
                codec=codec,
                wake=wake,
                repeats=None if each_renewal else repeats,
            )

        self._members = mirror("member.>", MEMBER_LEASE, _same_member)
        self._leaders = mirror("leader.>", LEADER_LEASE, _same_leader)

    @property
    def complete(self) -> bool:
        """Whether all leases are known."""
        return self._members.complete and self._leaders.complete

    def members(self, role: str) -> dict[str, MemberLease]:
        """The live replicas of a role, by name."""
        prefix = kv_subject(MEMBERS, f"member.{role}.")
        return {
            lease.replica: lease
            for subject, lease in self._members.values.items()
            if subject.startswith(prefix)
        }

    def member(self, role: str, replica: str) -> MemberLease | None:
        """The lease of one replica; None where it has none."""
        return self._members.values.get(kv_subject(MEMBERS, member_key(role, replica)))

    def leader(self, role: str, cluster: str) -> LeaderLease | None:
        """The leader of a role for a cluster; its epoch is 0 until the first renewal."""
        return self._leaders.values.get(kv_subject(MEMBERS, leader_key(role, cluster)))

    def leaders(self, role: str) -> list[LeaderLease]:
        """The leaders of a role, for each cluster where somebody leads."""
        prefix = kv_subject(MEMBERS, f"leader.{role}.")
        return [lease for subject, lease in self._leaders.values.items() if subject.startswith(prefix)]

    async def run(self) -> None:
        """Follows the bucket until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._members.run(), name="roster members")
            group.create_task(self._leaders.run(), name="roster leaders")


def _same_member(before: MemberLease, after: MemberLease) -> bool:
    return (before.replica, before.holdings) == (after.replica, after.holdings)


def _same_leader(before: LeaderLease, after: LeaderLease) -> bool:
    return (before.replica, before.epoch) == (after.replica, after.epoch)
