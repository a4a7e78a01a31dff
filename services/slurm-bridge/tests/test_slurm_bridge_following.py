"""A pod as its job's process follows it: its log comes from an HTTP server, all else from the mirror."""

import asyncio

import msgspec
import pytest

from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.following import NO_POD, STOPPED, LastWord, PodOutput, UserNotice, Word
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.programs import ProgramEndRecorder
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_testkit.by_hand.one_pod import HearPod, OneJobSlurmctld, OnePodServer, ShowPod
from fairlead_testkit.inputs.slurm_builders import NOON, a_slurm_job

ATTEMPT = Attempt(7, 0)
PRINTED = b"one\n\xff\x00two\n" * 1000


def over(pod: JobPod, code: int) -> JobPod:
    phase = "Succeeded" if code == 0 else "Failed"
    return msgspec.structs.replace(pod, phase=phase, exit_code=code, ready=False)


def printed(words: list[Word]) -> bytes:
    return b"".join(word.piece for word in words if isinstance(word, PodOutput))


async def test_all_that_a_pod_prints_arrives_before_its_exit_code(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    api.logs = [[PRINTED[:5], PRINTED[5:]]]
    show(over(pod, 3))
    words = await hear()
    assert printed(words) == PRINTED
    assert words[-1] == LastWord(3)


@pytest.mark.parametrize("skip", [0, 3, 7000])
async def test_a_body_that_asks_again_gets_the_rest(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word], skip: int
) -> None:
    api.logs = [[PRINTED]]
    show(over(pod, 0))
    assert printed(await hear(skip=skip)) == PRINTED[skip:]


async def test_a_log_that_cannot_be_read_is_said_and_the_pods_end_still_counts(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    api.logs = [500]
    show(over(pod, 0))
    words = await hear()
    assert words[-1] == LastWord(0)
    assert any(isinstance(word, UserNotice) and "cannot be read" in word.text for word in words)


async def test_whoever_is_told_to_stop_ends_the_pod_and_waits_for_it(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word]
) -> None:
    api.logs = [[b"bye\n"]]
    stop = asyncio.Event()
    show(pod)
    hearing = asyncio.create_task(hear(stop=stop))
    await asyncio.sleep(0)
    stop.set()
    async with asyncio.timeout(20):
        await api.deleted.wait()
        show(over(pod, 137))
        words = await hearing
    assert words[-1] == LastWord(137)
    assert printed(words) == b"bye\n"


async def test_who_is_told_nothing(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word], life: PodLife
) -> None:
    api.logs = [[b"secret\n"]]
    assert (await hear())[-1] == LastWord(NO_POD), "there is no pod"
    show(pod)
    words = await hear(user=1001)
    assert words[-1] == LastWord(1)
    assert printed(words) == b"", "another user's output is nobody's business"
    life.starting.refuse(ATTEMPT, "its comment cannot be read")
    assert await hear() == [UserNotice("this job cannot run: its comment cannot be read"), LastWord(1)]


async def test_a_program_that_has_ended_is_not_run_again(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word], runs: Runs
) -> None:
    api.logs = [[b"once\n"]]
    show(over(pod, 3))
    assert (await hear())[-1] == LastWord(3)
    show(None)
    assert (await hear())[-1] == LastWord(NO_POD), "unless its prolog came again, it is another question"
    assert not runs.replay(ATTEMPT, 0, "of another job that got its number")
    assert runs.replay(ATTEMPT, 0, pod.digest)
    words = await hear()
    assert (printed(words), words[-1]) == (b"", LastWord(3))


async def test_who_did_not_lead_knows_how_a_program_ended(
    *,
    slurmctld: OneJobSlurmctld,
    mirror: KubeMirror,
    pod: JobPod,
    show: ShowPod[JobPod],
    hear: HearPod[Word],
    runs: Runs,
) -> None:
    """Another bridge told a process the end; that bridge is gone, and the pod as well."""
    recorder = ProgramEndRecorder(mirror, runs)
    begun = msgspec.structs.replace(pod, submitted=NOON)
    for seen in (begun, over(begun, 3), None):
        show(seen)
        recorder.record()
    slurmctld.known = a_slurm_job("7", submitted=NOON)
    assert (await hear())[-1] == LastWord(3)
    slurmctld.known = a_slurm_job("7", submitted=NOON + 1)
    assert (await hear())[-1] == LastWord(NO_POD), "another job has got its number"
    assert runs.replay(ATTEMPT, NOON, pod.digest)


async def test_what_was_stopped_or_begins_anew_has_no_end(
    mirror: KubeMirror, pod: JobPod, show: ShowPod[JobPod], runs: Runs
) -> None:
    recorder = ProgramEndRecorder(mirror, runs)
    for seen in (pod, msgspec.structs.replace(over(pod, 143), leaving=True), None):
        show(seen)
        recorder.record()
    assert not runs.knows(7), "it was asked to end"
    for seen in (over(pod, 0), None, pod):
        show(seen)
        recorder.record()
    assert not runs.knows(7), "another bridge has begun it anew"


async def test_a_pod_that_is_handed_on_outlives_the_process_of_its_first_attempt(
    api: OnePodServer, pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word], life: PodLife
) -> None:
    show(pod)
    stop = asyncio.Event()
    hearing = asyncio.create_task(hear(stop=stop))
    async with asyncio.timeout(20):
        while not life.stands_for(ATTEMPT):
            await life.processes.change(1)
        show(msgspec.structs.replace(pod, attempt=Attempt(7, 1), handed_on=True))
        stop.set()  # by Slurm, which ends the attempt that was refused
        assert (await hearing)[-1] == LastWord(STOPPED)
    assert not api.deleted.is_set()


async def test_who_listens_is_known_while_it_does(
    pod: JobPod, show: ShowPod[JobPod], hear: HearPod[Word], life: PodLife
) -> None:
    show(pod)
    hearing = asyncio.create_task(hear())
    async with asyncio.timeout(20):
        while not life.stands_for(ATTEMPT):
            await life.processes.change(1)
        hearing.cancel()
        while life.stands_for(ATTEMPT):
            await life.processes.change(1)
