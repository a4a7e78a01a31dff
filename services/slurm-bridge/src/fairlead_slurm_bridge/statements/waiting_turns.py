"""A user's own `nice` sorts within the tenant: jobs of one account trade their waiting times, nothing else. Pure.

A tenant's own order is by submit time, and start tags and aging count that. So the nicer job takes the later instant of
those that the account's jobs in this queue have, and whoever it lets past the earlier one. The set of instants
stays as it was, so nobody outside of the account moves; but tasks of one array have one instant, and where some of them
trade, each takes one a microsecond behind the other.
"""

from collections.abc import Iterable

import msgspec

from fairlead_contracts.base.instants import Micros


class WaitingTurn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A waiting job as its own tenant's order sees it."""

    uid: str
    group: tuple[str, str, str | None]
    """Account, queue and class: jobs that have all three alike trade places."""
    nice: int
    since: Micros
    """Instant at which the job was first submitted."""


def instants_by_nice(jobs: Iterable[WaitingTurn]) -> dict[str, Micros]:
    """The new instants, by uid, of all jobs that trade theirs."""
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
