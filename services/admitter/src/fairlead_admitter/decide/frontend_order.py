"""The line of waiting jobs in a frontend: by what is seen, and by what was written and may have landed."""

from collections.abc import Iterator, Mapping
from itertools import chain

from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.plan import Band
from fairlead_policy.levels.ties import Tie

type LinePosition = tuple[int, Tie]
"""Position of a job in the frontend's line: the level, negated, and the tie. The lower goes first."""


class FrontendOrder:
    """The line of each queue."""

    def __init__(self, facts: ClusterFacts, expectations: Expectations) -> None:
        self._facts = facts
        self._expectations = expectations

    def ahead(self, uid: str, bands: Mapping[str, Band]) -> frozenset[str] | None:
        """The jobs that stand, or may stand, before one; None where it may stand at its class's default level.

        Held jobs that were lifted count: the frontend has them there at once when they are let go.
        """
        job = self._facts.job(uid)
        if job is None:
            return None
        lowest = min(self._expectations.levels_of(job))
        if lowest <= self._default(job, bands):
            return None
        here = self._stand(job, lowest)
        return frozenset(
            other.uid
            for other in chain(self._maybe_above(job.queue, lowest), self._held_up(job.queue, bands))
            if other.uid != uid and self._stand(other, max(self._expectations.levels_of(other))) < here
        )

    def labelled(self, queue: str, bands: Mapping[str, Band]) -> list[str]:
        """The waiting jobs of a queue that carry a level, in line."""
        jobs = [self._facts.job(uid) for uid in self._facts.moved(queue)]
        stands = [
            (self._stand(job, self._expectations.level_of(job)), job.uid)
            for job in jobs
            if job is not None
            and job.phase is Phase.WAITING
            and self._expectations.level_of(job) > self._default(job, bands)
        ]
        return [uid for _, uid in sorted(stands)]

    def _held_up(self, queue: str, bands: Mapping[str, Band]) -> Iterator[JobState]:
        for uid in self._facts.moved(queue):
            job = self._facts.job(uid)
            if job is None or job.phase is not Phase.HELD:
                continue
            if max(self._expectations.levels_of(job)) > self._default(job, bands):
                yield job

    def _default(self, job: JobState, bands: Mapping[str, Band]) -> int:
        band = bands.get(self._facts.job_class(job.uid) or "") or bands.get("")
        return job.base if band is None else band.default

    def _maybe_above(self, queue: str, level: int) -> Iterator[JobState]:
        uids = {*self._expectations.pending(), *self._expectations.unknown()}
        for queued in self._facts.queued(queue).values():
            for at, ties in queued.waiting.items():
                if at >= level:
                    uids.update(uid for _, uid in ties.in_order())
        for uid in uids:
            job = self._facts.job(uid)
            if job is not None and job.queue == queue and job.phase is Phase.WAITING:
                yield job

    def _stand(self, job: JobState, level: int) -> LinePosition:
        return -level, self._facts.tie(job)
