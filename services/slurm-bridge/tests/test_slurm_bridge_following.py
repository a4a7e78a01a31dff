"""A pod as its job's process follows it: its log comes from an HTTP server, all else from the mirror."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from fairlead_kube.client import KubeClient, connect
from fairlead_kube.observer import SILENT
from fairlead_kube.reflector import Key
from fairlead_kube.settings import KubeSettings
from fairlead_slurm import SlurmJob
from fairlead_slurm.errors import SlurmUnreachableError
from fairlead_slurm_bridge.gate.attempts import LABEL_RESTARTS, Attempt
from fairlead_slurm_bridge.gate.kube_facts import ANNOTATION_HANDED_ON, JobPod
from fairlead_slurm_bridge.pods.following import NO_POD, STOPPED, PodEnd, PodFollower, PodOutput, Said, Word
from fairlead_slurm_bridge.pods.forgetting import is_left, is_run_of
from fairlead_slurm_bridge.pods.lifecycle import PodLife, Times
from fairlead_slurm_bridge.pods.manifest import PodRules, digest_of, handed_to
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.payload import MARK, Payload
from fairlead_slurm_bridge.pods.requests import pod_job
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_slurm_bridge.pods.sweeping import Sweeper
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict
from fairlead_slurm_bridge.pods.witness import Witness
from fairlead_slurm_bridge.store import SubmissionStore
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.slurm_builders import NOON, a_slurm_job

ATTEMPT = Attempt(7, 0)
KEY = Key("slurm", "slurm-hpc-7-r0")
POD = JobPod(
    attempt=ATTEMPT, uid="u", phase="Running", ready=True, node="a", leaving=False, exit_code=None, reason="", message="", user=1000, digest="",
)  # fmt: skip
BEGAN = {
    "metadata": {
        "uid": "u",
        "annotations": {"slurm.fairlead.dev/began": "true", "slurm.fairlead.dev/program": "runs"},
    }
}
SCRIPT = "#!/bin/sh\ntrue\n"
HOOK = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GID": "100",
    "SLURM_JOB_PARTITION": "pods",
    "SLURM_JOB_NODELIST": "n1",
}
STARTING = a_slurm_job("7", state="CONFIGURING", submitted=NOON)
IGNORED = asyncio.Event()
PRINTED = b"one\n\xff\x00two\n" * 1000


class Jobs:
    """A Slurm that knows one job, or none."""

    def __init__(self) -> None:
        self.known: SlurmJob | None = None
        self.answers = True
        self.asked: Callable[[], None] = lambda: None
        """Call made while it is asked for its queue."""

    async def job(self, number: int) -> SlurmJob | None:
        del number
        if not self.answers:
            raise SlurmUnreachableError("slurmctld does not answer")
        return self.known

    async def jobs(self) -> list[SlurmJob]:
        self.asked()
        return [] if self.known is None else [self.known]

    async def requeue(self, job: str) -> None:
        raise AssertionError(job)

    async def wake(self, jobs: Iterable[str]) -> None:
        raise AssertionError(jobs)

    async def script(self, number: int) -> str:
        del number
        return f"#!/bin/sh\n{MARK}\n{SCRIPT}"

    async def cancel(self, number: int) -> None:
        raise AssertionError(number)


class Scene:
    """A follower, with all that it looks at."""

    def __init__(self, client: KubeClient, store: SubmissionStore, patches: list[KubeObject]) -> None:
        self.patches = patches
        self.conflicts = 0
        """Requests for another version of the pod."""
        self.mirror = KubeMirror(client, "hpc", {}, observer=SILENT)
        rules = PodRules(cluster="hpc", namespace="slurm", image="busybox")
        times = Times(ready=5, gone=5, silence=30)
        self.now = 0.0
        runs = Runs(store, lambda: self.now)
        self.jobs = Jobs()
        self.life = PodLife(self.jobs, client, self.mirror, rules, runs, partition="pods", times=times)
        self.witness = Witness(self.mirror, runs)
        self.follower = PodFollower(client, self.mirror, self.life)

    def pod(self, pod: JobPod | None) -> None:
        self.mirror.pods.pop(KEY, None)
        if pod is not None:
            self.mirror.pods[KEY] = pod
        self.mirror.look()

    async def heard(
        self, *, user: int = 1000, skip: int = 0, stop: asyncio.Event | None = None
    ) -> list[Word]:
        told = self.follower.follow(ATTEMPT, user, skip, stop or asyncio.Event())
        return [word async for word in told]


def reflected(found: Scene, patch: KubeObject) -> None:
    """Show in the mirror what a patch did, where it makes the pod another attempt's."""
    restarts = patch["metadata"].get("labels", {}).get(LABEL_RESTARTS)
    pod = found.mirror.pods.get(KEY)
    if restarts is not None and pod is not None:
        handed_on = bool(patch["metadata"]["annotations"][ANNOTATION_HANDED_ON])
        attempt = Attempt(ATTEMPT.job, int(restarts))
        found.pod(msgspec.structs.replace(pod, attempt=attempt, handed_on=handed_on))


def refusal(code: int, message: str) -> web.Response:
    """The API server's refusal of a request."""
    reason = {"reason": "Conflict"} if code == 409 else {}
    return web.json_response({"kind": "Status", "code": code, "message": message, **reason}, status=code)


@contextlib.asynccontextmanager
async def served(app: web.Application, tmp_path: Path) -> AsyncIterator[KubeSettings]:
    """Serve as the API server for the time of the block; gives the way to it."""
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    config = tmp_path / "kubeconfig"
    config.write_text(
        f"""{{apiVersion: v1, kind: Config, current-context: x, contexts: [{{name: x, context: {{cluster: x, user: x}}}}],
        clusters: [{{name: x, cluster: {{server: "http://127.0.0.1:{port}"}}}}], users: [{{name: x, user: {{token: t}}}}]}}"""
    )
    try:
        yield KubeSettings(kubeconfig=str(config))
    finally:
        await runner.cleanup()


async def printing(left: list[list[bytes] | int], request: web.Request) -> web.StreamResponse:
    """The next answer of those that are left; the last one is given again and again."""
    answer = left.pop(0) if len(left) > 1 else left[0]
    if isinstance(answer, int):
        return refusal(answer, "no kubelet")
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in answer:
        await response.write(piece)
    if left[0] is not answer and request.transport is not None:
        request.transport.abort()
    return response


@contextlib.asynccontextmanager
async def scene(
    tmp_path: Path,
    *answers: list[bytes] | int,
    deleted: asyncio.Event = IGNORED,
    marked: asyncio.Event = IGNORED,
    refusals: int = 0,
    version: str = "",
) -> AsyncIterator[Scene]:
    """Serve a follower's log: the next answer for each request, as pieces or a status.

    Behind the pieces the connection breaks off, but for the last answer's. As many patches and deletions as
    `refusals` says are refused before one is taken, and all that are for another `version` of the pod.
    """
    refused = [503] * refusals
    patches: list[KubeObject] = []

    async def written(request: web.Request) -> web.Response:
        if refused:
            return refusal(refused.pop(), "away")
        asked = await request.json()
        only = asked.get("preconditions") or asked["metadata"]
        if only.pop("resourceVersion", version) != version:
            found.conflicts += 1
            return refusal(409, "it has changed")
        if request.method == "DELETE":
            deleted.set()
            return web.json_response({})
        patches.append(asked)
        reflected(found, patches[-1])
        if patches[-1] == BEGAN:
            marked.set()
        return web.json_response({})

    app = web.Application()
    app.router.add_patch("/api/v1/namespaces/slurm/pods/slurm-hpc-7-r0", written)
    app.router.add_get("/api/v1/namespaces/slurm/pods/slurm-hpc-7-r0/log", partial(printing, list(answers)))
    app.router.add_delete("/api/v1/namespaces/slurm/pods/slurm-hpc-7-r0", written)
    async with served(app, tmp_path) as config, connect(config, user_agent="test") as client:
        with contextlib.closing(SubmissionStore(tmp_path / "bridge.db")) as store:
            found = Scene(client, store, patches)
            yield found


def over(code: int) -> JobPod:
    phase = "Succeeded" if code == 0 else "Failed"
    return msgspec.structs.replace(POD, phase=phase, exit_code=code, ready=False)


def printed(words: list[Word]) -> bytes:
    return b"".join(word.piece for word in words if isinstance(word, PodOutput))


async def test_all_that_a_pod_prints_arrives_before_its_exit_code(tmp_path: Path) -> None:
    async with scene(tmp_path, [PRINTED[:5], PRINTED[5:]]) as found:
        found.pod(over(3))
        words = await found.heard()
    assert printed(words) == PRINTED
    assert words[-1] == PodEnd(3)


@pytest.mark.parametrize("skip", [0, 3, 7000])
async def test_a_body_that_asks_again_gets_the_rest(tmp_path: Path, skip: int) -> None:
    async with scene(tmp_path, [PRINTED]) as found:
        found.pod(over(0))
        assert printed(await found.heard(skip=skip)) == PRINTED[skip:]


async def test_a_log_that_cannot_be_read_is_said_and_the_pods_end_still_counts(tmp_path: Path) -> None:
    async with scene(tmp_path, 500) as found:
        found.pod(over(0))
        words = await found.heard()
    assert words[-1] == PodEnd(0)
    assert any(isinstance(word, Said) and "cannot be read" in word.text for word in words)


async def test_whoever_is_told_to_stop_ends_the_pod_and_waits_for_it(tmp_path: Path) -> None:
    deleted, stop = asyncio.Event(), asyncio.Event()
    async with scene(tmp_path, [b"bye\n"], deleted=deleted) as found:
        found.pod(POD)
        hearing = asyncio.create_task(found.heard(stop=stop))
        await asyncio.sleep(0)
        stop.set()
        async with asyncio.timeout(20):
            await deleted.wait()
            found.pod(over(137))
            words = await hearing
    assert words[-1] == PodEnd(137)
    assert printed(words) == b"bye\n"


async def test_who_is_told_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, [b"secret\n"]) as found:
        assert (await found.heard())[-1] == PodEnd(NO_POD), "there is no pod"
        found.pod(POD)
        words = await found.heard(user=1001)
        assert words[-1] == PodEnd(1)
        assert printed(words) == b"", "another user's output is nobody's business"
        found.life.beginnings.refusals[ATTEMPT] = "its comment cannot be read"
        refused = await found.heard()
        assert refused == [Said("this job cannot run: its comment cannot be read"), PodEnd(1)]


async def test_a_program_that_has_ended_is_not_run_again(tmp_path: Path) -> None:
    async with scene(tmp_path, [b"once\n"]) as found:
        found.pod(over(3))
        assert (await found.heard())[-1] == PodEnd(3)
        found.pod(None)
        assert (await found.heard())[-1] == PodEnd(NO_POD), (
            "unless its prolog came again, it is another question"
        )
        assert not found.life.runs.replay(ATTEMPT, 0, "of another job that got its number")
        assert found.life.runs.replay(ATTEMPT, 0, POD.digest)
        words = await found.heard()
        assert (printed(words), words[-1]) == (b"", PodEnd(3))


async def test_who_did_not_lead_knows_how_a_program_ended(tmp_path: Path) -> None:
    """Another bridge told a process the end; that bridge is gone, and the pod as well."""
    pod = msgspec.structs.replace(POD, submitted=NOON)
    async with scene(tmp_path, [b"once\n"]) as found:
        for seen in (pod, msgspec.structs.replace(pod, phase="Failed", exit_code=3, ready=False), None):
            found.pod(seen)
            found.witness.look()
        found.jobs.known = a_slurm_job("7", submitted=NOON)
        assert (await found.heard())[-1] == PodEnd(3)
        found.jobs.known = a_slurm_job("7", submitted=NOON + 1)
        assert (await found.heard())[-1] == PodEnd(NO_POD), "another job has got its number"
        assert found.life.runs.replay(ATTEMPT, NOON, POD.digest)


async def test_what_was_stopped_or_begins_anew_has_no_end(tmp_path: Path) -> None:
    async with scene(tmp_path, [b""]) as found:
        for seen in (POD, msgspec.structs.replace(over(143), leaving=True), None):
            found.pod(seen)
            found.witness.look()
        assert not found.life.runs.knows(7), "it was asked to end"
        for seen in (over(0), None, POD):
            found.pod(seen)
            found.witness.look()
        assert not found.life.runs.knows(7), "another bridge has begun it anew"


async def test_whose_pod_it_is_whose_process_never_came(tmp_path: Path) -> None:
    """The bridge died before it answered the prolog: the pod is the next attempt's until a process comes."""
    marked = asyncio.Event()
    second = Attempt(7, 1)
    assert is_run_of(POD, second, NOON, POD.digest)
    assert not is_run_of(POD, second, NOON, "another")
    async with scene(tmp_path, [b"x"], marked=marked) as found:
        found.pod(POD)
        hearing = asyncio.create_task(found.heard())
        async with asyncio.timeout(20):
            await marked.wait()
        hearing.cancel()
    began = msgspec.structs.replace(POD, began=True)
    assert not is_run_of(began, second, NOON, POD.digest), "it was requeued: its program is to run anew"
    assert is_run_of(began, ATTEMPT, 0, POD.digest)


WAITING = msgspec.structs.replace(POD, waits=True)


async def test_a_program_begins_when_a_process_has_come(tmp_path: Path) -> None:
    """An API server that is away is asked again: nobody else would."""
    marked = asyncio.Event()
    async with scene(tmp_path, [b"x"], marked=marked, refusals=2) as found:
        found.pod(WAITING)
        hearing = asyncio.create_task(found.heard())
        async with asyncio.timeout(20):
            await marked.wait()
        found.pod(None)
        assert (await hearing)[-1] == PodEnd(NO_POD)


async def test_a_program_does_not_begin_for_a_process_that_has_been_told_to_end(tmp_path: Path) -> None:
    marked, deleted, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
    stop.set()
    async with scene(tmp_path, [b"x"], marked=marked, deleted=deleted) as found:
        found.pod(WAITING)
        hearing = asyncio.create_task(found.heard(stop=stop))
        async with asyncio.timeout(20):
            await deleted.wait()
        found.pod(None)
        assert (await hearing)[-1] == PodEnd(STOPPED)
        assert not marked.is_set()


def test_a_pod_that_waits_holds_no_room_for_a_job_that_waits() -> None:
    """The pod's program has not begun: another attempt gets another pod, when it is that one's turn."""
    pending = a_slurm_job("7", state="PENDING")
    starting = msgspec.structs.replace(pending, state="CONFIGURING")
    assert is_left(WAITING, pending, completing=False)
    assert not is_left(WAITING, starting, completing=False)
    assert is_left(WAITING, msgspec.structs.replace(starting, restarts=1), completing=False)
    assert not is_left(POD, pending, completing=False), "its program runs, and slurmctld has forgotten that"


async def test_a_pod_that_is_handed_on_outlives_the_process_of_its_first_attempt(tmp_path: Path) -> None:
    deleted = asyncio.Event()
    async with scene(tmp_path, [b"x"], deleted=deleted) as found:
        found.pod(POD)
        stop = asyncio.Event()
        hearing = asyncio.create_task(found.heard(stop=stop))
        async with asyncio.timeout(20):
            while not found.life.stands_for(ATTEMPT):
                await found.life.bodies.change(1)
            found.pod(msgspec.structs.replace(POD, attempt=Attempt(7, 1), handed_on=True))
            stop.set()  # by Slurm, which ends the attempt that was refused
            assert (await hearing)[-1] == PodEnd(STOPPED)
        assert not deleted.is_set()


async def test_who_listens_is_known_while_it_does(tmp_path: Path) -> None:
    async with scene(tmp_path, [b"x"]) as found:
        found.pod(POD)
        hearing = asyncio.create_task(found.heard())
        async with asyncio.timeout(20):
            while not found.life.stands_for(ATTEMPT):
                await found.life.bodies.change(1)
            hearing.cancel()
            while found.life.stands_for(ATTEMPT):
                await found.life.bodies.change(1)


async def test_a_partition_of_others_is_let_through(tmp_path: Path) -> None:
    async with scene(tmp_path, [b""]) as found:
        verdict = await found.life.begin({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "gpu"})
        assert (verdict.code, verdict.kind) == (START, "elsewhere")
        away = await found.life.begin({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "pods"})
        assert away.kind == "away", "nothing is known of Kubernetes yet"


@contextlib.asynccontextmanager
async def beginning_again(
    found: Scene, monkeypatch: pytest.MonkeyPatch, *, stands: bool = True, waits: bool = False
) -> AsyncIterator[asyncio.Task[PrologVerdict]]:
    """Ask for the prolog of a job whose program runs, and whose process ended without word from its node."""
    monkeypatch.setattr(found.mirror, "why_not", lambda _: None)
    found.jobs.known = STARTING
    identity = digest_of(pod_job(HOOK, STARTING), Payload(script=SCRIPT))
    found.pod(msgspec.structs.replace(POD, began=not waits, waits=waits, submitted=NOON, digest=identity))
    if stands:
        found.life.runs.starts(ATTEMPT, "n1")
        found.life.runs.came(ATTEMPT, "n1")
    beginning = asyncio.create_task(found.life.begin(HOOK))
    await eventually(lambda: beginning.done() or found.life.stands_for(ATTEMPT), what="its prolog is asked")
    async with asyncio.timeout(20):
        yield beginning


async def told_its_end(found: Scene) -> None:
    """Let slurmd's epilog come, and a minute pass."""
    await found.life.end(ATTEMPT.job, ATTEMPT.restarts)
    found.life.runs.told(ATTEMPT.job, "n1")
    found.now += 60
    found.life.bodies.left(ATTEMPT)  # whoever waits for a process looks again


async def test_the_end_of_a_forgotten_process_is_not_the_end_of_the_attempt_that_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two attempts have one restart count: the ended process's epilog may come after the next prolog."""
    async with scene(tmp_path, [b"x"]) as found, beginning_again(found, monkeypatch) as beginning:
        await told_its_end(found)
        verdict = await beginning
    assert (verdict.code, verdict.kind) == (START, "adopted"), "else its program would begin again"


async def test_the_next_attempt_waits_until_slurmd_has_done_with_a_forgotten_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld has heard that the refused one has ended there: slurmd would refuse this one, and its node be drained."""
    async with scene(tmp_path, [b"x"]) as found:
        async with beginning_again(found, monkeypatch) as beginning:
            hearing = asyncio.create_task(found.heard())
            assert (await beginning).kind == "handed-on"
        found.jobs.known = msgspec.structs.replace(STARTING, restarts=1)
        following = asyncio.create_task(found.life.begin({**HOOK, "SLURM_JOB_RESTART_COUNT": "1"}))
        await eventually(
            lambda: handed_to(Attempt(7, 1), NOON) in found.patches, what="it takes its pod over"
        )
        done, _ = await asyncio.wait((following,), timeout=0.5)
        assert not done
        found.life.runs.told(ATTEMPT.job, "n1")
        found.now += 60
        async with asyncio.timeout(20):
            assert (await following).kind == "adopted"
        found.pod(None)
        await hearing


async def test_an_attempt_that_ends_while_it_begins_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, [b"x"]) as found, beginning_again(found, monkeypatch) as beginning:
        found.jobs.known = msgspec.structs.replace(STARTING, state="COMPLETING")
        found.pod(None)
        await told_its_end(found)
        verdict = await beginning
    assert (verdict.code, verdict.why) == (REQUEUE, "the attempt has ended meanwhile")


HANDED_ON = handed_to(Attempt(7, 1), None)


async def test_a_program_that_is_about_to_begin_goes_on_where_its_attempt_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes is asked to let the program begin, and has not told yet that it does."""
    async with scene(tmp_path, [b"x"]) as found:
        async with beginning_again(found, monkeypatch, waits=True) as beginning:
            hearing = asyncio.create_task(found.heard())
            assert (await beginning).kind == "handed-on"
        assert HANDED_ON in found.patches
        pending = msgspec.structs.replace(STARTING, state="PENDING", restarts=1)
        assert not is_left(found.mirror.pods[KEY], pending, completing=False)
        found.pod(None)
        await hearing


async def test_a_program_does_not_begin_for_a_process_that_comes_after_its_attempt_was_refused(
    tmp_path: Path,
) -> None:
    marked = asyncio.Event()
    async with scene(tmp_path, [b"x"], marked=marked) as found:
        found.pod(WAITING)
        await found.life.forgetting.hand_on(ATTEMPT, 0)
        assert (await found.heard())[-1] == PodEnd(NO_POD)
        coming = asyncio.create_task(found.life.programs.begin(KEY, WAITING, "n1"))
        await asyncio.sleep(0)
        assert found.patches == [HANDED_ON]
        found.pod(WAITING)  # it was sent back by mistake
        async with asyncio.timeout(20):
            await marked.wait()
            await coming


async def test_a_program_that_begins_while_the_queue_is_read_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's process has come and gone: slurmctld, which has forgotten it, had it ended."""
    deleted, looks = asyncio.Event(), 0
    async with scene(tmp_path, [b"x"], deleted=deleted) as found:

        def begins() -> None:
            nonlocal looks
            looks += 1
            found.pod(msgspec.structs.replace(POD, began=True))

        monkeypatch.setattr(found.mirror, "why_not", lambda _: None)
        found.jobs.known, found.jobs.asked = a_slurm_job("7", state="PENDING"), begins
        found.pod(WAITING)
        sweeper = Sweeper(
            found.jobs, found.mirror, found.life, leads=lambda: True, seconds=0.01, lost_seconds=60
        )
        sweeping = asyncio.create_task(sweeper.run())
        await eventually(lambda: looks > 1, what="it has looked")
        sweeping.cancel()
        assert not deleted.is_set()


async def test_a_program_does_not_begin_in_a_pod_that_is_being_taken_away(tmp_path: Path) -> None:
    marked = asyncio.Event()
    async with scene(tmp_path, [b"x"], marked=marked, refusals=1) as found:
        found.pod(WAITING)
        await found.life.ending.remove(KEY, WAITING)
        assert not found.mirror.pods[KEY].leaving, "Kubernetes was away"
        await found.life.ending.remove(KEY, WAITING)
        await found.life.programs.begin(KEY, WAITING, "n1")
        assert not marked.is_set()


SEEN, CHANGED = (msgspec.structs.replace(WAITING, version=version) for version in ("1", "2"))


@pytest.mark.parametrize(
    ("now", "begins"), [(msgspec.structs.replace(CHANGED, leaving=True), False), (CHANGED, True)]
)
async def test_a_program_begins_only_where_another_bridge_does_not_take_its_pod_away(
    tmp_path: Path, now: JobPod, begins: bool
) -> None:
    """The pod's bridge led when its process came, and has not heard what has changed since."""
    marked = asyncio.Event()
    async with scene(tmp_path, [b"x"], marked=marked, version="2") as found:
        found.pod(SEEN)
        coming = asyncio.create_task(found.life.programs.begin(KEY, SEEN, "n1"))
        await eventually(lambda: found.conflicts > 0, what="Kubernetes does not take it")
        found.pod(now)
        async with asyncio.timeout(20):
            await coming
        assert marked.is_set() == begins


@pytest.mark.parametrize(("now", "goes"), [(POD, False), (CHANGED, True)])
async def test_a_pod_that_waited_is_taken_away_only_where_another_bridge_has_not_begun_its_program(
    tmp_path: Path, now: JobPod, goes: bool
) -> None:
    deleted = asyncio.Event()
    async with scene(tmp_path, [b"x"], deleted=deleted, version="2") as found:
        found.pod(SEEN)
        removing = asyncio.create_task(found.life.ending.stop(ATTEMPT))
        await eventually(lambda: found.conflicts > 0, what="Kubernetes does not take it")
        found.pod(now)
        async with asyncio.timeout(20):
            await removing
        assert deleted.is_set() == goes


async def test_a_program_goes_on_where_slurmctld_does_not_say_what_it_has_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that is away while the pod is handed on is asked again."""
    async with scene(tmp_path, [b"x"], refusals=1) as found:
        found.jobs.answers = False
        async with beginning_again(found, monkeypatch, stands=False) as beginning:
            assert (await beginning).kind == "away"
        assert found.patches == [HANDED_ON]


async def test_a_program_goes_on_where_the_prolog_is_killed_that_would_have_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, [b"x"]) as found:
        async with beginning_again(found, monkeypatch) as beginning:
            beginning.cancel()
            await eventually(lambda: found.patches == [HANDED_ON], what="its pod is handed on")
        assert found.life.beginnings.short == {ATTEMPT.job: None}, "its job is woken once it is back"
