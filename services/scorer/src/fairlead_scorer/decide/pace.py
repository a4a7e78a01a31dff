"""How often a shard is decided. Pure.

Where a cluster starts jobs faster than levels reach them, a decision is followed by nobody in time, and the cluster is short
of the CPU that it costs: a scorer's and an admitter's, and a server's between them. So what changes is then decided together.
"""

from collections.abc import Collection, Iterable

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.members import LeaderLease
from fairlead_runtime.waiting import until_next

LATE_TIMES = 2.0
"""So many times as long as between two looks of an admitter lies between two decisions of a shard."""
LONGEST_PACE_SECONDS = 4.0
"""Where not one of the last levels reached a job that waited."""


def rest_after(least: float, leaders: Iterable[LeaderLease], clusters: Collection[str], now: Micros) -> float:
    """How long a shard rests after a decision, in seconds.

    Where levels come too late, all shards of all scorers rest until the same instants: what they decide then leaves, and is
    taken in by admitters, together.

    Args:
        least: where levels come in time.
        leaders: of the admitters, as their leases stand.
        clusters: of the shard's pool.
        now: of the clock on the wall, which scorers share.
    """
    late_by = max((lease.late_by for lease in leaders if lease.cluster in clusters), default=0.0)
    return max(least, until_next(min(LATE_TIMES * late_by, LONGEST_PACE_SECONDS), to_seconds(now)))
