"""Jobs that slurmctld starts once more, because it was killed and has forgotten that it started them before.

The pod of such a job goes on, as the pod of the attempt that slurmctld believes in; a program that has ended
is not run again, its exit code is told instead. Where slurmd may still hold the job's last process, the
attempt is sent back first: see `runs`.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from fairlead_contracts.base.instants import Micros
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import RetryableKubeError
from fairlead_kube.kinds.resources import PODS
from fairlead_kube.reflector import Key
from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.manifest import Manifest, handed_to
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.programs import JobProcesses
from fairlead_slurm_bridge.pods.runs import NEXT, Runs, is_of
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict, is_over

_RETURNS_SECONDS = 3.0
"""Seconds in which a job's process asks again, after the bridge was away: it tries every two."""
_SETTLES_SECONDS = 20.0
"""Seconds in which slurmstepd tells slurmctld of a process that has ended; it tries every 15 (RETRY_DELAY,
slurmstepd/mgr.c)."""
_STEP_SECONDS = 1.0
_PATCH_SECONDS = 15.0
"""Seconds for which an API server that is away is asked again."""
_SEEN_SECONDS = 5.0
"""Seconds in which a changed label is heard of."""
_CONFIGURING, _PENDING = "CONFIGURING", "PENDING"


class SlurmctldJobs(Protocol):
    """Questions and orders to slurmctld about jobs."""

    async def job(self, number: int) -> SlurmJob | None:
        """The job of this number; None where slurmctld does not know it any more."""

    async def script(self, number: int) -> str:
        """The job's batch script."""

    async def cancel(self, number: int) -> None:
        """Cancel the job."""


@dataclass(eq=False)
class ForgottenStarts:
    """The starts of a partition's jobs that slurmctld has forgotten."""

    jobs: SlurmctldJobs
    client: KubeClient
    mirror: KubeMirror
    processes: JobProcesses
    runs: Runs
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def answer(self, attempt: Attempt, node: str) -> PrologVerdict | None:
        """The answer to a prolog whose attempt may not start on that node; None where nothing is against it.

        Raises:
            SlurmError: slurmctld does not answer.
            KubeError: Kubernetes does not.
        """
        held = self.runs.held_node(attempt, node)
        if held is None:
            return None
        self._log.warning("job_began_again", job=attempt.job, restarts=attempt.restarts, node=node)
        if (
            not await self._listens(attempt, node)
            and held.reported_in
            and await self._has_moved_on(attempt, node)
        ):
            await self._take_back(attempt)
            return PrologVerdict(code=START, why="its process has ended", kind="adopted")
        if self.runs.held_node(attempt, node) is None:
            return None  # slurmd was told meanwhile
        job = await self.jobs.job(attempt.job)
        if job is not None:
            await self.hand_on(attempt, job.submitted)
        self.runs.refused(attempt, node)
        why = f"slurmctld has forgotten that it started this job on {node}: its program belongs to the next attempt"
        return PrologVerdict(code=REQUEUE, why=why, kind="handed-on")

    async def take_over(self, attempt: Attempt, submitted: Micros, identity: str) -> PrologVerdict | None:
        """The answer where the job's program runs or has run, and is this attempt's from now on; else None.

        Raises:
            KubeError: Kubernetes does not answer.
        """
        for key, pod in self.mirror.of_job(attempt.job).items():
            if not pod.leaving and is_run_of(pod, attempt, submitted, identity):
                if pod.attempt != attempt or pod.handed_on or pod.submitted != submitted:
                    await self._hand(key, attempt, submitted)
                return PrologVerdict(code=START, why="", kind="adopted")
        if self.runs.replay(attempt, submitted, identity):
            return PrologVerdict(code=START, why="its program has run to its end already", kind="ended")
        return None

    async def code_of(self, attempt: Attempt) -> int | None:
        """The exit code of an attempt's program without a pod; None where it is not known.

        The bridge that let it start may have been another one, which is gone.

        Raises:
            SlurmError: slurmctld does not answer.
        """
        job = await self.jobs.job(attempt.job) if self.runs.knows(attempt.job) else None
        return None if job is None else self.runs.code_of(attempt, job.submitted)

    async def hand_on(self, attempt: Attempt, submitted: Micros) -> None:
        """Give an attempt's program to the next attempt, as this one goes back into the queue.

        Args:
            attempt: the attempt that goes back.
            submitted: instant at which slurmctld took the attempt in.

        Raises:
            KubeError: Kubernetes does not answer.
        """
        self.runs.hand_on(attempt, submitted)
        following = Attempt(attempt.job, attempt.restarts + 1)
        for key, pod in self.mirror.of_job(attempt.job).items():
            since = NEXT if pod.handed_on else pod.submitted
            # Also one that waits: its program does not begin any more then for a process of this attempt that comes late.
            if not pod.leaving and is_of(pod.attempt.restarts, since, attempt, submitted):
                await self._hand(key, following, None)

    async def _take_back(self, attempt: Attempt) -> None:
        """Take back a program that was handed on: an earlier prolog was killed before its answer."""
        job = await self.jobs.job(attempt.job)
        if job is None or job.restarts != attempt.restarts:
            return
        self.runs.take_back(attempt, job.submitted)
        for key, pod in self.mirror.of_job(attempt.job).items():
            if pod.handed_on and not pod.leaving:
                await self._hand(key, attempt, job.submitted)

    async def _hand(self, key: Key, attempt: Attempt, submitted: Micros | None) -> None:
        await self._patch(key, handed_to(attempt, submitted))
        self._log.info("pod_handed_on", pod=key.name, job=attempt.job, restarts=attempt.restarts)
        until = time.monotonic() + _SEEN_SECONDS
        while (left := until - time.monotonic()) > 0:
            now = self.mirror.pods.get(key)
            if now is None or (now.attempt == attempt and now.handed_on == (submitted is None)):
                return
            await self.mirror.change(left)

    async def _patch(self, key: Key, patch: Manifest) -> None:
        """Patch a pod, again and again while Kubernetes is away: else its program would begin once more."""
        until = time.monotonic() + _PATCH_SECONDS
        while True:
            try:
                await self.client.merge_patch(PODS, key.name, patch, key.namespace)
            except RetryableKubeError:
                if time.monotonic() >= until:
                    raise
                await asyncio.sleep(_STEP_SECONDS)
            else:
                return

    async def _listens(self, attempt: Attempt, node: str) -> bool:
        """Whether a process of the job listens, or does within seconds, where this bridge has just begun."""
        until = time.monotonic() + _RETURNS_SECONDS
        while not self.processes.any_of(attempt.job) and self.runs.held_node(attempt, node) is not None:
            if (left := until - time.monotonic()) <= 0:
                return False
            await self.processes.change(min(left, _STEP_SECONDS))
        return self.processes.any_of(attempt.job)

    async def _has_moved_on(self, attempt: Attempt, node: str) -> bool:
        """Whether slurmctld hears of the end of a process in time, and takes it for the job's."""
        until = time.monotonic() + _SETTLES_SECONDS
        while time.monotonic() < until and self.runs.held_node(attempt, node) is not None:
            job = await self.jobs.job(attempt.job)
            if job is not None and (job.state != _CONFIGURING or job.restarts != attempt.restarts):
                return True
            await asyncio.sleep(_STEP_SECONDS)
        return False


def is_run_of(pod: JobPod, attempt: Attempt, submitted: Micros, identity: str) -> bool:
    """Whether a pod belongs to this attempt, to a later one that slurmctld forgot, or to one that never began."""
    if pod.digest != identity:
        return False
    if not pod.began and pod.attempt.restarts < attempt.restarts:
        return True
    since = NEXT if pod.handed_on else pod.submitted
    return is_of(pod.attempt.restarts, since, attempt, submitted)


def is_left(pod: JobPod, job: SlurmJob | None, *, completing: bool) -> bool:
    """Whether nothing of Slurm's stands behind a pod any more; one that waits is no other attempt's.

    Args:
        pod: pod of an attempt.
        job: the job as slurmctld has it now; None where it does not know it any more.
        completing: whether a job whose epilogs run counts as over.
    """
    if pod.waits:
        return (job is not None and job.state == _PENDING) or is_over(pod.attempt, job, completing=completing)
    return is_over(pod.attempt, job, completing=completing, handed_on=pod.handed_on or not pod.began)


def node_of(hook: Mapping[str, str]) -> str:
    """The node on which a prolog's job is to start; jobs of the partition have one each."""
    return hook.get("SLURM_JOB_NODELIST", "")
