"""How often a shard is decided. Pure.

Where a cluster starts jobs faster than levels reach them, a decision is followed by nobody in time, and the cluster is short
of the CPU that it costs: a scorer's and an admitter's, and a server's between them. So what changes is then decided together.
"""

from collections.abc import Collection, Iterable

from fairlead_contracts.messages.members import LeaderLease

LATE_TIMES = 2.0
"""So many times as long as levels take lies between two decisions of a shard at least."""
LONGEST_PACE_SECONDS = 1.0
"""As Kueue's own batch."""


def shortest_pace(least: float, leaders: Iterable[LeaderLease], clusters: Collection[str]) -> float:
    """The shortest time between two decisions of a shard, in seconds.

    Args:
        least: where levels come in time.
        leaders: of the admitters, as their leases stand.
        clusters: of the shard's pool.
    """
    late_by = max((lease.late_by for lease in leaders if lease.cluster in clusters), default=0.0)
    return max(least, min(LATE_TIMES * late_by, LONGEST_PACE_SECONDS))
