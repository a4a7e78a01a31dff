"""Whether jobs of one unit each started within one job of weighted DRF, start by start."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from fairlead_contracts.base.instants import DAY, Micros


class _Fact(NamedTuple):
    """A fact that may not have been ordered by yet: a job came to wait, or one of the tenant's jobs ended (no name)."""

    at: float
    tenant: str
    job: str = ""


class FairReplay:
    """A pool of equal jobs as a test was told of it, and what weighted DRF says of each start.

    Args:
        weights: weights by tenant; each tenant is entitled to its part of their sum.
        units: number of jobs that the pool holds at once.
        reaction: seconds after which a job that came and an end have been ordered by at the latest. A start is judged by
            what could be known: by all of these, or by all but the last ones of so long ago.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        units: int,
        *,
        entitlement_per_day: float = 0.0,
        reaction: float = 0.0,
    ) -> None:
        self.waiting: dict[str, dict[str, Micros]] = {tenant: {} for tenant in weights}
        self.running: Counter[str] = Counter()
        self.started: list[str] = []
        self.breaches: list[str] = []
        exact = {tenant: Fraction(repr(weight)) for tenant, weight in weights.items()}
        self._entitled = {tenant: weight / sum(exact.values()) for tenant, weight in exact.items()}
        self._units = units
        self._reaction = reaction
        self._late: list[_Fact] = []
        self._rate = Fraction(repr(entitlement_per_day)) / DAY

    def queued(self, tenant: str, job: str, submitted: Micros = 0, at: float = 0.0) -> None:
        """Notes that the job waits."""
        self.waiting[tenant][job] = submitted
        self._late.append(_Fact(at, tenant, job))

    def started_one(self, tenant: str, job: str, at: float = 0.0) -> None:
        """Notes that the job started, and compares it with what every other tenant's head had a right to.

        One job moved from the one to the other must make it right: within one job of the exact division.
        """
        submitted = self.waiting[tenant].pop(job)
        self._late = [fact for fact in self._late if at - fact.at < self._reaction]
        unknown = [self._late[number:] for number in range(len(self._late) + 1)]
        wronged = [self._wronged(tenant, submitted, late) for late in unknown]
        if all(wronged):
            self.breaches.append(f"{job} before {wronged[-1]}, running {dict(self.running)}")
        self.running[tenant] += 1
        self.started.append(job)

    def ended_one(self, tenant: str, at: float = 0.0) -> None:
        """Notes that one of the tenant's jobs ended."""
        self.running[tenant] -= 1
        self._late.append(_Fact(at, tenant))

    def _wronged(self, tenant: str, submitted: Micros, unknown: Sequence[_Fact]) -> str:
        """Another tenant whose head had the better right to all that was known; empty for nobody."""
        running = self.running + Counter(fact.tenant for fact in unknown if not fact.job)
        mine = self._key(tenant, submitted, running[tenant] - 1)
        for other, jobs in self.waiting.items():
            heads = jobs.keys() - {fact.job for fact in unknown if fact.tenant == other}
            if other == tenant or not heads:
                continue
            if mine > self._key(other, min(jobs[head] for head in heads), running[other] + 1):
                return other
        return ""

    def _key(self, tenant: str, submitted: Micros, running: int) -> Fraction:
        """The key of a head of the tenant, had it so many jobs running."""
        tag = Fraction(running, self._units) / self._entitled[tenant]
        return tag + self._rate * submitted
