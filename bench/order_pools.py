"""Pools that are made up to be measured: the same numbers give the same pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np

from fairlead_contracts.base.instants import DAY, Micros
from fairlead_policy.exact.ranking import Ints
from fairlead_policy.exact.scoring import JobColumns
from fairlead_policy.rules.entitlements import in_relation
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules

NOW: Micros = 1_760_000_000_000_000
_CLASSES = ("urgent", "approved", "normal")
_NAMES = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
_MOST = (64_000, 256 * 2**30, 8_000, 2**40)
"""Asked for by one job at most, base units; of further resources as of the first."""
_POOLFULS = 20
"""Number of times that the pool's capacity is waiting."""
_MONTH = 30 * DAY


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a pool."""

    jobs: int
    tenants: int
    resources: int


@dataclass(frozen=True, kw_only=True)
class MadePool:
    """A pool with its waiting jobs, in memory."""

    rules: PoolRules
    tenant: Ints
    """Number of each job's tenant."""
    columns: JobColumns
    tenants: list[str]
    """Names of the tenants, by number."""


def made_pool(size: Size) -> MadePool:
    """Jobs of a month, of all tenants alike; one in three is urgent or approved, one in six asks for few resources."""
    dice = np.random.default_rng(size.jobs)
    names = [_NAMES[at] if at < len(_NAMES) else f"example.com/r{at}" for at in range(size.resources)]
    most = [_MOST[at] if at < len(_MOST) else _MOST[0] for at in range(size.resources)]
    demand = np.empty((size.resources, size.jobs), np.int64)
    for row, largest in zip(demand, most, strict=True):
        row[:] = dice.integers(0, largest, size.jobs) * (dice.random(size.jobs) > 1 / 6)
    capacity = {name: max(1, int(row.sum() // _POOLFULS)) for name, row in zip(names, demand, strict=True)}
    weights = {f"tenant-{number:05}": Fraction(1 + number % 5) for number in range(size.tenants)}
    entitlements = in_relation(weights, {}).listed
    rules = PoolRules(
        capacity=capacity,
        classes=_CLASSES,
        rate=Fraction(1, 10) / DAY,
        cap=14 * DAY,
        entitlements=entitlements,
    )
    tenant, none = dice.integers(0, size.tenants, size.jobs), np.zeros(size.jobs, np.int64)
    columns = JobColumns(
        rank=np.array([0, 2, 4, 4, 4, 4])[dice.integers(0, 6, size.jobs)],
        submitted=NOW - dice.integers(0, _MONTH, size.jobs),
        queue=none,
        weight_number=none,
        # In the order of the rules' resources.
        demand=demand[[names.index(name) for name in rules.resources]],
    )
    return MadePool(rules=rules, tenant=tenant, columns=columns, tenants=list(entitlements))


def uid_of(number: int) -> str:
    """The uid of a number, made so that uids and numbers ascend alike."""
    return f"uid-{number:09}"


class MadeJobs(Sequence[WaitingJob]):
    """The pool's jobs as services know them, each made when somebody asks."""

    def __init__(self, pool: MadePool) -> None:
        self._pool = pool

    def __len__(self) -> int:
        return len(self._pool.tenant)

    @overload
    def __getitem__(self, number: int) -> WaitingJob: ...

    @overload
    def __getitem__(self, number: slice) -> list[WaitingJob]: ...

    def __getitem__(self, number: int | slice) -> WaitingJob | list[WaitingJob]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if number >= len(self):
            raise IndexError(number)
        pool, columns = self._pool, self._pool.columns
        tenant = pool.tenants[pool.tenant.item(number)]
        return WaitingJob(
            uid=uid_of(number),
            scope=tenant,
            id=f"job-{number}",
            tenant=tenant,
            job_class=_CLASSES[columns.rank.item(number) // 2],
            submitted=columns.submitted.item(number),
            demand=dict(zip(pool.rules.resources, columns.demand[:, number].tolist(), strict=True)),
            queue=JobQueue("c1", "queue-0"),
        )
