"""Prologs of jobs, and their answers: start, with a pod that is made and waited for, or back into the queue.

A prolog may be killed at any moment, and Slurm takes that for success. So what is being made for it is made to its end, and a
program that it was about to hand on is handed on.
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field

import structlog

from fairlead_kube.errors import KubeError
from fairlead_kube.reflector import Key
from fairlead_slurm.errors import PodCommentError, SlurmError
from fairlead_slurm_bridge.errors import NotPreparedError, PodRefusedError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.ending import PodEnding
from fairlead_slurm_bridge.pods.forgotten_starts import ForgottenStarts, node_of
from fairlead_slurm_bridge.pods.mirror import LOOK_SECONDS, KubeMirror
from fairlead_slurm_bridge.pods.pod_maker import PodMaker
from fairlead_slurm_bridge.pods.runs import LONG_AGO, Runs
from fairlead_slurm_bridge.pods.starting_attempts import StartingAttempts
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict
from fairlead_slurm_bridge.settings import SlurmBridgeSettings

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


@dataclass(eq=False)
class Prologs:
    """The prologs of one partition's jobs."""

    mirror: KubeMirror
    runs: Runs
    starting: StartingAttempts
    forgotten_starts: ForgottenStarts
    ending: PodEnding
    maker: PodMaker
    settings: SlurmBridgeSettings
    _tasks: set[asyncio.Task[PrologVerdict | None]] = field(default_factory=set, init=False)
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def answer(self, hook: Mapping[str, str]) -> PrologVerdict:
        """The answer to PrologSlurmctld: start, with a pod that is ready; or back into the queue."""
        if hook.get("SLURM_JOB_PARTITION") != self.settings.pods_partition:
            return PrologVerdict(code=START, why="", kind="elsewhere")
        why = self.mirror.why_not(self.settings.pods_silence_seconds)
        if why is not None:
            return PrologVerdict(code=REQUEUE, why=why, kind="away")
        attempt = Attempt(int(hook["SLURM_JOB_ID"]), int(hook.get("SLURM_JOB_RESTART_COUNT", "0")))
        known = self.starting.short.get(attempt.job)
        if known is not None and not self.mirror.capacity.would_fit([known])[0]:
            return PrologVerdict(code=REQUEUE, why="there is still no room", kind="short")
        with self.starting.asked(attempt):
            verdict = await self._begin(attempt, hook)
            if verdict.kind == "away":  # slurmctld is: what it has forgotten of the job is not known
                await self._hand_on_unasked(attempt)
            return verdict

    async def _begin(self, attempt: Attempt, hook: Mapping[str, str]) -> PrologVerdict:
        node = node_of(hook)
        forgotten = await self._forgotten(attempt, node)
        if forgotten is not None:
            return forgotten
        # What is being made is made to its end, also when the hook that asked for it is killed.
        verdict = await asyncio.shield(self._keep_on(self._make(attempt, hook)))
        if verdict.code == START:
            await self._slurmd_is_free(attempt, node)
            if verdict.kind not in ("refused", "ended"):
                verdict = await self._ready(attempt, verdict)
        if verdict.code == START:
            self.runs.starts(attempt, node)
        return verdict

    async def _slurmd_is_free(self, attempt: Attempt, node: str) -> None:
        """Wait until the node's slurmd takes the job again, or the epilog is late: it may have no bridge."""
        until = time.monotonic() + _TOLD_SECONDS
        if self.runs.slurmd_untold(attempt, node):
            self._log.warning("slurmd_awaited", job=attempt.job, restarts=attempt.restarts, node=node)
        while self.runs.slurmd_untold(attempt, node) and time.monotonic() < until:
            await self.mirror.change(_TOLD_LOOK_SECONDS)
        await asyncio.sleep(self.runs.rest_seconds(attempt.job))

    async def _forgotten(self, attempt: Attempt, node: str) -> PrologVerdict | None:
        try:
            found = await self.forgotten_starts.answer(attempt, node)
        except asyncio.CancelledError:
            # Slurm takes a prolog that is killed for success, and slurmd refuses the job that it has: it goes back unasked.
            self._keep_on(self._hand_on_unasked(attempt))
            self.starting.send_back(attempt.job, None)
            raise
        except SlurmError as error:
            return PrologVerdict(code=REQUEUE, why=str(error), kind="away")
        except KubeError as error:
            return PrologVerdict(code=REQUEUE, why=f"Kubernetes: {error}", kind="error")
        if found is not None and found.code == REQUEUE:
            self.starting.send_back(attempt.job, None)
        return found

    async def _hand_on_unasked(self, attempt: Attempt) -> None:
        """Let the attempt's program go on, if it runs, without asking slurmctld: the attempt goes back."""
        async with self.starting.turn(attempt.job):
            try:
                await self.forgotten_starts.hand_on(attempt, LONG_AGO)
            except KubeError as error:
                self._log.warning("pod_not_handed_on", job=attempt.job, error=str(error))

    def _keep_on[T: (PrologVerdict, None)](self, doing: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Run the work to its end, whatever becomes of whoever asked for it."""
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _make(self, attempt: Attempt, hook: Mapping[str, str]) -> PrologVerdict:
        async with self.starting.turn(attempt.job):
            if self.starting.has_ended(attempt):
                return PrologVerdict(code=REQUEUE, why="the attempt has ended meanwhile", kind="error")
            try:
                return await self.maker.make(attempt, hook)
            except (PodRefusedError, PodCommentError) as error:
                return self.starting.refuse(attempt, str(error))
            except NotPreparedError as error:
                return PrologVerdict(code=REQUEUE, why=str(error), kind="error")
            except SlurmError as error:
                return PrologVerdict(code=REQUEUE, why=str(error), kind="away")
            except KubeError as error:
                return PrologVerdict(code=REQUEUE, why=f"Kubernetes: {error}", kind="error")

    async def _ready(self, attempt: Attempt, made: PrologVerdict) -> PrologVerdict:
        until = time.monotonic() + self.settings.pods_ready_seconds
        seen = False
        while True:
            found = self.mirror.of_attempt(attempt)
            if self.starting.has_ended(attempt) or (seen and found is None):
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
            await self.mirror.change(min(until - time.monotonic(), LOOK_SECONDS))

    async def _too_late(self, attempt: Attempt, found: tuple[Key, JobPod] | None) -> PrologVerdict:
        why = f"its pod was not ready within {self.settings.pods_ready_seconds:g} s"
        if found is None:
            return PrologVerdict(code=REQUEUE, why=why, kind="not-ready")
        key, pod = found
        why = f"{why}: {pod.reason} {pod.message}".rstrip()
        if pod.reason in _NEVER_STARTS:
            return self.starting.refuse(attempt, why)
        await self.ending.delete(key, pod.uid)
        return PrologVerdict(code=REQUEUE, why=why, kind="not-ready")
