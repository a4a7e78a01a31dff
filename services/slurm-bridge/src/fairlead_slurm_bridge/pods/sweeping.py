"""What killed hooks left behind is taken away, and jobs that wait for room are woken when there is some."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

import structlog

from fairlead_kube import Key
from fairlead_slurm import SlurmError, SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.verdicts import is_over, is_put_off

_LEAST_PAUSE = 0.5
"""Between two looks at the queue, however much happens."""


class Queue(Protocol):
    """What is asked of slurmctld."""

    async def jobs(self) -> list[SlurmJob]:
        """The jobs of the partition."""

    async def wake(self, jobs: Iterable[str]) -> None:
        """Lets them be tried at once."""


class Sweeper:
    """Looks at the partition's queue now and then, and at once when room appears that somebody waits for.

    Args:
        queue: of slurmctld.
        mirror: of Kubernetes.
        life: of pods.
        followed: attempts whose body listens.
        leads: whether this bridge is the one that acts.
        seconds: between two looks where nothing happens.
    """

    def __init__(
        self,
        queue: Queue,
        mirror: KubeMirror,
        life: PodLife,
        followed: set[Attempt],
        *,
        leads: "Leads",
        seconds: float,
    ) -> None:
        self._queue = queue
        self._mirror = mirror
        self._life = life
        self._followed = followed
        self._leads = leads
        self._seconds = seconds
        self._freed = -1
        self._idle_promises: frozenset[Key] = frozenset()
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._complained = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if self._leads() and self._mirror.why_not(self._seconds * 10) is None:
                try:
                    await self._look()
                    self._complained = ""
                except SlurmError as error:
                    if str(error) != self._complained:
                        self._log.warning("pods_not_swept", error=str(error))
                    self._complained = str(error)
            await asyncio.sleep(_LEAST_PAUSE)
            await self._something_to_do()

    async def _something_to_do(self) -> None:
        until = time.monotonic() + self._seconds
        while (left := until - time.monotonic()) > 0:
            if self._life.short and self._mirror.ledger.freed != self._freed:
                return
            await self._mirror.change(left)

    async def _look(self) -> None:
        self._freed = self._mirror.ledger.freed
        before = dict(self._mirror.pods)
        promised = self._mirror.ledger.promised
        jobs = {job.number: job for job in await self._queue.jobs()}
        for key, pod in before.items():
            job = jobs.get(pod.attempt.job)
            if pod.attempt in self._followed or not is_over(pod.attempt, job, completing=False):
                continue
            if not pod.leaving:
                self._log.info("pod_swept", pod=key.name, state=job.state if job else None)
            await self._life.remove(key, pod)
        self._drop_promises(promised)
        await self._wake(jobs)

    def _drop_promises(self, promised: frozenset[Key]) -> None:
        """Room that nobody is making a pod for, and that no pod has taken since the last look."""
        idle = promised - self._life.making - self._mirror.pods.keys()
        for key in idle & self._idle_promises:
            self._mirror.ledger.release(key)
        self._idle_promises = frozenset(idle)

    async def _wake(self, jobs: Mapping[int, SlurmJob]) -> None:
        for number in [number for number in self._life.short if number not in jobs]:
            self._life.short.pop(number)
        waiting = [jobs[number] for number in self._life.short if is_put_off(jobs[number])]
        waiting.sort(key=lambda job: (-job.priority, job.number))
        fits = self._mirror.ledger.would_fit([self._life.short[job.number] for job in waiting])
        woken = [job.id for job, fit in zip(waiting, fits, strict=True) if fit]
        if woken:
            self._log.info("jobs_woken", jobs=len(woken))
            await self._queue.wake(woken)


class Leads(Protocol):
    """Whether this bridge acts."""

    def __call__(self) -> bool:
        """Now."""
