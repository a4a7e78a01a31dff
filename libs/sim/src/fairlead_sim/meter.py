"""Measures how the tenants of one pool share it over time, from the life of their jobs.

Fed by the run in virtual time and, with the same code, by the events of a live cluster.
"""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.instants import Micros, from_datetime
from fairlead_contracts.messages.events import AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import Phase

_EVERY: Micros = 250_000
"""The shortest time between two samples of the series."""


class PoolSample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The pool at one instant."""

    at: Micros
    shares: dict[str, float]
    """Dominant share of each tenant: the fraction of the pool that it holds, not divided by its weight."""
    waiting: dict[str, int]
    running: dict[str, int]


class _Life(msgspec.Struct, kw_only=True):
    demand: dict[str, int]
    phase: Phase = Phase.WAITING


class ShareMeter:
    """Integrates the tenants' shares over the time in which all of them are backlogged.

    A tenant's share at an instant is its dominant share over the sum of the tenants' dominant shares. The mean is
    taken over the time in which every tenant has at least one waiting job: only then does each one want all that it
    is entitled to, so that entitlement and share can be compared.
    """

    def __init__(self, capacity: Mapping[str, int], tenants: Iterable[str]) -> None:
        """Creates a meter of an idle pool."""
        self.tenants = list(tenants)
        self.samples: list[PoolSample] = []
        self.backlogged: Micros = 0
        """Time for which all tenants were backlogged."""
        self._capacity = {resource: amount for resource, amount in capacity.items() if amount}
        self._use = {tenant: dict.fromkeys(self._capacity, 0) for tenant in self.tenants}
        self._shares = dict.fromkeys(self.tenants, 0.0)
        self._waiting = dict.fromkeys(self.tenants, 0)
        self._running = dict.fromkeys(self.tenants, 0)
        self._integral = dict.fromkeys(self.tenants, 0.0)
        self._lives: dict[str, _Life] = {}
        self._now: Micros | None = None

    def observe(self, event: AnyEvent) -> None:
        """Takes in an event of a job's life. A second copy of one, or a stranger's, changes nothing."""
        if event.tenant not in self._waiting:
            return
        match event:
            case JobQueued() if event.uid not in self._lives:
                self._pass_time(from_datetime(event.at))
                self._lives[event.uid] = _Life(demand=event.demand)
                self._waiting[event.tenant] += 1
            case JobStarted() if (life := self._lives.get(event.uid)) and life.phase is Phase.WAITING:
                self._pass_time(from_datetime(event.at))
                life.phase = Phase.RUNNING
                self._waiting[event.tenant] -= 1
                self._running[event.tenant] += 1
                self._use_more(event.tenant, life.demand, 1)
            case JobEnded() if (life := self._lives.get(event.uid)) and life.phase is not Phase.ENDED:
                self._pass_time(from_datetime(event.at))
                self._end(event.tenant, life)
            case _:
                pass

    def means(self) -> dict[str, float]:
        """Time-mean share of each tenant while all were backlogged; zeros if they never were."""
        total = self.backlogged or 1
        return {tenant: self._integral[tenant] / total for tenant in self.tenants}

    def _end(self, tenant: str, life: _Life) -> None:
        if life.phase is Phase.RUNNING:
            self._running[tenant] -= 1
            self._use_more(tenant, life.demand, -1)
        else:
            self._waiting[tenant] -= 1
        life.phase = Phase.ENDED

    def _use_more(self, tenant: str, demand: Mapping[str, int], sign: int) -> None:
        use = self._use[tenant]
        for resource in self._capacity:
            use[resource] += sign * demand.get(resource, 0)
        self._shares[tenant] = max(use[resource] / amount for resource, amount in self._capacity.items())

    def _pass_time(self, at: Micros) -> None:
        if self._now is None:
            self._now = at
        passed = at - self._now
        if passed <= 0:
            # Events of a live cluster may come out of order by a little; time does not run backwards for it.
            return
        self._now = at
        total = sum(self._shares.values())
        if total > 0 and all(self._waiting.values()):
            self.backlogged += passed
            for tenant, share in self._shares.items():
                self._integral[tenant] += share / total * passed
        if not self.samples or at - self.samples[-1].at >= _EVERY:
            self.samples.append(
                PoolSample(
                    at=at, shares=dict(self._shares), waiting=dict(self._waiting), running=dict(self._running)
                )
            )


def jain(values: Iterable[float]) -> float:
    """Jain's fairness index of the values: 1 where all are equal, 1/n where one has everything.

    R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC TR-301, 1984. Applied to
    share over entitlement, so that weights count.
    """
    found = list(values)
    squares = sum(value * value for value in found)
    return 1.0 if not squares else sum(found) ** 2 / (len(found) * squares)


def quantile(values: Iterable[float], fraction: float) -> float:
    """The nearest-rank quantile of the values; 0 of none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    rank = -(-fraction * len(ordered) // 1)
    return ordered[max(0, int(rank) - 1)]
