"""Leases in the `members` bucket: which replicas live, and who leads where.

A lease is renewed each second and expires after three. Keys: `member.<role>.<replica>` for replicas that share work,
`leader.<role>.<cluster>` for the one that leads. An owner's lease is also its "alive": quiet and dead differ.
"""

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros

RENEW_SECONDS = 1.0


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """The shards of one pool that a replica owns, and what it has decided from."""

    pool: str
    shards: list[int]
    current: bool
    """Whether its state is complete and the pool's sync marks are current; otherwise its decisions stand
    still."""


class MemberLease(Message, frozen=True, kw_only=True):
    """The lease of one live replica of a role."""

    role: str
    replica: str
    renewed: Micros
    holdings: list[Holding] = []
    state_seq: int = 0
    """The state-stream sequence up to which the replica has decided."""


class ReservedStarts(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"why_none": "obstacle"}
):
    """An admitter's promises in a pool of its cluster (reserve mode). Jobs by uid."""

    pool: str
    why_not: str = ""
    """Reason for which nothing can be promised there although the policy wants it; empty where promises can
    be made."""
    head: str | None = None
    """The first job that does not fit; None where all of them do."""
    shadow: Micros | None = None
    """Instant at which the head starts at the latest; None where it is promised no start."""
    why_none: str = ""
    """Reason for which the head is promised no start, in words."""
    in_its_way: list[str] = []
    """The runs of which nobody knows the end, where that is why: the first ones, where they are many."""
    passing: list[str] = []
    """Jobs that may start before the head: the first ones, where they are many."""


class FollowedOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of how admissions followed a pool's order, as its cluster's admitter saw it since it leads."""

    pool: str
    since: Micros
    admissions: int = 0
    """Number of admissions that could be judged."""
    missed: int = 0
    """Number of those that took room which a waiting job before them should have had."""
    idle: dict[str, float] = {}
    """Amounts, in base units times seconds, by resource, that stood free while a job waited that would have
    fitted."""
    hindered: int = 0
    """Waiting jobs that fit by quota, and that something else holds back: not counted."""
    newcomers: int = 0
    """Admissions of jobs that had come just before: not judged."""
    takeovers: int = 0
    """Admissions while no admitter led, or the one that leads had just taken over: not judged."""
    unordered: int = 0
    """Admissions while the pool had no order that may be followed: not judged."""
    unseen: int = 0
    """Admissions while the admitter did not know everything (a policy that is being read, a replay): not
    judged."""


class LeftAlone(msgspec.Struct, frozen=True, kw_only=True):
    """The queued jobs of a pool that an admitter leaves alone, as somebody else kept changing their levels."""

    pool: str
    jobs: int
    since: dict[str, Micros]
    """Instants since when, by uid: of those who have been left alone longest, where they are many."""


class OutOfTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The starts of the last minute in a pool in which some did not follow the order."""

    starts: int
    passed: int
    """Number of those that took room which a waiting job before them should have had."""
    newcomers: int = 0
    """Number of others that had come just before, and took room that others waited for: nobody could order them."""
    many: bool = True
    """Whether these are so many that the order is followed loosely; else closely."""


class LeaderLease(Message, frozen=True, kw_only=True):
    """The one replica that leads its role for a cluster. The sequence of the key's first write is its epoch."""

    role: str
    cluster: str
    replica: str
    epoch: int
    """Epoch of the lease; 0 in the write that acquires it: the epoch is that write's own sequence."""
    renewed: Micros
    reserved: list[ReservedStarts] = []
    """Promises of an admitter, a pool each."""
    followed: list[FollowedOrder] = []
    """Records of an admitter, a pool each."""
    preemptions_by_left_levels: dict[str, int] = {}
    """Number, by pool, of running jobs that the frontend stopped for others while levels stood that should
    have been gone, as an admitter counts them; pools with none are left out."""
    untaken: int = 0
    """Number of submissions for an admitter's cluster that are published and that it has not handled yet."""
    late_by: float = 0.0
    """Seconds that an admitter lets pass between two looks, where many of its levels come to jobs that wait
    no more; 0 where they come in time. The watcher of the cluster tells changes together meanwhile."""
    outpaced: dict[str, list[str]] = {}
    """Queues, by pool, that start jobs faster than an admitter's levels reach them; pools with none are left out."""
    out_of_turn: dict[str, OutOfTurn] = {}
    """Starts of the last minute, by pool; pools in which all but a few in a hundred followed the order are left out."""
    left_alone: list[LeftAlone] = []
    """Jobs that an admitter leaves alone, by pool; pools with none are left out."""
    contested: dict[str, int] = {}
    """Number of queued jobs whose levels somebody else changed within the last ten seconds, by pool: they are written again."""
    stale: dict[str, str] = {}
    """Reasons for which an admitter has had no order to follow for a while, by pool."""
    rival: bool = False
    """Whether another Fairlead, of which this one knows nothing, changed levels of an admitter's again and again within the last minute."""
    silent: str = ""
    """Reason for which the cluster does not answer; empty while it does. A watcher says why its statements
    may be old, an admitter why it cannot write there."""


MEMBER_LEASE: Codec[MemberLease] = Codec(MemberLease, "member lease", packed=False)
LEADER_LEASE: Codec[LeaderLease] = Codec(LeaderLease, "leader lease", packed=False)
