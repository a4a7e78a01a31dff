"""Memory of how jobs ended that are stated no more: NATS, or the bridge, may be away for longer than slurmctld keeps them. Pure."""

from collections.abc import Mapping

from fairlead_bus.facts.event_diff import NoMemory, RunEnd
from fairlead_contracts.base.instants import DAY, Micros
from fairlead_contracts.messages.state import JobState


class EndedJobs(NoMemory):
    """The ends of a day's jobs, by uid."""

    def __init__(self) -> None:
        self._ends: dict[str, RunEnd] = {}
        self._newest: Micros = 0

    def keep(self, ends: Mapping[str, RunEnd]) -> None:
        """Keep these ends, and no more those that are a day older than the newest."""
        self._ends |= ends
        self._newest = max([self._newest, *(end.at for end in ends.values())])
        while self._ends and self._ends[first := next(iter(self._ends))].at <= self._newest - DAY:
            del self._ends[first]

    def end_of(self, job: JobState) -> RunEnd | None:
        """See `JobMemory`."""
        return self._ends.get(job.uid)
