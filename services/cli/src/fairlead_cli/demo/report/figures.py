"""The figures of a run: shares against entitlements and waits, made for printing and plotting."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from fairlead_contracts.base.instants import to_seconds
from fairlead_sim.meter import PoolSample, quantile
from fairlead_sim.virtual import RunResult, WaitQuantiles
from fairlead_sim.workload import SimWorkload

BINS = 120
"""Points of a plotted line."""
TOLERANCE = 0.10
"""Distance of a share from its entitlement, as a fraction of the entitlement, beyond which a report warns."""
EVERY = "*"
"""The class under which a result holds the waits of all of a tenant's jobs."""


class TenantFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant in the printed figures; waits in seconds of wall time, null where no job of it started."""

    name: str
    weight: float
    entitlement: float
    share: float | None
    """Share while all were backlogged; null where the tenants never all had jobs waiting at once."""
    share_fifo: float | None
    wait_p50: float | None
    wait_p90: float | None
    jobs: int


class DemoFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that `fairlead demo --json` prints, with exactly these keys."""

    tenants: list[TenantFigures]
    submitted: int
    finished: int
    lost: int
    jain: float | None
    jain_fifo: float | None


class PlotInterval(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time in a plot; all stretches have equal length."""

    begin: float
    """Seconds since the first submission."""
    shares: Mapping[str, float]
    """Each tenant's part of what is in use: means over the stretch."""


class OrderedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run of the jobs under one order."""

    title: str
    shares: Mapping[str, float] | None
    """Each tenant's share while all were backlogged; None where they never were at once."""
    jain: float | None
    backlog: tuple[float, float] | None
    """Seconds from the first submission: the first and the last moment at which every tenant had jobs waiting."""
    course: Sequence[PlotInterval]
    by_tenant: Mapping[str, WaitQuantiles]
    by_class: Mapping[tuple[str, str], WaitQuantiles]
    """Waits by tenant and class; groups without jobs are left out."""
    makespan: float
    """Seconds from the first submission to the last end."""
    first_class: str | None = None
    """The policy's class that goes first; None where there is one class alone."""
    first_class_wait: float | None = None
    """The median wait of its jobs, whose they may be; None where it has none."""
    waited: Mapping[str, float] = {}
    """Seconds that each job waited, by its id."""


def study(title: str, result: RunResult, *, classes: Sequence[str]) -> OrderedRun:
    """The figures of one run.

    Args:
        title: the order's, as people read it.
        result: the run's, virtual or live.
        classes: the policy's, first goes first; the last is that of jobs that asked for none.
    """
    waits = result.waits()
    backlogged = result.backlogged_seconds > 0
    moments = [to_seconds(sample.at) for sample in result.samples if all(sample.waiting.values())]
    first = [job.waited for job in result.jobs if job.job_class == classes[0]]
    return OrderedRun(
        title=title,
        shares=result.shares if backlogged else None,
        jain=result.jain if backlogged else None,
        backlog=(moments[0], moments[-1]) if backlogged and moments else None,
        course=course(result.samples, result.makespan_seconds),
        by_tenant={
            tenant: waits[tenant, EVERY] for tenant in result.entitlements if (tenant, EVERY) in waits
        },
        by_class=_by_class(waits, result.entitlements, classes),
        makespan=result.makespan_seconds,
        first_class=classes[0] if len(classes) > 1 else None,
        first_class_wait=quantile(first, 0.5) if first else None,
        waited={job.id: job.waited for job in result.jobs},
    )


def _by_class(
    waits: Mapping[tuple[str, str | None], WaitQuantiles], tenants: Iterable[str], classes: Sequence[str]
) -> dict[tuple[str, str], WaitQuantiles]:
    asked = {job_class: job_class for job_class in classes[:-1]} | {classes[-1]: None}
    return {
        (tenant, job_class): waits[tenant, name]
        for tenant in tenants
        for job_class, name in asked.items()
        if (tenant, name) in waits
    }


def course(samples: Iterable[PoolSample], makespan: float) -> list[PlotInterval]:
    """Means of the samples over stretches of equal length; those with no use are left out."""
    length = makespan / BINS or 1.0
    busy = (sample for sample in samples if sum(sample.shares.values()) > 0)
    grouped = groupby(busy, key=lambda sample: int(to_seconds(sample.at) / length))
    return [PlotInterval(begin=number * length, shares=_mean(list(group))) for number, group in grouped]


def _mean(samples: Sequence[PoolSample]) -> dict[str, float]:
    return {
        tenant: sum(sample.shares[tenant] / sum(sample.shares.values()) for sample in samples) / len(samples)
        for tenant in samples[0].shares
    }


def figures(
    workload: SimWorkload, *, ours: OrderedRun, fifo: OrderedRun, finished: int, lost: int
) -> DemoFigures:
    """The figures that are printed.

    Args:
        workload: the jobs that were submitted, and their tenants in the order in which they are shown.
        ours: the run that happened.
        fifo: the same jobs, first come first served.
        finished: number of jobs that ended.
        lost: number of jobs that nobody can account for.
    """
    jobs = Counter(job.tenant for job in workload.jobs)
    entitlements = workload.entitlements()
    return DemoFigures(
        tenants=[
            TenantFigures(
                name=tenant,
                weight=weight,
                entitlement=entitlements[tenant],
                share=(ours.shares or {}).get(tenant),
                share_fifo=(fifo.shares or {}).get(tenant),
                wait_p50=waits.p50 if (waits := ours.by_tenant.get(tenant)) else None,
                wait_p90=waits.p90 if waits else None,
                jobs=jobs[tenant],
            )
            for tenant, weight in workload.weights.items()
        ],
        submitted=len(workload.jobs),
        finished=finished,
        lost=lost,
        jain=ours.jain,
        jain_fifo=fifo.jain,
    )


def off_entitlement(found: DemoFigures) -> list[TenantFigures]:
    """Tenants whose share lies further from their entitlement than it may."""
    return [
        tenant
        for tenant in found.tenants
        if tenant.share is not None
        and abs(tenant.share - tenant.entitlement) > TOLERANCE * tenant.entitlement
    ]
