"""Job 7 and its pod, with slurmctld and Kubernetes played by hand, and the parts of the bridge that look at them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from fairlead_contracts.base.observer import SILENT
from fairlead_kube.client import KubeClient, connect
from fairlead_kube.reflector import Key
from fairlead_kube.settings import KubeSettings
from fairlead_slurm_bridge.gate.attempts import LABEL_RESTARTS, Attempt
from fairlead_slurm_bridge.gate.kube_facts import ANNOTATION_HANDED_ON, JobPod
from fairlead_slurm_bridge.pods.following import PodFollower, Word
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.manifest import PodRules
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.requests import MARK
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_slurm_bridge.store import SubmissionStore
from fairlead_testkit.by_hand.one_pod import HearPod, OneJobSlurmctld, OnePodServer, ShowPod
from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.timing.in_hand import ManualClock

ATTEMPT = Attempt(7, 0)
KEY = Key("slurm", "slurm-hpc-7-r0")


@pytest.fixture
def pod() -> JobPod:
    """The pod of the job's first attempt, whose program runs."""
    return JobPod(
        attempt=ATTEMPT, uid="u", phase="Running", ready=True, node="a", leaving=False, exit_code=None, reason="", message="", user=1000, digest="",
    )  # fmt: skip


@pytest.fixture
def script() -> str:
    """The part of the job's batch script that runs in the pod."""
    return "#!/bin/sh\ntrue\n"


@pytest.fixture
def slurmctld(script: str) -> OneJobSlurmctld:
    return OneJobSlurmctld(f"#!/bin/sh\n{MARK}\n{script}")


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[OnePodServer]:
    api = OnePodServer(f"/api/v1/namespaces/{KEY.namespace}/pods/{KEY.name}", tmp_path / "kubeconfig")
    async with api.serving():
        yield api


@pytest.fixture
async def client(api: OnePodServer) -> AsyncIterator[KubeClient]:
    async with connect(KubeSettings(kubeconfig=str(api.kubeconfig)), user_agent="test") as client:
        yield client


@pytest.fixture
async def mirror(api: OnePodServer, client: KubeClient) -> KubeMirror:
    """The mirror, which shows as well what a patch did, where that makes the pod another attempt's."""
    mirror = KubeMirror(client, "hpc", {}, observer=SILENT)

    def patched(patch: KubeObject) -> None:
        restarts, pod = patch["metadata"].get("labels", {}).get(LABEL_RESTARTS), mirror.pods.get(KEY)
        if restarts is not None and pod is not None:
            handed_on = bool(patch["metadata"]["annotations"][ANNOTATION_HANDED_ON])
            attempt = Attempt(ATTEMPT.job, int(restarts))
            mirror.pods[KEY] = msgspec.structs.replace(pod, attempt=attempt, handed_on=handed_on)
            mirror.look()

    api.patched = patched
    return mirror


@pytest.fixture
def show(mirror: KubeMirror) -> ShowPod[JobPod]:
    """Shows the pod as it is from now on; None for a pod that is gone."""

    def put(pod: JobPod | None) -> None:
        mirror.pods.pop(KEY, None)
        if pod is not None:
            mirror.pods[KEY] = pod
        mirror.look()

    return put


@pytest.fixture
def wall() -> ManualClock:
    """The wall clock."""
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SubmissionStore]:
    with contextlib.closing(SubmissionStore(tmp_path / "bridge.db")) as found:
        yield found


@pytest.fixture
def runs(store: SubmissionStore, wall: ManualClock) -> Runs:
    return Runs(store, wall)


@pytest.fixture
async def life(slurmctld: OneJobSlurmctld, client: KubeClient, mirror: KubeMirror, runs: Runs) -> PodLife:
    rules = PodRules(cluster="hpc", namespace="slurm", image="busybox")
    settings = SlurmBridgeSettings(pods_partition="pods", pods_ready_seconds=5, pods_gone_seconds=5)
    return PodLife(slurmctld, client, mirror, rules, runs, settings=settings)


@pytest.fixture
def hear(client: KubeClient, mirror: KubeMirror, life: PodLife) -> HearPod[Word]:
    """Follows the pod to its end, as the process of its first attempt does."""
    follower = PodFollower(client, mirror, life)

    async def heard(*, user: int = 1000, skip: int = 0, stop: asyncio.Event | None = None) -> list[Word]:
        told = follower.follow(ATTEMPT, user, skip, stop or asyncio.Event())
        return [word async for word in told]

    return heard
