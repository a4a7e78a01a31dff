"""Whether jobs of one unit each started within one job of weighted DRF, start by start."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from fairlead_contracts.instants import HOUR, Micros


class FairReplay:
    """A pool of equal jobs as a test was told of it, and what weighted DRF says of each start.

    Args:
        weights: by tenant.
        units: how many jobs the pool holds at once.
        share_per_hour: of aging.
    """

    def __init__(self, weights: Mapping[str, float], units: int, *, share_per_hour: float = 0.0) -> None:
        self.waiting: dict[str, dict[str, Micros]] = {tenant: {} for tenant in weights}
        self.running: Counter[str] = Counter()
        self.started: list[str] = []
        self.breaches: list[str] = []
        self._weights = {tenant: Fraction(repr(weight)) for tenant, weight in weights.items()}
        self._units = units
        self._rate = Fraction(repr(share_per_hour)) / HOUR

    def queued(self, tenant: str, job: str, submitted: Micros = 0) -> None:
        """The job waits."""
        self.waiting[tenant][job] = submitted

    def started_one(self, tenant: str, job: str) -> None:
        """The job started: compared with what every other tenant's head had a right to.

        One job moved from the one to the other must make it right: within one job of the exact division.
        """
        submitted = self.waiting[tenant].pop(job)
        for other, heads in self.waiting.items():
            if other == tenant or not heads:
                continue
            if self._key(tenant, submitted, -1) > self._key(other, min(heads.values()), +1):
                self.breaches.append(f"{job} before {other}, running {dict(self.running)}")
        self.running[tenant] += 1
        self.started.append(job)

    def ended_one(self, tenant: str) -> None:
        """One of the tenant's jobs ended."""
        self.running[tenant] -= 1

    def _key(self, tenant: str, submitted: Micros, more: int) -> Fraction:
        """The key of a head of the tenant, had it `more` jobs."""
        share = Fraction(self.running[tenant] + more, self._units) / self._weights[tenant]
        return share + self._rate * submitted
