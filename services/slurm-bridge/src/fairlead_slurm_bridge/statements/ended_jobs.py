"""Memory of how jobs ended that are stated no more: NATS, or the bridge, may be away for longer than slurmctld keeps them. Pure."""

from collections import OrderedDict
from collections.abc import Mapping

from fairlead_bus.facts.event_diff import LastEviction, RunEnd
from fairlead_contracts.messages.state import JobState

_MOST = 250_000
"""Ends that are kept: some 70 MB."""


class EndedJobs:
    """The ends that were heard of last, by uid."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, RunEnd] = OrderedDict()

    def keep(self, ends: Mapping[str, RunEnd]) -> None:
        """Keep these ends, in place of the oldest."""
        self._ends |= ends
        while len(self._ends) > _MOST:
            self._ends.popitem(last=False)

    def end_of(self, job: JobState) -> RunEnd | None:
        """See `JobMemory`."""
        return self._ends.get(job.uid)

    def eviction_of(self, job: JobState) -> LastEviction | None:
        """See `JobMemory`: what slurmctld states of a job says all that it knows of this."""
        del job
        return None
