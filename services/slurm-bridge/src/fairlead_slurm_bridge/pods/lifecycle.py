"""The life of a job's pod: room is kept for it, it is made, waited for, and taken away until it is really gone.

Everything is done by its name, so that doing it again is harmless: slurmctld starts a prolog anew after a restart, hooks are
killed at any moment, and so is this process. What it remembers by itself is only what may be lost.
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping

import msgspec
import structlog

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import KubeError
from fairlead_kube.reflector import Key
from fairlead_slurm.errors import PodCommentError, SlurmError
from fairlead_slurm_bridge.errors import NotPreparedError, PodRefusedError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.beginnings import Beginnings
from fairlead_slurm_bridge.pods.bodies import Bodies
from fairlead_slurm_bridge.pods.ending import PodEnding
from fairlead_slurm_bridge.pods.forgetting import Forgetting, node_of
from fairlead_slurm_bridge.pods.making import PodMaker, SlurmctldJobs
from fairlead_slurm_bridge.pods.manifest import PodRules
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.programs import WaitingPrograms
from fairlead_slurm_bridge.pods.runs import LONG_AGO, Runs
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict

_LOOK_SECONDS = 2.0
"""Seconds after which a pod is looked at again, also when nothing is heard of it."""
_TOLD_SECONDS = 30.0
"""Seconds for which an attempt waits for an earlier one's epilog: a site's own epilog runs first."""
_TOLD_LOOK_SECONDS = 0.2
_NEVER_STARTS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
    )
)
"""Reasons for which a container waits in vain, however long and wherever (kubelet/images, kuberuntime)."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Longest times of a pod's life, in seconds."""

    ready: float
    """Longest time from a pod's making until it is ready."""
    gone: float
    """Longest time from the order to end a pod until it is really gone."""
    silence: float
    """Longest silence of Kubernetes."""


class PodLife:
    """The life of pods of one partition's jobs.

    Args:
        jobs: answers about slurmctld's jobs.
        client: calls Kubernetes.
        mirror: shows nodes and pods of Kubernetes.
        rules: rules of the site.
        runs: remembers how programs ended.
        partition: the partition whose jobs run as pods.
        times: longest times of a pod's life.
    """

    def __init__(
        self,
        jobs: SlurmctldJobs,
        client: KubeClient,
        mirror: KubeMirror,
        rules: PodRules,
        runs: Runs,
        *,
        partition: str,
        times: Times,
    ) -> None:
        self._mirror = mirror
        self._partition = partition
        self._times = times
        self._tasks: set[asyncio.Task[PrologVerdict | None]] = set()
        self.runs = runs
        self.bodies = Bodies()
        self.beginnings = Beginnings()
        self.forgetting = Forgetting(jobs, client, mirror, self.bodies, runs)
        self.ending = PodEnding(jobs, client, mirror, rules, self.beginnings, gone_seconds=times.gone)
        self.programs = WaitingPrograms(client, mirror, runs)
        self._maker = PodMaker(
            jobs,
            client,
            mirror,
            rules,
            runs,
            beginnings=self.beginnings,
            forgetting=self.forgetting,
            ending=self.ending,
        )
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def stands_for(self, attempt: Attempt) -> bool:
        """Whether a prolog of this attempt is being answered, or its process listens."""
        return attempt in self.beginnings or attempt in self.bodies.listening

    def stands_for_job(self, attempt: Attempt) -> bool:
        """Whether a prolog of this attempt is being answered, or a process of any attempt of its job listens."""
        return attempt in self.beginnings or self.bodies.stand_for(attempt.job)

    # --- begin

    async def begin(self, hook: Mapping[str, str]) -> PrologVerdict:
        """The answer to PrologSlurmctld: start, with a pod that is ready; or back into the queue."""
        if hook.get("SLURM_JOB_PARTITION") != self._partition:
            return PrologVerdict(code=START, why="", kind="elsewhere")
        why = self._mirror.why_not(self._times.silence)
        if why is not None:
            return PrologVerdict(code=REQUEUE, why=why, kind="away")
        attempt = Attempt(int(hook["SLURM_JOB_ID"]), int(hook.get("SLURM_JOB_RESTART_COUNT", "0")))
        known = self.beginnings.short.get(attempt.job)
        if known is not None and not self._mirror.capacity.would_fit([known])[0]:
            return PrologVerdict(code=REQUEUE, why="there is still no room", kind="short")
        with self.beginnings.asked(attempt):
            verdict = await self._begin(attempt, hook)
            if verdict.kind == "away":  # slurmctld is: what it has forgotten of the job is not known
                await self._hand_on_unasked(attempt)
            return verdict

    async def _begin(self, attempt: Attempt, hook: Mapping[str, str]) -> PrologVerdict:
        forgotten = await self._forgotten(attempt, node_of(hook))
        if forgotten is not None:
            return forgotten
        # What is being made is made to its end, also when the hook that asked for it is killed.
        made = await asyncio.shield(self._keep_on(self._make(attempt, hook)))
        if made.code == START:
            await self._slurmd_is_free(attempt, node_of(hook))
        if made.code == START and made.kind not in ("refused", "ended"):
            made = await self._ready(attempt, made)
        if made.code == START:
            self.runs.starts(attempt, node_of(hook))
        return made

    async def _slurmd_is_free(self, attempt: Attempt, node: str) -> None:
        """Wait until the node's slurmd takes the job again, or the epilog is late: it may have no bridge."""
        until = time.monotonic() + _TOLD_SECONDS
        if self.runs.untold(attempt, node):
            self._log.warning("slurmd_awaited", job=attempt.job, restarts=attempt.restarts, node=node)
        while self.runs.untold(attempt, node) and time.monotonic() < until:
            await self._mirror.change(_TOLD_LOOK_SECONDS)
        await asyncio.sleep(self.runs.rest(attempt.job))

    async def _forgotten(self, attempt: Attempt, node: str) -> PrologVerdict | None:
        try:
            found = await self.forgetting.answer(attempt, node)
        except asyncio.CancelledError:
            # Slurm takes a prolog that is killed for success, and slurmd refuses the job that it has: it goes back unasked.
            self._keep_on(self._hand_on_unasked(attempt))
            self.beginnings.short[attempt.job] = None
            raise
        except SlurmError as error:
            return PrologVerdict(code=REQUEUE, why=str(error), kind="away")
        except KubeError as error:
            return PrologVerdict(code=REQUEUE, why=f"Kubernetes: {error}", kind="error")
        if found is not None and found.code == REQUEUE:
            self.beginnings.short[attempt.job] = None
        return found

    async def _hand_on_unasked(self, attempt: Attempt) -> None:
        """Let the attempt's program go on, if it runs, without asking slurmctld: the attempt goes back."""
        async with self.beginnings.turn(attempt.job):
            try:
                await self.forgetting.hand_on(attempt, LONG_AGO)
            except KubeError as error:
                self._log.warning("pod_not_handed_on", job=attempt.job, error=str(error))

    def _keep_on[T: (PrologVerdict, None)](self, doing: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Do it whatever becomes of its asker."""
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _make(self, attempt: Attempt, hook: Mapping[str, str]) -> PrologVerdict:
        async with self.beginnings.turn(attempt.job):
            if self.beginnings.has_ended(attempt):
                return PrologVerdict(code=REQUEUE, why="the attempt has ended meanwhile", kind="error")
            try:
                return await self._maker.make(attempt, hook)
            except (PodRefusedError, PodCommentError) as error:
                return self.beginnings.refuse(attempt, str(error))
            except NotPreparedError as error:
                return PrologVerdict(code=REQUEUE, why=str(error), kind="error")
            except SlurmError as error:
                return PrologVerdict(code=REQUEUE, why=str(error), kind="away")
            except KubeError as error:
                return PrologVerdict(code=REQUEUE, why=f"Kubernetes: {error}", kind="error")

    async def _ready(self, attempt: Attempt, made: PrologVerdict) -> PrologVerdict:
        until = time.monotonic() + self._times.ready
        seen = False
        while True:
            found = self._mirror.of_attempt(attempt)
            if self.beginnings.has_ended(attempt) or (seen and found is None):
                return PrologVerdict(code=REQUEUE, why="its pod was taken away", kind="not-ready")
            if found is not None:
                seen = True
                if found[1].leaving:
                    return PrologVerdict(code=REQUEUE, why="its pod is being taken away", kind="not-ready")
                # A node that was away for a moment takes Ready from its pods; a program that runs already goes on.
                goes_on = made.kind == "adopted" and found[1].running
                if found[1].ready or found[1].over or goes_on:
                    return made
            if time.monotonic() >= until:
                return await self._too_late(attempt, found)
            await self._mirror.change(min(until - time.monotonic(), _LOOK_SECONDS))

    async def _too_late(self, attempt: Attempt, found: tuple[Key, JobPod] | None) -> PrologVerdict:
        why = f"its pod was not ready within {self._times.ready:g} s"
        if found is None:
            return PrologVerdict(code=REQUEUE, why=why, kind="not-ready")
        key, pod = found
        why = f"{why}: {pod.reason} {pod.message}".rstrip()
        if pod.reason in _NEVER_STARTS:
            return self.beginnings.refuse(attempt, why)
        await self.ending.delete(key, pod.uid)
        return PrologVerdict(code=REQUEUE, why=why, kind="not-ready")

    async def end(self, number: int, restarts: int | None) -> str | None:
        """The answer to an epilog: take the pods of a job that has ended away; returns why if they are not gone.

        Args:
            number: number of the job.
            restarts: restart count of the attempt that ended; None where the hook does not know it.

        Raises:
            SlurmError: slurmctld could not be asked what became of the job.
        """
        return await self.ending.end(number, restarts)
