"""The shadow of a waiting job: when it can start at the latest, by what runs and when that ends.

The word is that of EASY backfill (Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; Mu'alem and Feitelson,
IEEE TPDS 12(6), 2001): the instant at which enough has ended, every run taken at its full limit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.instants import Micros


class CapacityHold(msgspec.Struct, frozen=True, kw_only=True):
    """A job that holds capacity, or may do so at any moment."""

    uid: str
    demand: dict[str, int]
    """Demand of the job, base units."""
    ends: Micros | None
    """Latest instant at which it has given back what it holds; None where nobody knows."""


class Shadow(msgspec.Struct, frozen=True, kw_only=True):
    """The latest instant at which a job can start."""

    at: Micros | None
    """Instant of the start; None where it cannot be said."""
    endless: tuple[str, ...] = ()
    """The uids of runs without a known end, where these are in the way."""
    overdue: tuple[str, ...] = ()
    """The uids of runs that should have ended, where these are in the way."""
    spare: dict[str, int] = {}
    """Capacity that is left beside the job at that instant, base units."""


def free_of(capacity: Mapping[str, int], runs: Iterable[CapacityHold]) -> Counter[str]:
    """The capacity that these runs leave; negative where it shrank below what they hold."""
    free = Counter(dict(capacity))
    for run in runs:
        free.subtract(run.demand)
    return free


def fits(demand: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether a demand fits into what is free."""
    return all(amount <= free.get(resource, 0) for resource, amount in demand.items() if amount > 0)


def shadow_of(
    demand: Mapping[str, int],
    capacity: Mapping[str, int],
    runs: Iterable[CapacityHold],
    now: Micros,
    *,
    lag: Micros = 0,
) -> Shadow:
    """The shadow of a job.

    Args:
        demand: the job's demand, base units. It fits into the capacity.
        capacity: the pool's capacity, base units.
        runs: all that holds capacity, as far as is seen.
        lag: greatest age of what is seen. What should have ended before that, and has not, never ends.
    """
    runs = list(runs)
    free = free_of(capacity, runs)
    at = now
    ending = [run for run in runs if run.ends is not None and run.ends > now - lag]
    for run in sorted(ending, key=lambda run: (run.ends or 0, run.uid)):
        if fits(demand, free):
            break
        free.update(run.demand)
        at = max(now, run.ends or 0)
    if not fits(demand, free):
        endless = tuple(run.uid for run in runs if run.ends is None)
        overdue = tuple(run.uid for run in runs if run.ends is not None and run.ends <= now - lag)
        return Shadow(at=None, endless=endless, overdue=overdue)
    there = [run for run in runs if run.ends is None or run.ends > at or run.ends <= now - lag]
    spare = free_of(capacity, there)
    spare.subtract(demand)
    return Shadow(at=at, spare=dict(spare))
