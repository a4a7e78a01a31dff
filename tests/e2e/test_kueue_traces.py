"""Traces of jobs that Kueue runs, one for each life: the hop through Kubernetes is an annotation, or the job's uid."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_testkit import eventually
from fairlead_testkit.chaos.audit import stated_job
from fairlead_testkit.fleets.fleet import submit_all
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, KubeFleet, fair_policy
from fairlead_testkit.kubelab import RUN_SECONDS, KubeLab
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.telemetry.jaeger import STAGES, Jaeger, check_connected, traces_of, whole_trace

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(420)]

HOLDS = "holds"
SCORER = "fairlead-scorer"
LONG = 3600
"""Seconds that a job would run which the test stops, and later ends."""
TEMPLATE = {"image": "busybox", "annotations": {RUN_SECONDS: "1"}}
OF_KUBECTL = frozenset({"submit", "observed", "admitted", "started", "ended"})
SENT_BY = {
    "submit": "fairlead-admitter",
    "observed": "fairlead-watcher",
    "scored": "fairlead-scorer",
    "level": "fairlead-admitter",
    "admitted": "fairlead-admitter",
    "started": "fairlead-watcher",
    "ended": "fairlead-watcher",
}


def bodies(name: str, count: int) -> list[dict[str, object]]:
    return [
        {"id": f"{name}-{number}", "demand": {"nvidia.com/gpu": 1}, "template": TEMPLATE}
        for number in range(count)
    ]


def traced_fleet(fixture: NamespaceFixture, directory: Path, jaeger: Jaeger) -> KubeFleet:
    """A fleet with one card for two tenants, both of whom may submit; every job is traced."""
    pool = fixture.queue("shared", 1)
    for namespace in fixture.namespaces.values():
        fixture.lab.open_to_submissions(namespace)
    policy = fair_policy(fixture, {"team-a": 1, "team-b": 1}, pool, preemption="never")
    settings = {"otel_endpoint": jaeger.endpoint, "otel_sample_ratio": 1}
    return KubeFleet(directory, fixture.lab, policy=policy, scorers=1, settings=settings)


async def workload_of(fixture: NamespaceFixture, job: str) -> str:
    """The name of the Workload that Kueue makes of a Job."""

    def made() -> str | None:
        owners = {
            item["metadata"]["name"]: [owner["name"] for owner in item["metadata"].get("ownerReferences", [])]
            for item in fixture.workloads()
        }
        return next((name for name, found in owners.items() if job in found), None)

    return await eventually(made, 60, what="Kueue makes a Workload of the Job")


async def test_jobs_of_nats_and_of_kubectl_leave_one_connected_trace_each(
    kube_lab: KubeLab, tmp_path: Path, jaeger: Jaeger
) -> None:
    with NamespaceFixture(kube_lab, ["team-a", "team-b"]) as fixture:
        fleet = traced_fleet(fixture, tmp_path, jaeger)
        async with fleet.running() as bus:
            jobs = []
            for tenant in fixture.namespaces.values():
                jobs += await submit_all(bus, tenant, bodies(tenant, 3), cluster=KUBE_CLUSTER)
            fixture.job("team-a", "by-hand", seconds=1)
            by_hand = await workload_of(fixture, "by-hand")
            traces = await traces_of(bus, KUBE_CLUSTER, [*jobs, by_hand], within=240)
            levelled = 0
            for job in jobs:
                found = await whole_trace(jaeger, traces[job], STAGES - {"level", "scored"})
                check_connected(found)
                levelled += found.names() >= STAGES
                for span in found.spans:
                    assert found.service(span) == SENT_BY[span.operation_name]
            assert levelled >= 1, "who waited was placed, and got a level"
            found = await whole_trace(jaeger, traces[by_hand], OF_KUBECTL)
            check_connected(found)
            [root] = [span for span in found.spans if span.operation_name == "submit"]
            assert found.service(root) == "fairlead-watcher", "whoever sees it first tells its root"


async def test_a_kill_of_each_service_and_a_restart_of_the_job_leave_one_story(
    kube_lab: KubeLab, tmp_path: Path, jaeger: Jaeger
) -> None:
    with NamespaceFixture(kube_lab, ["team-a", "team-b"]) as fixture:
        fleet = traced_fleet(fixture, tmp_path, jaeger)
        first, second = fixture.namespaces.values()
        async with fleet.running() as bus:
            fixture.job("team-a", "again", seconds=LONG)
            again = await workload_of(fixture, "again")
            await eventually(
                partial(is_stated_to_run, bus, first, again), 60, what="the watcher saw the start"
            )
            jobs: list[str] = []
            for name, service in list(fleet.services.items()):
                of_scorer = service.service == "scorer"
                async with held(fixture, jaeger) if of_scorer else contextlib.nullcontext():
                    jobs += await submit_all(bus, first, bodies(f"before-{name}", 2), cluster=KUBE_CLUSTER)
                    service.kill()
                    jobs += await submit_all(bus, second, bodies(f"during-{name}", 1), cluster=KUBE_CLUSTER)
                    if service.service == "watcher":
                        await put_back(kube_lab, fixture, again)
                    if of_scorer:
                        await eventually(fixture.waiting, 60, what="a job waits for the scorer")
                    await service.start().ready()
                    if service.service == "watcher":
                        await ends(fixture, again)
            traces = await traces_of(bus, KUBE_CLUSTER, [*jobs, again], within=240)
            for job in jobs:
                found = await whole_trace(jaeger, traces[job], STAGES - {"level", "scored"})
                check_connected(found)
                assert len({span.span_id for span in found.spans if span.operation_name == "started"}) == 1
            found = await whole_trace(jaeger, traces[again], OF_KUBECTL)
            check_connected(found)
            assert len({span.span_id for span in found.spans if span.operation_name == "started"}) == 2
            for role in ("watcher", "scorer", "admitter"):
                await eventually(
                    partial(takeover_is_linked, jaeger, f"fairlead-{role}", set(traces.values())),
                    60,
                    what=f"a takeover of {role} is linked to a job",
                )


async def is_stated_to_run(bus: Bus, namespace: str, workload: str) -> bool:
    """Whether NATS has the job's start: a watcher that dies sooner saw none, and nobody could tell of it later."""
    job = await stated_job(bus, KUBE_CLUSTER, namespace, workload)
    return job is not None and job.started is not None


@contextlib.asynccontextmanager
async def held(fixture: NamespaceFixture, jaeger: Jaeger) -> AsyncIterator[None]:
    """Holds the one card: what comes meanwhile waits, until a scorer that took over has placed somebody in its first pass."""
    fixture.workload("team-a", HOLDS)
    await eventually(lambda: HOLDS in fixture.admitted(), 60, what="the card is held")
    before = takeovers_with_jobs(jaeger, SCORER)
    yield

    async def placed() -> set[str]:
        return await asyncio.to_thread(takeovers_with_jobs, jaeger, SCORER) - before

    await eventually(placed, 60, what="a first pass placed somebody")
    fixture.finish("team-a", HOLDS)


async def put_back(lab: KubeLab, fixture: NamespaceFixture, name: str) -> None:
    """Kueue stops a running job and starts it again, with nobody of us watching."""
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{fixture.namespaces['team-a']}/workloads/{name}"
    lab.api.patch(path, {"spec": {"active": False}})
    await eventually(lambda: name in fixture.waiting(), 60, what="the job is stopped before it has ended")
    lab.api.patch(path, {"spec": {"active": True}})


async def ends(fixture: NamespaceFixture, name: str) -> None:
    """The job ends well, once it runs again."""

    def ended() -> bool:
        running = fixture.admitted().get(name)
        return running is not None and fixture.complete("team-a", running)

    await eventually(ended, 60, what="the job runs again, and ends")


async def takeover_is_linked(jaeger: Jaeger, service: str, traces: set[str]) -> bool:
    """Whether a takeover of a service is linked to one of the traces; services send their spans some seconds late."""
    return bool(await asyncio.to_thread(takeovers_with_jobs, jaeger, service) & traces)


def takeovers_with_jobs(jaeger: Jaeger, service: str) -> set[str]:
    """The traces that takeovers of a service are linked to."""
    told = [span for trace in jaeger.traces(service, "take over") for span in trace.spans]
    return {link for span in told for link in span.links}
