"""Typed calls on the real API server with the real Kueue: rights, refusals, versions, the lever, Events."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from fairlead_kube.client import KubeClient, connect, service_account
from fairlead_kube.discovery import can_i, pick_version, served, server_version, whoami
from fairlead_kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InternalError,
    InvalidError,
    NotFoundError,
)
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.resources import (
    CLUSTER_QUEUES,
    JOBS,
    KUEUE,
    NAMESPACES,
    NODE_POOLS,
    NODES,
    PODS,
    PYTORCH_JOBS,
    VALIDATING_WEBHOOKS,
    WORKLOADS,
)
from fairlead_kube.kinds.workloads import PRIORITY_BOOST
from fairlead_kube.lever import Lever, probe_lever
from fairlead_kube.reflector import Key, Reflector, whole
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.kubelab import ADMIN, ADMITTER, WATCHER, KubeLab, things
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.kube


@contextlib.asynccontextmanager
async def client_of(lab: KubeLab, user: str = ADMIN) -> AsyncIterator[KubeClient]:
    settings = KubeSettings(kubeconfig=str(lab.kubeconfig(user)), write_qps=1000, write_burst=1000)
    async with connect(settings, user_agent="fairlead-test") as client:
        yield client


@pytest.fixture
async def client(kube_lab: KubeLab) -> AsyncIterator[KubeClient]:
    async with client_of(kube_lab) as found:
        yield found


@pytest.fixture
async def namespace(client: KubeClient) -> str:
    """A namespace of the test's own. Not deleted: that takes longer than the test, and the lab goes away."""
    name = f"kube-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


def workload(name: str, namespace: str, **annotations: str) -> dict[str, object]:
    return things.workload(name, namespace, "nowhere", {"cpu": 1}, annotations=annotations)


async def test_who_we_are_and_what_is_served_is_told(client: KubeClient) -> None:
    assert (await server_version(client)).git_version.startswith("v1.")
    assert (await whoami(client)).username == "admin"
    assert "workloads" in (await served(client, KUEUE))["v1beta2"]
    assert (await served(client, ""))["v1"]["pods"].namespaced
    assert await served(client, "no.such.group") == {}


async def test_the_version_is_the_wanted_one_or_the_ripest_that_is_served(client: KubeClient) -> None:
    assert await pick_version(client, WORKLOADS) == WORKLOADS
    assert await pick_version(client, PYTORCH_JOBS) == PYTORCH_JOBS
    assert await pick_version(client, NODE_POOLS) == NODE_POOLS
    assert await pick_version(client, WORKLOADS.at("v1beta9")) == WORKLOADS
    assert await pick_version(client, msgspec.structs.replace(WORKLOADS, plural="toys")) is None


async def test_rights_are_asked_of_the_server(kube_lab: KubeLab, namespace: str) -> None:
    async with client_of(kube_lab, WATCHER) as watcher:
        assert await can_i(watcher, "list", WORKLOADS)
        assert not await can_i(watcher, "patch", WORKLOADS)
        with pytest.raises(ForbiddenError) as caught:
            await watcher.create(NAMESPACES, {"metadata": {"name": "mine"}})
        assert not caught.value.by_webhook
    async with client_of(kube_lab, ADMITTER) as admitter:
        assert await can_i(admitter, "patch", WORKLOADS, namespace=namespace, name="one")
        assert not await can_i(admitter, "patch", WORKLOADS, subresource="status")


async def test_rights_of_a_service_account_are_asked_without_being_it(client: KubeClient) -> None:
    assert await can_i(client, "patch", WORKLOADS, account=("fairlead", "fairlead-admitter"))
    assert not await can_i(client, "patch", WORKLOADS, account=("fairlead", "fairlead-watcher"))
    assert not await can_i(client, "patch", WORKLOADS, account=("elsewhere", "fairlead-admitter"))


async def test_an_object_is_made_read_patched_applied_and_deleted(client: KubeClient, namespace: str) -> None:
    made = await client.create(WORKLOADS, workload("one", namespace))
    assert (made.spec.queue_name, made.active) == ("nowhere", True)
    with pytest.raises(AlreadyExistsError):
        await client.create(WORKLOADS, workload("one", namespace))
    boost = {"metadata": {"annotations": {PRIORITY_BOOST: "12"}}}
    patched = await client.merge_patch(WORKLOADS, "one", boost, namespace, field_manager="fairlead")
    assert patched.metadata.annotation(PRIORITY_BOOST) == "12"
    with pytest.raises(ConflictError):
        await client.merge_patch(
            WORKLOADS, "one", boost, namespace, resource_version=made.metadata.resource_version
        )
    gone = {"metadata": {"annotations": {PRIORITY_BOOST: None}}}
    assert (await client.merge_patch(WORKLOADS, "one", gone, namespace)).metadata.annotation(
        PRIORITY_BOOST
    ) is None
    applied = await client.apply(
        WORKLOADS, "one", {"spec": {"priority": 7}}, namespace, field_manager="fairlead"
    )
    assert applied.spec.priority == 7
    with pytest.raises(ConflictError):
        await client.delete(WORKLOADS, "one", namespace, uid=str(uuid.uuid4()))
    with pytest.raises(ConflictError):
        await client.delete(WORKLOADS, "one", namespace, resource_version=made.metadata.resource_version)
    await client.delete(WORKLOADS, "one", namespace, uid=made.metadata.uid)
    with pytest.raises(NotFoundError):
        await client.get(WORKLOADS, "one", namespace)


async def test_a_status_is_patched_by_its_subresource(client: KubeClient, namespace: str) -> None:
    await client.create(WORKLOADS, workload("one", namespace))
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "done",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = {"status": {"conditions": [finished]}}
    found = await client.merge_patch(WORKLOADS, "one", patch, namespace, subresource="status")
    assert found.holds("Finished")


async def test_refusals_name_the_field_and_who_refused(client: KubeClient, namespace: str) -> None:
    with pytest.raises(InvalidError) as invalid:
        await client.create(WORKLOADS, {"metadata": {"name": "bad"}, "spec": {"podSets": []}}, namespace)
    assert [cause.field for cause in invalid.value.causes] == ["spec.podSets"]
    with pytest.raises(ForbiddenError) as forbidden:
        await client.create(WORKLOADS, workload("bad", namespace, **{PRIORITY_BOOST: "1e3"}))
    assert forbidden.value.by_webhook


async def test_lists_are_read_in_pages_and_selected(client: KubeClient, namespace: str) -> None:
    for number in range(5):
        await client.create(WORKLOADS, workload(f"w{number}", namespace))
    everything = await client.list(WORKLOADS, namespace, limit=2)
    assert [one.metadata.name for one in everything] == [f"w{number}" for number in range(5)]
    [found] = await client.list(WORKLOADS, namespace, field_selector="metadata.name=w3")
    assert found.metadata.name == "w3"
    headers = await client.list(WORKLOADS.metadata(), namespace)
    assert [type(one) for one in headers] == [PartialObject] * 5
    assert (await client.get(WORKLOADS.metadata(), "w1", namespace)).metadata.name == "w1"


async def test_a_job_is_made_as_the_tenants_service_account(
    kube_lab: KubeLab, client: KubeClient, namespace: str
) -> None:
    kube_lab.open_to_submissions(namespace)
    job = things.job("train", namespace, "nowhere", {"cpu": 1})
    user = service_account(namespace, "fairlead-submitter")
    async with client_of(kube_lab, ADMITTER) as admitter:
        with pytest.raises(ForbiddenError):
            await admitter.create(JOBS, job)

        async def create() -> bool:
            try:
                return (await admitter.create(JOBS, job, impersonate=user)).spec.suspend
            except ForbiddenError:  # the grant takes a moment to be known
                return False

        assert await eventually(create, 60)
    assert (await client.get(JOBS, "train", namespace)).spec.suspend


async def test_all_kinds_of_the_lab_are_decoded(client: KubeClient) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"
    await client.create(
        CLUSTER_QUEUES, things.cluster_queue(queue, {"cpu": "8500m"}, flavor="none", cohort="c")
    )
    found = await client.get(CLUSTER_QUEUES, queue)
    assert found.spec.parent == "c"
    assert found.spec.preemption.within_cluster_queue == "Never"

    async def all_ready() -> list[Node]:
        """The nodes once all are ready: one whose lease came late is not for a moment."""
        listed = await client.list(NODES)
        return listed if all(one.ready for one in listed) else []

    nodes = await eventually(all_ready, 60)
    assert {(one.status.allocatable or {}).get("nvidia.com/gpu") for one in nodes} == {"8", None}
    assert any(
        webhook.sees(KUEUE, "workloads", "CREATE")
        for one in await client.list(VALIDATING_WEBHOOKS)
        for webhook in one.webhooks or ()
    )
    await client.list(PODS)


async def test_a_deleted_namespace_takes_its_objects_out_of_the_mirror(
    client: KubeClient, namespace: str
) -> None:
    for number in range(20):
        await client.create(WORKLOADS, workload(f"w{number}", namespace))
    wake = asyncio.Event()
    metadata = Reflector(client, WORKLOADS.metadata(), project=whole, wake=wake)
    full = Reflector(client, WORKLOADS, project=lambda one: one.metadata.uid, wake=wake, namespace=namespace)

    def standing() -> int:
        return len(full.values) + sum(key.namespace == namespace for key in metadata.values)

    async with beside(metadata.run(), full.run()):
        await eventually(lambda: standing() == 40, 60, on=wake)
        assert metadata.take().changed[Key(namespace, "w0")] is not None
        full.take()
        await client.delete(NAMESPACES, namespace)
        await eventually(lambda: standing() == 0, 60, on=wake)
        assert full.take().changed == {Key(namespace, f"w{number}"): None for number in range(20)}


async def test_the_lever_is_found_where_boosts_are_read(kube_lab: KubeLab) -> None:
    async with client_of(kube_lab, ADMITTER) as admitter:
        found = await probe_lever(admitter, "fairlead")
        assert found.lever is Lever.BOOST
        assert (await probe_lever(admitter, "default")).lever is Lever.UNKNOWN  # no right to
        assert await admitter.list(WORKLOADS, "fairlead") == []  # nothing was stored


async def test_the_lever_without_boosts_without_webhooks_and_while_kueue_is_down(kueue_lab: KubeLab) -> None:
    await asyncio.to_thread(kueue_lab.restart_kueue, gates={})
    async with client_of(kueue_lab, ADMITTER) as admitter:
        assert (await probe_lever(admitter, "fairlead")).lever is Lever.PRIORITY
        await asyncio.to_thread(kueue_lab.process("kueue").kill)
        with pytest.raises(InternalError):
            await probe_lever(admitter, "fairlead")
        kueue_lab.remove_webhooks()

        async def unknown() -> bool:  # the API server hears of it after a moment
            with contextlib.suppress(InternalError):
                return (await probe_lever(admitter, "fairlead")).lever is Lever.UNKNOWN
            return False

        try:
            await eventually(unknown, 60)
        finally:
            kueue_lab.register_webhooks()


async def test_a_kubeconfig_with_client_certificates_and_plain_data_connects(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """The lab's certificates, by file there, are data here and under a second context."""
    shown = json.loads(kube_lab.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    shown["contexts"].append({"name": "second", "context": shown["contexts"][0]["context"]})
    shown["current-context"] = "absent"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(shown))
    async with connect(
        KubeSettings(kubeconfig=str(path), context="second"), user_agent="fairlead-test"
    ) as client:
        assert (await whoami(client)).username == "admin"
