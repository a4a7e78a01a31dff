"""A waiting job, as far as its order goes."""

import msgspec

from fairlead_contracts.base.instants import Micros

type Queue = tuple[str, str]
"""(cluster, queue)."""


class WaitingJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One eligible job that waits: the facts that its place depends on, and its names."""

    uid: str
    scope: str
    id: str
    tenant: str
    urgency: str
    """Its class, as granted."""
    submitted: Micros
    demand: dict[str, int]
    """Base units, of the whole job."""
    queue: Queue
    override: float | None = None
    """A granted number in place of its class's weight, where classes are not strict."""
