"""The demo's workload: a real trace, compressed until the cluster is overloaded.

How it is made, in order:

1. Each tenant's jobs are taken in order of submission. Left out are those without cards, shorter than a minute, longer
   than `longest_seconds` or larger than a quarter of the pool. A tenant whose jobs do not suffice begins anew.
2. The trace gives cards alone: CPU and memory are derived from the size of the job (`demand_of`).
3. Run times are divided by `speed_up`.
4. Each tenant submits so many jobs that they would keep the whole pool busy for its part of `seconds`: most of it in
   proportion to the weights, so that all stay backlogged for long, and `SURPLUS` on top, shared by the half of the
   tenants with the lowest weights. They submit the most and are entitled to the least: what first come, first served
   gets wrong.
5. The cluster does not begin empty: each tenant begins with a standing queue of `STANDING` times its entitlement,
   handed in by turns within the first second. Its other arrivals are squeezed into the first `seconds / overload`, so
   that the cluster is offered `overload` times what it can do as long as jobs arrive, and then drains.

The queue is `strict`: with `best-effort` small jobs slip into every gap that a large one waits for, and the shares
follow the sizes of jobs instead of the weights. Nothing depends on chance: `seed` picks which jobs are urgent.
"""

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from fairlead_contracts.base.instants import SECOND, from_seconds
from fairlead_contracts.policyfile.document import Aging
from fairlead_sim.config import NODE, NodeGroup
from fairlead_sim.errors import TraceError
from fairlead_sim.meter import quantile
from fairlead_sim.trace import TraceJob, by_tenant, read_trace, shipped_trace
from fairlead_sim.workload import SimWorkload, WorkloadJob, one_pool, policy_for

NODES = 64
GPU = "nvidia.com/gpu"
GIB = 2**30
CARDS_A_NODE = 8

SURPLUS = 0.24
"""Part of the offered work that the tenants with the lowest weights submit beyond what matches their
weights."""
STANDING = 3.0
STANDING_SECONDS = 1.0
SHORTEST_SECONDS = 60.0
LARGEST_PART = 0.25
URGENT_PART = 0.08
"""Part of the jobs that are urgent, of tenants that are granted the class."""


class TraceRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a trace that is taken, and how fast it runs."""

    name: str
    weights: dict[str, float]
    urgent: tuple[str, ...]
    """Tenants that are granted the class `urgent`."""
    longest_seconds: float
    speed_up: float


PHILLY = TraceRecipe(
    name="Philly (Microsoft, 2017)",
    weights={
        "vc-ee9e8c": 4.0,
        "vc-11cb48": 3.0,
        "vc-e13805": 3.0,
        "vc-6c71a0": 2.0,
        "vc-103959": 2.0,
        "vc-ed69ec": 1.0,
    },
    urgent=("vc-ee9e8c", "vc-11cb48", "vc-103959"),
    longest_seconds=12 * 3600.0,
    speed_up=2000.0,
)
"""Six virtual clusters of different habits: from single cards alone (ed69ec) to gangs of 32 (ee9e8c) and 64
(11cb48)."""

MOST_TENANTS = 6
_LONGEST_RUN = PHILLY.longest_seconds / PHILLY.speed_up


def demo_workload(
    seconds: float = 60.0,
    *,
    trace: str | Path | None = None,
    weights: Mapping[str, float] | None = None,
    overload: float = 3.0,
    seed: int = 0,
    cluster: str = "sim",
) -> SimWorkload:
    """The workload of `fairlead demo`.

    Args:
        seconds: the time for which the offered work keeps the whole pool busy. Arrivals end after
            `seconds / overload`; the last job ends some ten seconds after `seconds`, as a draining pool is not full.
        trace: a CSV file (see `read_trace`) in place of the shipped one. Its tenants with the most card time are
            taken, the one with the most gets weight 1.
        weights: other weights; a tenant that is not named keeps its own. What is submitted stays the same.
        overload: the work that the cluster is offered while jobs arrive, as a multiple of its capacity.
        seed: picks the urgent jobs.
        cluster: name of the cluster in the policy.

    Raises:
        TraceError: the trace cannot be read, or a weight names a tenant that it does not have.
    """
    jobs = by_tenant(shipped_trace() if trace is None else read_trace(trace))
    recipe = PHILLY if trace is None else _recipe_for(Path(trace).name, jobs)
    unknown = sorted(set(weights or {}) - set(recipe.weights))
    if unknown:
        raise TraceError(f"no tenant {', '.join(unknown)}; the tenants are {', '.join(recipe.weights)}")
    given = recipe.weights | dict(weights or {})
    maker = _Maker(recipe, given, seconds=seconds, arrive=seconds / overload, seed=seed)
    return SimWorkload(
        name=recipe.name,
        weights=given,
        cluster=one_pool(maker.nodes, given, strategy="strict"),
        policy=policy_for(
            given,
            cluster=cluster,
            aging=Aging(entitlement_per_day=Aging().entitlement_per_day * recipe.speed_up),
            urgent=recipe.urgent,
        ),
        jobs=maker.make(jobs),
        speed_up=recipe.speed_up,
        notes=_notes(recipe, seconds, overload),
    )


def demand_of(gpus: int) -> dict[str, int]:
    """CPU and memory for a job of so many cards, in base units.

    The trace has cards alone. Stated rule: work on one card feeds it from many cores (11 and 40 GiB), jobs of two to
    four cards are heavy on memory (7 cores and 72 GiB a card), larger gangs spend their time between cards (6 cores
    and 56 GiB a card). A node has 8 cores and 64 GiB for each card: single cards are dominated by CPU, small
    gangs by memory, large ones by cards.
    """
    cores, memory = (11, 40) if gpus == 1 else (7, 72) if gpus <= CARDS_A_NODE // 2 else (6, 56)
    return {GPU: gpus * 1000, "cpu": gpus * cores * 1000, "memory": gpus * memory * GIB}


class _Maker:
    """Makes the jobs of one workload."""

    def __init__(
        self, recipe: TraceRecipe, weights: Mapping[str, float], *, seconds: float, arrive: float, seed: int
    ) -> None:
        self.nodes = NodeGroup(name="node", count=NODES, allocatable=NODE)
        self._recipe = recipe
        self._capacity = {name: amount * NODES for name, amount in self.nodes.amounts().items()}
        self._seconds = seconds
        self._arrive = arrive
        self._seed = seed
        total = sum(weights.values()) or 1.0
        self._entitled = {tenant: weight / total for tenant, weight in weights.items()}

    def make(self, trace: Mapping[str, list[TraceJob]]) -> list[WorkloadJob]:
        """Makes all jobs, by offset."""
        parts = self._parts()
        slices = {tenant: self._slice(trace[tenant], parts[tenant]) for tenant in parts}
        standing = self._standing(slices)
        jobs = []
        for tenant, found in slices.items():
            first = len(standing[tenant])
            offsets = [*standing[tenant], *self._arrivals(found[first:])]
            jobs += [self._job(job, offset) for job, offset in zip(found, offsets, strict=True)]
        return sorted(jobs, key=lambda job: (job.offset, job.tenant, job.id))

    def _parts(self) -> dict[str, float]:
        """The parts of the offered work, by tenant. Follows the recipe's own weights: who submits what is no matter of policy."""
        own = self._recipe.weights
        total = sum(own.values())
        busy = sorted(own, key=lambda tenant: (own[tenant], tenant))[: math.ceil(len(own) / 2)]
        return {
            tenant: (1 - SURPLUS) * weight / total + (SURPLUS / len(busy) if tenant in busy else 0.0)
            for tenant, weight in own.items()
        }

    def _slice(self, jobs: list[TraceJob], part: float) -> list[TraceJob]:
        """The tenant's first usable jobs, until they come to its part of the work."""
        usable = [job for job in jobs if self._usable(job)]
        if not usable:
            raise TraceError(f"tenant {jobs[0].tenant} has no job that the demo can use")
        taken: list[TraceJob] = []
        work = 0.0
        for job in _laps(usable):
            if work >= part * self._seconds:
                break
            taken.append(job)
            work += self._share(job) * job.duration_seconds / self._recipe.speed_up
        return taken

    def _usable(self, job: TraceJob) -> bool:
        return (
            0 < job.gpus <= LARGEST_PART * NODES * CARDS_A_NODE
            and SHORTEST_SECONDS <= job.duration_seconds <= self._recipe.longest_seconds
        )

    def _share(self, job: TraceJob) -> float:
        return max(amount / self._capacity[name] for name, amount in demand_of(job.gpus).items())

    def _standing(self, slices: Mapping[str, list[TraceJob]]) -> dict[str, list[float]]:
        """Offsets of each tenant's standing jobs: by turns, whoever has the least for its weight goes next."""
        use = dict.fromkeys(slices, 0.0)
        turns: list[str] = []
        taken = dict.fromkeys(slices, 0)
        while open_to := [
            tenant
            for tenant, found in slices.items()
            if use[tenant] < STANDING * self._entitled[tenant] and taken[tenant] < len(found)
        ]:
            tenant = min(open_to, key=lambda name: (use[name] / self._entitled[name], name))
            use[tenant] += self._share(slices[tenant][taken[tenant]])
            taken[tenant] += 1
            turns.append(tenant)
        offsets: dict[str, list[float]] = {tenant: [] for tenant in slices}
        for turn, tenant in enumerate(turns):
            offsets[tenant].append(STANDING_SECONDS * turn / len(turns))
        return offsets

    def _arrivals(self, jobs: list[TraceJob]) -> Iterator[float]:
        """The tenant's own arrival pattern, squeezed into the time of arrivals."""
        if not jobs:
            return
        first = jobs[0].submit_seconds
        span = jobs[-1].submit_seconds - first or 1.0
        room = max(self._arrive - STANDING_SECONDS, 0.0)
        for job in jobs:
            yield STANDING_SECONDS + room * (job.submit_seconds - first) / span

    def _job(self, job: TraceJob, offset: float) -> WorkloadJob:
        return WorkloadJob(
            id=f"{job.tenant}-{job.job:0>5}",
            tenant=job.tenant,
            offset=from_seconds(offset),
            demand=demand_of(job.gpus),
            run=max(from_seconds(job.duration_seconds / self._recipe.speed_up), SECOND // 1000),
            pods=math.ceil(job.gpus / CARDS_A_NODE),
            job_class="urgent" if self._urgent(job) else None,
        )

    def _urgent(self, job: TraceJob) -> bool:
        if job.tenant not in self._recipe.urgent:
            return False
        digest = hashlib.blake2b(f"{self._seed}/{job.tenant}/{job.job}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) < URGENT_PART * 2**64


def _laps(jobs: list[TraceJob]) -> Iterator[TraceJob]:
    """The jobs, and again from the start, each lap behind the one before and under names of its own."""
    yield from jobs
    span = jobs[-1].submit_seconds - jobs[0].submit_seconds + 1.0
    for lap in itertools.count(1):
        for job in jobs:
            yield msgspec.structs.replace(
                job, job=f"{job.job:0>5}-{lap}", submit_seconds=job.submit_seconds + lap * span
            )


def _recipe_for(name: str, jobs: Mapping[str, list[TraceJob]]) -> TraceRecipe:
    """A recipe for a trace that we do not know: its busiest tenants, the busiest with the lowest weight."""
    work = {
        tenant: sum(job.gpus * job.duration_seconds for job in found)
        for tenant, found in jobs.items()
        if any(job.gpus > 0 and job.duration_seconds >= SHORTEST_SECONDS for job in found)
    }
    if not work:
        raise TraceError(f"{name}: no tenant has a job with cards that runs for a minute")
    busiest = sorted(work, key=lambda tenant: (-work[tenant], tenant))[:MOST_TENANTS]
    longest = quantile((job.duration_seconds for tenant in busiest for job in jobs[tenant]), 0.9)
    longest = max(longest, 2 * SHORTEST_SECONDS)
    return TraceRecipe(
        name=name,
        weights={tenant: float(rank) for rank, tenant in enumerate(busiest, start=1)},
        urgent=tuple(busiest[::2]),
        longest_seconds=longest,
        speed_up=longest / _LONGEST_RUN,
    )


def _notes(recipe: TraceRecipe, seconds: float, overload: float) -> list[str]:
    longest = recipe.longest_seconds / 3600
    arrive = f"{seconds / overload:.3g} s, {overload:.3g} times the cluster's capacity"
    return [
        f"Jobs of {recipe.name}: arrivals in their order, card counts and run times (60 s to {longest:.3g} h).",
        "CPU and memory are derived from the number of cards; tenants have no common clock.",
        (
            f"Run times divided by {recipe.speed_up:.6g} and aging multiplied by it: a day of the trace is worth "
            f"{Aging().entitlement_per_day:g} of what a tenant is entitled to, the default."
        ),
        f"Arrivals squeezed into {arrive}; each tenant begins with a standing queue.",
        "The queue is strict: what does not fit blocks what stands behind it, so nothing slips past a large job.",
    ]
