"""Programs that run in pods: the processes on nodes that stand for them, their beginning and their end."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import ConflictError, KubeError, NotFoundError
from fairlead_kube.kinds.resources import PODS
from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.manifest import begun
from fairlead_slurm_bridge.pods.mirror import ChangeSignal, KubeMirror
from fairlead_slurm_bridge.pods.runs import NEXT, Runs

_RETRY_SECONDS = 1.0
_LOOK_SECONDS = 60.0
_FAILED = 1


class JobProcesses:
    """The processes that Slurm runs on nodes for one partition's jobs (hook `body`), as far as they listen here."""

    def __init__(self) -> None:
        self.listening: set[Attempt] = set()
        """Attempts whose process listens now."""
        self._changed = ChangeSignal()

    @contextlib.contextmanager
    def connected(self, attempt: Attempt) -> Iterator[None]:
        """Count the attempt's process as listening for the time of the block."""
        self.listening.add(attempt)
        self._changed.notify()
        try:
            yield
        finally:
            self.listening.discard(attempt)
            self._changed.notify()

    def any_of(self, job: int) -> bool:
        """Whether a process of any attempt of the job listens."""
        return any(attempt.job == job for attempt in self.listening)

    async def change(self, seconds: float) -> None:
        """Return when one has connected or disconnected, or the time is over."""
        await self._changed.wait(seconds)


@dataclass(eq=False)
class WaitingPrograms:
    """The programs of one partition's jobs that wait in their pods until the process of their attempt has come."""

    client: KubeClient
    mirror: KubeMirror
    runs: Runs
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def begin(self, key: Key, pod: JobPod, node: str) -> None:
        """Let a program begin, as its attempt's process has come: the pod is of this attempt alone."""
        self.runs.reported_in(pod.attempt, node)
        while (now := self.mirror.pods.get(key)) is not None and now.uid == pod.uid:
            if now.leaving or now.over or (now.began and not now.waits):
                return
            if now.attempt != pod.attempt:  # handed on; it may be taken back
                await self.mirror.change(_RETRY_SECONDS)
                continue
            self.mirror.begins(key)
            patch, version = begun(pod.uid), now.version
            try:
                await self.client.merge_patch(PODS, key.name, patch, key.namespace, resource_version=version)
            except NotFoundError:
                return
            except ConflictError:
                # Another pod has its name, or it has changed: another bridge may be taking it away.
                await self.mirror.change(_RETRY_SECONDS)
            except KubeError as error:
                self._log.warning("program_not_begun", pod=key.name, error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return


@dataclass(eq=False)
class ProgramEndRecorder:
    """A recorder of the beginnings and ends of programs that the mirror's pods show, on each bridge.

    A later leader needs them where slurmctld forgot them.
    """

    mirror: KubeMirror
    runs: Runs
    _over: dict[Key, bool] = field(default_factory=dict, init=False)
    """Pods since the last look, with whether they were over then."""

    async def run(self) -> None:
        """Record at each change until cancelled."""
        while True:
            self.record()
            await self.mirror.change(_LOOK_SECONDS)

    def record(self) -> None:
        """Record programs of new pods as begun, and of pods that ended by themselves as ended."""
        before, self._over = self._over, {key: pod.over for key, pod in self.mirror.pods.items()}
        for key, over in self._over.items():
            pod = self.mirror.pods[key]
            if over and not before.get(key) and not pod.leaving:
                saw_end(self.runs, pod)
            elif not over and key not in before and not pod.leaving:
                self.runs.begins(pod.attempt.job)


def saw_end(runs: Runs, pod: JobPod) -> None:
    """Note that the program of this pod has ended by itself."""
    runs.ended(pod.attempt, NEXT if pod.handed_on else pod.submitted, pod.digest, code_of(pod))


def code_of(pod: JobPod) -> int:
    """The exit code of a job whose pod is over."""
    if pod.exit_code is not None:
        return pod.exit_code
    return 0 if pod.phase == "Succeeded" else _FAILED
