"""Answers to prologs, above all of a job whose program runs: slurmctld was killed, and has forgotten that it started it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager

import msgspec
import pytest

from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.following import Word
from fairlead_slurm_bridge.pods.forgotten_starts import is_left
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.manifest import digest_of, handed_to
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.requests import Payload, pod_job
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict
from fairlead_testkit.by_hand.one_pod import HearPod, OneJobSlurmctld, OnePodServer, ShowPod
from fairlead_testkit.inputs.slurm_builders import NOON, a_slurm_job
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import ManualClock

type BeginAgain = Callable[..., AbstractAsyncContextManager[asyncio.Task[PrologVerdict]]]
type TellEnd = Callable[[], Coroutine[None, None, None]]

ATTEMPT = Attempt(7, 0)
KEY = Key("slurm", "slurm-hpc-7-r0")
HOOK = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GID": "100",
    "SLURM_JOB_PARTITION": "pods",
    "SLURM_JOB_NODELIST": "n1",
}
STARTING = a_slurm_job("7", state="CONFIGURING", submitted=NOON)
HANDED_ON = handed_to(Attempt(7, 1), None)


@pytest.fixture
def begin_again(
    *,
    slurmctld: OneJobSlurmctld,
    mirror: KubeMirror,
    pod: JobPod,
    script: str,
    show: ShowPod[JobPod],
    life: PodLife,
    monkeypatch: pytest.MonkeyPatch,
) -> BeginAgain:
    """Asks for the prolog of a job whose program runs, and whose process ended without word from its node."""

    @contextlib.asynccontextmanager
    async def beginning(
        *, stands: bool = True, waits: bool = False
    ) -> AsyncIterator[asyncio.Task[PrologVerdict]]:
        monkeypatch.setattr(mirror, "why_not", lambda _: None)
        slurmctld.known = STARTING
        identity = digest_of(pod_job(HOOK, STARTING), Payload(script=script))
        show(msgspec.structs.replace(pod, began=not waits, waits=waits, submitted=NOON, digest=identity))
        if stands:
            life.runs.starts(ATTEMPT, "n1")
            life.runs.reported_in(ATTEMPT, "n1")
        verdict = asyncio.create_task(life.prologs.answer(HOOK))
        await eventually(lambda: verdict.done() or life.stands_for(ATTEMPT), what="its prolog is asked")
        async with asyncio.timeout(20):
            yield verdict

    return beginning


@pytest.fixture
def tell_end(life: PodLife, wall: ManualClock) -> TellEnd:
    """Lets slurmd's epilog come, and a minute pass."""

    async def told() -> None:
        await life.ending.end(ATTEMPT.job, ATTEMPT.restarts)
        life.runs.slurmd_told(ATTEMPT.job, "n1")
        wall.now += 60
        with life.processes.connected(ATTEMPT):
            pass  # whoever waits for a process looks again

    return told


async def test_a_partition_of_others_is_let_through(life: PodLife) -> None:
    verdict = await life.prologs.answer({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "gpu"})
    assert (verdict.code, verdict.kind) == (START, "elsewhere")
    away = await life.prologs.answer({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "pods"})
    assert away.kind == "away", "nothing is known of Kubernetes yet"


async def test_the_end_of_a_forgotten_process_is_not_the_end_of_the_attempt_that_begins_again(
    begin_again: BeginAgain, tell_end: TellEnd
) -> None:
    """The two attempts have one restart count: the ended process's epilog may come after the next prolog."""
    async with begin_again() as beginning:
        await tell_end()
        verdict = await beginning
    assert (verdict.code, verdict.kind) == (START, "adopted"), "else its program would begin again"


async def test_the_next_attempt_waits_until_slurmd_has_done_with_a_forgotten_process(
    *,
    api: OnePodServer,
    slurmctld: OneJobSlurmctld,
    show: ShowPod[JobPod],
    hear: HearPod[Word],
    life: PodLife,
    wall: ManualClock,
    begin_again: BeginAgain,
) -> None:
    """slurmctld has heard that the refused one has ended there: slurmd would refuse this one, and its node be drained."""
    async with begin_again() as beginning:
        hearing = asyncio.create_task(hear())
        assert (await beginning).kind == "handed-on"
    slurmctld.known = msgspec.structs.replace(STARTING, restarts=1)
    following = asyncio.create_task(life.prologs.answer({**HOOK, "SLURM_JOB_RESTART_COUNT": "1"}))
    await eventually(lambda: handed_to(Attempt(7, 1), NOON) in api.patches, what="it takes its pod over")
    done, _ = await asyncio.wait((following,), timeout=0.5)
    assert not done
    life.runs.slurmd_told(ATTEMPT.job, "n1")
    wall.now += 60
    async with asyncio.timeout(20):
        assert (await following).kind == "adopted"
    show(None)
    await hearing


async def test_an_attempt_that_ends_while_it_begins_does_not_start(
    slurmctld: OneJobSlurmctld, show: ShowPod[JobPod], begin_again: BeginAgain, tell_end: TellEnd
) -> None:
    async with begin_again() as beginning:
        slurmctld.known = msgspec.structs.replace(STARTING, state="COMPLETING")
        show(None)
        await tell_end()
        verdict = await beginning
    assert (verdict.code, verdict.why) == (REQUEUE, "the attempt has ended meanwhile")


async def test_a_program_that_is_about_to_begin_goes_on_where_its_attempt_is_refused(
    api: OnePodServer, mirror: KubeMirror, show: ShowPod[JobPod], hear: HearPod[Word], begin_again: BeginAgain
) -> None:
    """Kubernetes is asked to let the program begin, and has not told yet that it does."""
    async with begin_again(waits=True) as beginning:
        hearing = asyncio.create_task(hear())
        assert (await beginning).kind == "handed-on"
    assert HANDED_ON in api.patches
    pending = msgspec.structs.replace(STARTING, state="PENDING", restarts=1)
    assert not is_left(mirror.pods[KEY], pending, completing=False)
    show(None)
    await hearing


async def test_a_program_goes_on_where_slurmctld_does_not_say_what_it_has_forgotten(
    api: OnePodServer, slurmctld: OneJobSlurmctld, begin_again: BeginAgain
) -> None:
    """An API server that is away while the pod is handed on is asked again."""
    api.refusals = 1
    slurmctld.answers = False
    async with begin_again(stands=False) as beginning:
        assert (await beginning).kind == "away"
    assert api.patches == [HANDED_ON]


async def test_a_program_goes_on_where_the_prolog_is_killed_that_would_have_said_so(
    api: OnePodServer, life: PodLife, begin_again: BeginAgain
) -> None:
    async with begin_again() as beginning:
        beginning.cancel()
        await eventually(lambda: api.patches == [HANDED_ON], what="its pod is handed on")
    assert life.starting.short == {ATTEMPT.job: None}, "its job is woken once it is back"
