"""Sweeps behind killed hooks: pods go, jobs for which nobody asks here go back, waiting ones are woken, drained nodes resume."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from fairlead_kube.errors import KubeError
from fairlead_kube.reflector import Key
from fairlead_slurm import SlurmJob
from fairlead_slurm.errors import SlurmError
from fairlead_slurm.partition import PodPartition
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.forgotten_starts import is_left
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.state_timer import RESTART_SECONDS, StateTimer
from fairlead_slurm_bridge.pods.verdicts import is_put_off
from fairlead_slurm_bridge.settings import SlurmBridgeSettings

_ASKS = ("CONFIGURING", "RUNNING")
"""States in which a prolog, or the process of the job, asks the gate."""
_REST_SECONDS = 0.5
"""Seconds after which a job that has just gone back is looked at again."""
_LEAST_PAUSE = 0.5
"""Least seconds between two looks at the queue, however much happens."""


class PodQueue(Protocol):
    """Questions and orders to slurmctld about the partition's jobs."""

    async def jobs(self) -> list[SlurmJob]:
        """The jobs of the partition."""

    async def requeue(self, job: str) -> None:
        """Put a job back into the queue."""

    async def wake(self, jobs: Iterable[str]) -> None:
        """Let these jobs be tried at once."""


@dataclass(eq=False)
class Sweeper:
    """A sweeper of the partition's queue: now and then, and at once when awaited room appears."""

    queue: PodQueue
    mirror: KubeMirror
    life: PodLife
    leads: Callable[[], bool]
    """Whether this bridge is the one that acts."""
    settings: SlurmBridgeSettings
    _freed: int = field(default=-1, init=False)
    _silence: StateTimer = field(init=False)
    """Jobs that hold nodes without a prolog or process that asks here."""
    _put_off: StateTimer = field(default_factory=lambda: StateTimer(RESTART_SECONDS), init=False)
    """Jobs since they were first seen to wait: their nodes had been told of the end by then."""
    _idle_promises: frozenset[Key] = field(default_factory=frozenset, init=False)
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)
    _complained: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._silence = StateTimer(self.settings.pods_lost_seconds)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            if not await self._looked():
                self._silence.reset()
            await asyncio.sleep(_LEAST_PAUSE)
            await self._something_to_do()

    async def _looked(self) -> bool:
        if not self.leads() or self.mirror.why_not(self.settings.pods_sweep_seconds * 10) is not None:
            return False
        try:
            await self._look()
        except (SlurmError, KubeError) as error:
            if str(error) != self._complained:
                self._log.warning("pods_not_swept", error=str(error))
            self._complained = str(error)
            return False
        self._complained = ""
        return True

    async def _something_to_do(self) -> None:
        some_soon = self._put_off.some_pending()
        until = time.monotonic() + (_REST_SECONDS if some_soon else self.settings.pods_sweep_seconds)
        while (left := until - time.monotonic()) > 0:
            if self.life.starting.short and self.mirror.capacity.freed != self._freed:
                return
            await self.mirror.change(left)

    async def _look(self) -> None:
        self._freed = self.mirror.capacity.freed
        before = list(self.mirror.pods)
        promised = self.mirror.capacity.promised
        jobs = {job.number: job for job in await self.queue.jobs()}
        for key in before:
            pod = self.mirror.pods.get(key)  # as it is now: its program may have begun meanwhile
            if pod is None:
                continue
            job = jobs.get(pod.attempt.job)
            if not is_left(pod, job, completing=False) or self.life.stands_for(pod.attempt):
                continue
            if not pod.leaving:
                self._log.info("pod_swept", pod=key.name, state=job.state if job else None)
            await self.life.ending.remove(key, pod)
        self._drop_promises(promised)
        await self._send_back_lost(jobs.values())
        await self._wake(jobs)

    async def _send_back_lost(self, jobs: Iterable[SlurmJob]) -> None:
        """Send jobs back that hold nodes, and for which nobody has asked here for too long.

        A slurmctld that was killed forgets that a job has ended, and finds out after BatchStartTimeout, ten minutes. Its
        program does not run again: it goes on for the next attempt, or that one is told how it ended.
        """
        asking = {Attempt(job.number, job.restarts): job for job in jobs if job.state in _ASKS}
        silent = [attempt for attempt in asking if not self.life.stands_for_job(attempt)]
        for attempt in self._silence.elapsed(silent):
            if self.life.stands_for_job(attempt):
                continue  # it came while others were sent back
            job = asking[attempt]
            self._log.warning("job_sent_back", job=job.id, restarts=job.restarts, state=job.state)
            await self.life.forgotten_starts.hand_on(attempt, job.submitted)
            await self.queue.requeue(job.id)

    def _drop_promises(self, promised: frozenset[Key]) -> None:
        """Drop promises for which nobody makes a pod, and which no pod has taken since the last look."""
        idle = promised - self.life.starting.making - self.mirror.pods.keys()
        for key in idle & self._idle_promises:
            self.mirror.capacity.release(key)
        self._idle_promises = frozenset(idle)

    async def _wake(self, jobs: Mapping[int, SlurmJob]) -> None:
        for number in [number for number in self.life.starting.short if number not in jobs]:
            self.life.starting.settle(number)
        short_ones = (jobs[number] for number in self.life.starting.short)
        put_off = {Attempt(job.number, job.restarts): job for job in short_ones if is_put_off(job)}
        waiting = [put_off[attempt] for attempt in self._put_off.elapsed(put_off)]
        waiting.sort(key=lambda job: (-job.priority, job.number))
        asks = [(job, self.life.starting.short[job.number]) for job in waiting]
        short = [(job, ask) for job, ask in asks if ask is not None]
        fits = self.mirror.capacity.would_fit([ask for _, ask in short])
        woken = [job.id for job, ask in asks if ask is None]
        woken += [job.id for (job, _), fit in zip(short, fits, strict=True) if fit]
        if woken:
            self._log.info("jobs_woken", jobs=len(woken))
            await self.queue.wake(woken)


async def resume_nodes(partition: PodPartition, *, leads: Callable[[], bool], seconds: float) -> None:
    """Resume the nodes that Slurm drains over a job that it forgot, until cancelled.

    On the partition's nodes stand the processes that print pods' output, and no program: what slurmd still holds there takes
    nothing from the next job.

    Args:
        partition: answers about its nodes.
        leads: whether this bridge is the one that acts.
        seconds: time between two looks.
    """
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    complained = ""
    while True:
        if leads():
            try:
                if drained := await partition.drained():
                    await partition.resume(drained)
                    log.warning("nodes_resumed", nodes=drained)
                complained = ""
            except SlurmError as error:
                if str(error) != complained:
                    log.warning("nodes_not_resumed", error=str(error))
                complained = str(error)
        await asyncio.sleep(seconds)
