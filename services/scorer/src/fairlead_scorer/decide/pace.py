"""The pace of a shard's decisions. Pure.

Where a cluster starts jobs faster than levels reach them, no decision is followed in time, and the cluster lacks the
CPU that each one costs in scorer, NATS and admitter. So several changes are decided together then.
"""

from collections.abc import Collection, Iterable

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.members import LeaderLease
from fairlead_runtime.waiting import until_next

LATE_TIMES = 2.0
"""The time between two decisions of a shard, as a multiple of that between two looks of the admitter."""
LONGEST_PACE_SECONDS = 4.0
"""The longest rest in seconds: where not one of the last levels reached a job that waited."""


def rest_after(least: float, leaders: Iterable[LeaderLease], clusters: Collection[str], now: Micros) -> float:
    """The seconds for which a shard rests after a decision.

    Where levels come too late, all shards of all scorers rest until the same instants: their decisions leave together,
    and admitters take them in together.

    Args:
        least: seconds of rest where levels come in time.
        leaders: the admitters' leases, as they stand.
        clusters: the clusters of the shard's pool.
        now: the instant of the clock on the wall, which scorers share.
    """
    late_by = max((lease.late_by for lease in leaders if lease.cluster in clusters), default=0.0)
    return max(least, until_next(min(LATE_TIMES * late_by, LONGEST_PACE_SECONDS), to_seconds(now)))
