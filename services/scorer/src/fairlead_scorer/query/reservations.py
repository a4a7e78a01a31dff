"""The admitters' word on reserve mode, for whoever asks about a job that heads its line, or passes the head."""

from typing import Protocol

import msgspec

from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.members import LeaderLease, ReservedStarts
from fairlead_contracts.messages.questions import Explanation, PromisedStarts
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_scorer.state.cluster_cache import ClusterCache

ADMITTER = "admitter"
"""The role whose leader's lease says it."""
_BY_FAIRNESS = (
    "Its number and the jobs before it are told by fairness alone: jobs that pass the head go before it."
)


class ClusterLeaders(Protocol):
    """The leaders of clusters."""

    def leader(self, role: str, cluster: str) -> LeaderLease | None:
        """The leader of a role for a cluster."""

    def leaders(self, role: str) -> list[LeaderLease]:
        """The leaders of a role for all clusters."""


class ReserveView:
    """Says of jobs what was promised to them.

    Args:
        cache: the known state of the clusters.
        leaders: the leases of those who lead.
    """

    def __init__(self, cache: ClusterCache, leaders: ClusterLeaders) -> None:
        self._cache = cache
        self._leaders = leaders

    def reasons(self, job: Explanation, *, open_names: bool) -> list[str]:
        """The effect of reserve mode on a job that waits; nothing where it does not concern it.

        Args:
            job: a job of any phase.
            open_names: whether other tenants' jobs may be named.
        """
        lease = self._leaders.leader(ADMITTER, job.cluster)
        if lease is None or job.phase != Phase.WAITING:
            return []
        found = next((one for one in lease.reserved if one.pool == job.pool), None)
        return [] if found is None else self._told(job, found, open_names=open_names)

    def promised(self, cluster: str, pool: str) -> PromisedStarts | None:
        """The promises in the pool there, and who may pass; None where nothing is to be said."""
        lease = self._leaders.leader(ADMITTER, cluster)
        found = None if lease is None else next((one for one in lease.reserved if one.pool == pool), None)
        if found is None or not (found.why_not or found.head):
            return None
        head = None if found.head is None else self._cache.facts.jobs.get(found.head)
        passing = self._jobs(found.passing)
        in_its_way = self._jobs(found.in_its_way)
        rulebook = self._cache.rulebook
        return PromisedStarts(
            why_not=found.why_not,
            job="" if head is None else head.full_name,
            tenant="" if head is None or rulebook is None else rulebook.tenant_of(head),
            by=None if found.shadow is None else to_datetime(found.shadow),
            why_none=found.why_none,
            in_its_way=[job.full_name for job in in_its_way] or msgspec.UNSET,
            passing=[job.full_name for job in passing],
        )

    def _told(self, job: Explanation, found: ReservedStarts, *, open_names: bool) -> list[str]:
        if found.why_not:
            return [f"No start can be promised in its pool: {found.why_not}."]
        if found.head == job.uid:
            if found.shadow is None:
                runs = self._named(job, found.in_its_way, open_names=open_names)
                why = f"{found.why_none}: {runs}" if runs else found.why_none
                return [f"It is the first that does not fit. No start is promised to it: {why}."]
            by = f"{to_datetime(found.shadow):%Y-%m-%d %H:%M:%S} UTC"
            promised = f"It is the first that does not fit, and starts by {by} at the latest."
            return [promised, _BY_FAIRNESS] if found.passing else [promised]
        if job.uid in found.passing:
            head = self._cache.facts.jobs.get(found.head) if open_names and found.head is not None else None
            name = (
                "the first that does not fit"
                if head is None
                else f"{head.name}, the first that does not fit,"
            )
            passes = f"It passes {name}: it ends before that one's promised start, or leaves room for it."
            return [passes, _BY_FAIRNESS]
        return []

    def _named(self, asked: Explanation, uids: list[str], *, open_names: bool) -> str:
        """The names of runs, without those of other tenants where these may not be named."""
        rulebook = self._cache.rulebook
        return ", ".join(
            run.full_name
            for run in self._jobs(uids)
            if open_names or (rulebook is not None and rulebook.tenant_of(run) == asked.tenant)
        )

    def _jobs(self, uids: list[str]) -> list[JobState]:
        """The jobs of these uids that are known."""
        return [job for job in map(self._cache.facts.jobs.get, uids) if job is not None]
