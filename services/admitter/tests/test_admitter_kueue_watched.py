"""Jobs on Kueue with the real watcher beside: what a sender hears of them, and what their authors read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import (
    Accepted,
    AnyAnswer,
    Cancelling,
    Ended,
    Refused,
    Started,
)
from fairlead_contracts.policyfile.document import Tenant
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, RunAdmitter
from fairlead_testkit.by_hand.people import cancel, put_policy, submit
from fairlead_testkit.inputs.builders import a_body, a_document
from fairlead_testkit.kubelab import ADMITTER, RUN_SECONDS, WATCHER, KubeLab, things
from fairlead_testkit.kueue.kueue_team import Team

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
async def watched(
    kube_lab: KubeLab, bus: Bus, policy: int, nats_server: NatsServer, tmp_path: Path
) -> AsyncIterator[Team]:
    """A team of a cluster that a watcher states."""
    assert policy
    team = Team(kube_lab)
    team.open()
    await put_policy(bus, a_document(shards=2, tenants=[Tenant(name=team.name)]))
    given = {"cluster": CLUSTER, "nats_url": nats_server.url, "kubeconfig": kube_lab.kubeconfig(WATCHER)}
    with ServiceProcess("watcher", tmp_path, given) as watcher:
        await watcher.ready()
        yield team


async def test_senders_hear_every_step_of_every_kind(
    bus: Bus, watched: Team, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    kinds = {"job": [Accepted, Started, Ended], "pod-group": [Accepted, Started, Ended]}
    kinds["pytorch-job"] = [Accepted, Started]  # no operator runs its pods here
    access = {"frontend": "kueue", "kubeconfig": str(watched.lab.kubeconfig(ADMITTER))}
    async with run_admitter(**access, template_annotation_prefixes=["fairlead.test/"]):
        for kind in kinds:
            template = {"image": "busybox", "kind": kind, "annotations": {RUN_SECONDS: "1"}}
            body = a_body(id=f"a-{kind}", pods=2, demand={"cpu": 2}, template=template)
            await submit(bus, body, tenant=watched.name)

        def steps() -> dict[str, list[type]]:
            return {kind: [type(answer) for answer in answers if answer.id == f"a-{kind}"] for kind in kinds}

        await eventually(lambda: steps() == kinds, 90, what="all steps")
    ended = [answer for answer in answers if isinstance(answer, Ended)]
    assert {answer.outcome.value for answer in ended} == {"succeeded"}


async def submit_and_cancel(bus: Bus, team: Team) -> set[str]:
    """Submits jobs and cancels each in the same moment: most are gone before anybody states them."""
    names = [f"at-once-{number}" for number in range(5)]
    for name in names:
        template = {"image": "busybox", "kind": "job"}
        await submit(bus, a_body(id=name, demand={"cpu": 1}, template=template), tenant=team.name)
        await cancel(bus, name, tenant=team.name)
    return set(names)


async def test_a_job_of_every_kind_is_cancelled_and_stays_so(
    bus: Bus, watched: Team, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    """Those that run are stopped, one that waits leaves the queue, and another's of the same name is left alone."""
    # One waits: it is cancelled before the others make room.
    kinds: dict[str, list[type[AnyAnswer]]] = {"waits": [Accepted]}
    kinds |= {kind: [Accepted, Started] for kind in ("job", "pod-group", "pytorch-job")}
    watched.lab.api.create(things.job("by-hand", watched.name, "main", {"cpu": 1}, seconds=600))

    def ours() -> list[AnyAnswer]:
        return [answer for answer in answers if answer.tenant == watched.name]  # others share the lab

    def steps() -> dict[str, list[type[AnyAnswer]]]:
        return {name: [type(answer) for answer in ours() if answer.id == name] for name in kinds}

    async def heard(*more: type[AnyAnswer]) -> None:
        expected = {name: [*before, *more] for name, before in kinds.items()}
        await eventually(lambda: steps() == expected, 60, what=f"all hear {more}")

    def body(name: str) -> bytes:
        kind, cpu = ("job", 32) if name == "waits" else (name, 2)
        template = {"image": "busybox", "kind": kind, "annotations": {RUN_SECONDS: "600"}}
        return a_body(id=name, pods=2, demand={"cpu": cpu}, template=template)

    access = {"frontend": "kueue", "kubeconfig": str(watched.lab.kubeconfig(ADMITTER))}
    async with run_admitter(**access, template_annotation_prefixes=["fairlead.test/"]):
        for name in reversed(kinds):
            await submit(bus, body(name), tenant=watched.name)
        await heard()
        for name in (*kinds, "by-hand"):
            await cancel(bus, name, tenant=watched.name)
        await heard(Cancelling, Ended)
        at_once = await submit_and_cancel(bus, watched)

        def ended_at_once() -> set[str]:
            return {one.id for one in ours() if isinstance(one, Ended)} & at_once

        await eventually(lambda: ended_at_once() == at_once, 60, what="they hear of their end")
        outcomes = {one.id: one.outcome for one in ours() if isinstance(one, Ended) and one.id in kinds}
        assert outcomes == dict.fromkeys(kinds, Outcome.CANCELLED)
        for name in kinds:  # in Kubernetes it is free, and the last that was said is a refusal
            await submit(bus, a_body(id=name, pods=0), tenant=watched.name)
            await submit(bus, body(name), tenant=watched.name)
        await heard(Cancelling, Ended, Refused, Ended)
    refused = {(answer.id, answer.field) for answer in ours() if isinstance(answer, Refused)}
    assert refused == {("by-hand", "id"), *((name, "pods") for name in kinds)}
    assert [job["metadata"]["name"] for job in watched.jobs()] == ["by-hand"]
    assert {pod["metadata"]["name"].rpartition("-")[0] for pod in watched.pods()} == {"by-hand"}
    # Kubernetes collects the Workloads of jobs that are gone.
    await eventually(lambda: len(watched.workloads()) == 1, 60, what="only the Workload made by hand is left")


async def test_a_class_that_is_taken_without_a_grant_is_told_where_it_was_asked_for(
    watched: Team, run_admitter: RunAdmitter
) -> None:
    asking = {"wdrf.x-k8s.io/urgent": "true", "wdrf.x-k8s.io/priority-override": "very high"}
    job = things.job("greedy", watched.name, "main", {"cpu": 31}, pods=2, annotations=asking)
    watched.lab.api.create(job)
    stray = things.job("stray", watched.name, "nowhere", {"cpu": 1})
    watched.lab.api.create(stray)

    def told(name: str) -> set[str]:
        events = watched.items("v1", "events")
        return {
            event["reason"]
            for event in events
            if event["involvedObject"]["name"] == name
            and event["source"].get("component") == "fairlead-admitter"
        }

    async with run_admitter(frontend="kueue", kubeconfig=str(watched.lab.kubeconfig(ADMITTER))):
        expected = {"ClassNotGranted", "BadAnnotation", "LargerThanQuota"}
        await eventually(lambda: told("greedy") == expected, 90, what="three objections")
        await eventually(lambda: told("stray") == {"NoSuchQueue"}, 90, what="no such queue")
