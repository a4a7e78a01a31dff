"""The program of a pod: it begins when a process of its attempt has come, or its pod goes and it never does."""

import asyncio

import msgspec
import pytest

from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.following import NO_POD, STOPPED, LastWord, Word
from fairlead_slurm_bridge.pods.forgotten_starts import is_left, is_run_of
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.manifest import handed_to
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.sweeping import Sweeper
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_testkit.by_hand.one_pod import HearPod, OneJobSlurmctld, OnePodServer, ShowPod
from fairlead_testkit.inputs.slurm_builders import NOON, a_slurm_job
from fairlead_testkit.timing.awaiting import eventually

ATTEMPT = Attempt(7, 0)
KEY = Key("slurm", "slurm-hpc-7-r0")
BEGAN = {
    "metadata": {
        "uid": "u",
        "annotations": {"slurm.fairlead.dev/began": "true", "slurm.fairlead.dev/program": "runs"},
    }
}


@pytest.fixture
def waiting(pod: JobPod) -> JobPod:
    """The same pod before its program begins."""
    return msgspec.structs.replace(pod, waits=True)


async def asked_to_begin(api: OnePodServer) -> None:
    await eventually(lambda: BEGAN in api.patches, 20, what="Kubernetes is asked to let the program begin")


async def test_whose_pod_it_is_whose_process_never_came(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    """The bridge died before it answered the prolog: the pod is the next attempt's until a process comes."""
    second = Attempt(7, 1)
    assert is_run_of(pod, second, NOON, pod.digest)
    assert not is_run_of(pod, second, NOON, "another")
    show(pod)
    hearing = asyncio.create_task(hear())
    await asked_to_begin(api)
    hearing.cancel()
    began = msgspec.structs.replace(pod, began=True)
    assert not is_run_of(began, second, NOON, pod.digest), "it was requeued: its program is to run anew"
    assert is_run_of(began, ATTEMPT, 0, pod.digest)


async def test_a_program_begins_when_a_process_has_come(
    api: OnePodServer, waiting: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    """An API server that is away is asked again: nobody else would."""
    api.refusals = 2
    show(waiting)
    hearing = asyncio.create_task(hear())
    await asked_to_begin(api)
    show(None)
    assert (await hearing)[-1] == LastWord(NO_POD)


async def test_a_program_does_not_begin_for_a_process_that_has_been_told_to_end(
    api: OnePodServer, waiting: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    stop = asyncio.Event()
    stop.set()
    show(waiting)
    hearing = asyncio.create_task(hear(stop=stop))
    async with asyncio.timeout(20):
        await api.deleted.wait()
    show(None)
    assert (await hearing)[-1] == LastWord(STOPPED)
    assert api.patches == []


def test_a_pod_that_waits_holds_no_room_for_a_job_that_waits(pod: JobPod, waiting: JobPod) -> None:
    """The pod's program has not begun: another attempt gets another pod, when it is that one's turn."""
    pending = a_slurm_job("7", state="PENDING")
    starting = msgspec.structs.replace(pending, state="CONFIGURING")
    assert is_left(waiting, pending, completing=False)
    assert not is_left(waiting, starting, completing=False)
    assert is_left(waiting, msgspec.structs.replace(starting, restarts=1), completing=False)
    assert not is_left(pod, pending, completing=False), "its program runs, and slurmctld has forgotten that"


async def test_a_program_does_not_begin_for_a_process_that_comes_after_its_attempt_was_refused(
    *,
    api: OnePodServer,
    mirror: KubeMirror,
    waiting: JobPod,
    show: ShowPod[JobPod],
    hear: HearPod[Word],
    life: PodLife,
) -> None:
    show(waiting)
    await life.forgotten_starts.hand_on(ATTEMPT, 0)
    assert (await hear())[-1] == LastWord(NO_POD)
    coming = asyncio.create_task(life.programs.begin(KEY, waiting, "n1"))
    await asyncio.sleep(0)
    assert mirror.pods[KEY].waits
    assert api.patches == [handed_to(Attempt(7, 1), None)]
    show(waiting)  # it was sent back by mistake
    await asked_to_begin(api)
    async with asyncio.timeout(20):
        await coming


async def test_a_program_that_begins_while_the_queue_is_read_is_not_swept(
    *,
    api: OnePodServer,
    slurmctld: OneJobSlurmctld,
    mirror: KubeMirror,
    pod: JobPod,
    waiting: JobPod,
    show: ShowPod[JobPod],
    life: PodLife,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job's process has come and gone: slurmctld, which has forgotten it, had it ended."""
    looks = 0

    def begins() -> None:
        nonlocal looks
        looks += 1
        show(msgspec.structs.replace(pod, began=True))

    monkeypatch.setattr(mirror, "why_not", lambda _: None)
    slurmctld.known, slurmctld.asked = a_slurm_job("7", state="PENDING"), begins
    show(waiting)
    sweeper = Sweeper(slurmctld, mirror, life, lambda: True, SlurmBridgeSettings(pods_sweep_seconds=0.01))
    sweeping = asyncio.create_task(sweeper.run())
    await eventually(lambda: looks > 1, what="it has looked")
    sweeping.cancel()
    assert not api.deleted.is_set()


async def test_a_program_does_not_begin_in_a_pod_that_is_being_taken_away(
    api: OnePodServer, mirror: KubeMirror, waiting: JobPod, show: ShowPod[JobPod], life: PodLife
) -> None:
    api.refusals = 1
    show(waiting)
    await life.ending.remove(KEY, waiting)
    assert not mirror.pods[KEY].leaving, "Kubernetes was away"
    await life.ending.remove(KEY, waiting)
    await life.programs.begin(KEY, waiting, "n1")
    assert api.patches == []


@pytest.mark.parametrize("leaving", [True, False])
async def test_a_program_begins_only_where_another_bridge_does_not_take_its_pod_away(
    api: OnePodServer, waiting: JobPod, show: ShowPod[JobPod], life: PodLife, leaving: bool
) -> None:
    """The pod's bridge led when its process came, and has not heard what has changed since."""
    api.version = "2"
    seen = msgspec.structs.replace(waiting, version="1")
    show(seen)
    coming = asyncio.create_task(life.programs.begin(KEY, seen, "n1"))
    await eventually(lambda: api.conflicts > 0, what="Kubernetes does not take it")
    show(msgspec.structs.replace(waiting, version="2", leaving=leaving))
    async with asyncio.timeout(20):
        await coming
    assert api.patches == ([] if leaving else [BEGAN])


@pytest.mark.parametrize("begun", [True, False])
async def test_a_pod_that_waited_is_taken_away_only_where_another_bridge_has_not_begun_its_program(
    *, api: OnePodServer, pod: JobPod, waiting: JobPod, show: ShowPod[JobPod], life: PodLife, begun: bool
) -> None:
    api.version = "2"
    show(msgspec.structs.replace(waiting, version="1"))
    stopping = asyncio.create_task(life.ending.stop(ATTEMPT))
    await eventually(lambda: api.conflicts > 0, what="Kubernetes does not take it")
    show(pod if begun else msgspec.structs.replace(waiting, version="2"))
    async with asyncio.timeout(20):
        await stopping
    assert api.deleted.is_set() != begun
