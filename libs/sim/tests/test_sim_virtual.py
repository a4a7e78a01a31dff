"""Virtual time: deterministic, equal to an independent simulator, and weighted DRF to within one job."""

import heapq

import pytest

from fairlead_contracts.base.instants import SECOND, to_seconds
from fairlead_contracts.policyfile.document import Aging
from fairlead_sim.config import NodeGroup
from fairlead_sim.errors import StuckError
from fairlead_sim.meter import quantile
from fairlead_sim.trace import TraceJob, by_tenant, shipped_trace
from fairlead_sim.virtual import RunResult, VirtualRun, fifo, strict_priority
from fairlead_sim.workload import SimWorkload, WorkloadJob, one_pool, policy_for
from fairlead_testkit.by_hand.steered_run import SteeredRun
from fairlead_testkit.inputs.equal_floods import equal_floods

GPU = "nvidia.com/gpu"
NODES = NodeGroup(name="node", count=4, allocatable={GPU: 8, "cpu": 64})


def gpu_workload(jobs: list[TraceJob], cards: int) -> SimWorkload:
    """Jobs of cards alone on one strict queue, run times as they are."""
    weights = {"tenant": 1.0}
    return SimWorkload(
        name="trace",
        weights=weights,
        cluster=one_pool(
            NodeGroup(name="node", count=1, allocatable={GPU: cards}), weights, strategy="strict"
        ),
        policy=policy_for(weights, cluster="sim", aging=Aging()),
        jobs=[
            WorkloadJob(
                id=f"{number:06d}",
                tenant="tenant",
                offset=round(job.submit_seconds) * SECOND,
                demand={GPU: job.gpus * 1000},
                run=max(round(job.duration_seconds), 1) * SECOND,
            )
            for number, job in enumerate(jobs)
        ],
    )


def first_come_first_served(jobs: list[TraceJob], cards: int) -> list[float]:
    """Waits under FIFO without backfill, by a loop that shares nothing with the simulator under test."""
    free, clock, ends, waits = cards, 0.0, list[tuple[float, int]](), list[float]()
    for job in jobs:
        clock = max(clock, job.submit_seconds)
        while ends and ends[0][0] <= clock:
            free += heapq.heappop(ends)[1]
        while free < job.gpus:
            clock, given_back = heapq.heappop(ends)
            free += given_back
            while ends and ends[0][0] == clock:
                free += heapq.heappop(ends)[1]
        free -= job.gpus
        heapq.heappush(ends, (clock + max(job.duration_seconds, 1), job.gpus))
        waits.append(clock - job.submit_seconds)
    return waits


def test_fifo_equals_an_independent_simulator_job_by_job() -> None:
    jobs = by_tenant(shipped_trace())["vc-0e4a51"]
    result = VirtualRun(gpu_workload(jobs, 96), fifo).run()
    assert [job.waited for job in result.jobs] == first_come_first_served(jobs, 96)


def test_fifo_gives_the_golden_figures_of_a_third_simulator() -> None:
    """Figures of the same trace and pool that were computed elsewhere, before this simulator was written."""
    jobs = by_tenant(shipped_trace())["vc-0e4a51"]
    result = VirtualRun(gpu_workload(jobs, 96), fifo).run()
    waits = [job.waited for job in result.jobs]
    assert len(waits) == 1181
    assert round(sum(waits) / len(waits), 2) == 1187423.13
    assert [quantile(waits, part) for part in (0.5, 0.95, 0.99, 1.0)] == [950545, 2817033, 2911456, 2918830]
    assert result.makespan_seconds == 7843090


def floods() -> SimWorkload:
    return equal_floods(
        {"gold": 3, "silver": 2, "bronze": 1},
        jobs=90,
        run_seconds=3.0,
        nodes=NODES,
        starts={"silver": 0.305, "bronze": 0.505},
        every=0.01,  # so that ends come one by one, as levels are decided between them
    )


def outcome(result: RunResult) -> list[tuple[str, int, int]]:
    return [(job.id, job.started, job.ended) for job in result.jobs]


@pytest.mark.parametrize("reaction", [0, SECOND // 10])
def test_the_same_run_twice_is_the_same_run(reaction: int) -> None:
    runs = [SteeredRun(floods(), reaction=reaction) for _ in range(2)]
    first, second = (run.run() for run in runs)
    assert outcome(first) == outcome(second)
    assert runs[0].writes == runs[1].writes > 0
    assert first.shares == second.shares


def test_every_job_runs_once_and_for_as_long_as_it_should() -> None:
    workload = floods()
    by_class = strict_priority(workload.policy.classes)
    for run in (VirtualRun(workload, fifo), VirtualRun(workload, by_class), SteeredRun(workload)):
        result = run.run()
        assert sorted(job.id for job in result.jobs) == sorted(job.id for job in workload.jobs)
        assert all(job.ended - job.started == 3 * SECOND for job in result.jobs)
        assert all(job.started >= job.submitted for job in result.jobs)


def test_flooding_tenants_are_served_within_one_job_of_weighted_shares() -> None:
    """The tenant that is served at a start has the least use for its weight among those that wait."""
    workload = floods()
    result = SteeredRun(workload).run()
    running = dict.fromkeys(workload.weights, 0)
    waiting = dict.fromkeys(workload.weights, 0)
    points = [(job.submitted, 0, job.tenant) for job in result.jobs]
    points += [(job.ended, 1, job.tenant) for job in result.jobs]
    points += [(job.started, 2, job.tenant) for job in result.jobs]
    for at, kind, tenant in sorted(points, key=lambda point: point[:2]):
        if kind == 0:
            waiting[tenant] += 1
        elif kind == 1:
            running[tenant] -= 1
        else:
            others = [name for name in workload.weights if waiting[name] and name != tenant]
            use = running[tenant] / workload.weights[tenant]
            behind = [name for name in others if (running[name] + 1) / workload.weights[name] < use]
            assert not behind, f"{tenant} is served at {to_seconds(at)} before {behind}"
            waiting[tenant] -= 1
            running[tenant] += 1


def test_urgent_jobs_start_before_normal_ones_that_came_earlier() -> None:
    workload = gpu_workload(
        [TraceJob(tenant="t", job="x", submit_seconds=0, gpus=1, duration_seconds=5)] * 8, 1
    )
    jobs = [
        WorkloadJob(
            id=job.id,
            tenant=job.tenant,
            offset=number,
            demand=job.demand,
            run=job.run,
            job_class="urgent" if number > 5 else None,
        )
        for number, job in enumerate(workload.jobs)
    ]
    policy = policy_for({"tenant": 1.0}, cluster="sim", aging=Aging(), urgent=("tenant",))
    urgent = SimWorkload(
        name="classes", weights={"tenant": 1.0}, cluster=workload.cluster, policy=policy, jobs=jobs
    )
    for run in (VirtualRun(urgent, strict_priority(policy.classes)), SteeredRun(urgent)):
        order = [job.id for job in run.run().jobs]
        assert order == ["000000", "000006", "000007", "000001", "000002", "000003", "000004", "000005"]


def test_a_reaction_time_costs_little() -> None:
    workload = floods()
    at_once, later = SteeredRun(workload), SteeredRun(workload, reaction=SECOND // 10)
    shares = later.run().shares
    for tenant, share in at_once.run().shares.items():
        assert shares[tenant] == pytest.approx(share, rel=0.1)
    assert later.writes < at_once.writes


def test_a_job_that_can_never_start_is_told_and_not_waited_for() -> None:
    with pytest.raises(StuckError, match="can never start"):
        VirtualRun(
            gpu_workload([TraceJob(tenant="t", job="x", submit_seconds=0, gpus=9, duration_seconds=1)], 8),
            fifo,
        ).run()
