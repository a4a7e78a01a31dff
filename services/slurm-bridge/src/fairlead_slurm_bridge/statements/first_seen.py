"""First submission of each job, over requeues and restarts, and by `nice` within an account. Pure."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_slurm import SlurmJob

_MOST_GONE = 100_000
"""Jobs that are gone of which the first instant is remembered: some 15 MB."""


class FirstSeen:
    """The first submission of each job that Slurm still knows, and of each array as a whole.

    Slurm forgets it at a requeue. A bridge that starts has it from NATS: the uids there are made of it.

    Slurm's submit times are whole seconds, and jobs of one second go by their numbers: each gets an instant of its own
    within that second, in that order.
    """

    def __init__(self) -> None:
        self._since: dict[str, Micros] = {}
        self._gone: OrderedDict[str, Micros] = OrderedDict()
        """First instants of jobs that Slurm knows no more: accounting still tells of them, and a job may come back."""
        self._last: dict[Micros, Micros] = {}
        """Last instant that was given within each second."""

    def since(self, job: SlurmJob) -> Micros:
        """The instant at which the job, or its array, was first submitted."""
        return self._since[str(job.array)]

    def since_of_ended(self, job: SlurmJob) -> Micros:
        """The instant at which a job that Slurm may know no more was first submitted; its submit time where it was never seen."""
        name = str(job.array)
        since = self._since.get(name, self._gone.get(name, job.submitted))
        # Only a requeue moves a submit time, and that to a later one: else the number is another job's by now.
        return since if since < job.submitted + SECOND else job.submitted

    def adopt(self, since: Mapping[str, Micros]) -> None:
        """Take these instants, by number, as those by which everybody knows the jobs."""
        self._since |= since
        for instant in since.values():
            self._note(instant)

    def take(self, jobs: Iterable[SlurmJob]) -> None:
        """Take note of all jobs that there are; jobs that are not among them are forgotten."""
        first: dict[int, SlurmJob] = {}
        for job in jobs:
            known = first.get(job.array)
            # A requeue moves the submit time of one task: another of its array still has that of all.
            if known is None or (job.restarts == 0 and known.restarts > 0):
                first[job.array] = job
        for array, job in sorted(first.items(), key=lambda one: (one[1].submitted, one[0])):
            since = self._since.get(str(array), self._gone.get(str(array)))
            # Nothing but a requeue moves a submit time: else the number is another job's by now.
            if since is None or (job.restarts == 0 and since - since % SECOND != job.submitted):
                since = self._instant(job.submitted)
            self._since[str(array)] = since
        for name in self._since.keys() - {str(array) for array in first}:
            self._gone[name] = self._since.pop(name)
        while len(self._gone) > _MOST_GONE:
            self._gone.popitem(last=False)

    def _instant(self, submitted: Micros) -> Micros:
        last = self._last.get(submitted)
        given = submitted if last is None else min(last + 1, submitted + SECOND - 1)
        self._note(given)
        return given

    def _note(self, since: Micros) -> None:
        second = since - since % SECOND
        self._last[second] = max(since, self._last.get(second, since))
        if len(self._last) > 2 * len(self._since) + SECOND // 1000:
            kept = {since - since % SECOND for since in self._since.values()}
            self._last = {second: last for second, last in self._last.items() if second in kept}


class WaitingTurn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A waiting job as its own tenant's order sees it."""

    uid: str
    group: tuple[str, str, str | None]
    """Account, queue and class: jobs that have all three alike trade places."""
    nice: int
    since: Micros
    """Instant at which the job was first submitted."""


def instants_by_nice(jobs: Iterable[WaitingTurn]) -> dict[str, Micros]:
    """The new instants, by uid, of all jobs that trade theirs: a user's own `nice` sorts within the tenant, and moves nobody else.

    A tenant's own order is by submit time, and start tags and aging count that. So the nicer job takes the later instant of
    those that the account's jobs in this queue have, and whoever it lets past the earlier one. The set of instants
    stays as it was, so nobody outside of the account moves; but tasks of one array have one instant, and where some of them
    trade, each takes one a microsecond behind the other.
    """
    groups: dict[tuple[str, str, str | None], list[WaitingTurn]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    found: dict[str, Micros] = {}
    for members in groups.values():
        if len({job.nice for job in members}) < 2:  # noqa: PLR2004 # alike: nothing to trade
            continue
        wanted = sorted(members, key=lambda job: (job.nice, job.since, job.uid))
        last = -1
        for job, since in zip(wanted, sorted(job.since for job in members), strict=True):
            last = max(since, last + 1)
            if job.since != last:
                found[job.uid] = last
    return found
