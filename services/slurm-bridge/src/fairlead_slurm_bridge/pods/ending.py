"""The end of a job's pod: it is asked to end, with the claim that was made for it, and waited for until it is really gone."""

import asyncio
import time
from dataclasses import dataclass, field

import structlog

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import ConflictError, KubeError, NotFoundError
from fairlead_kube.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from fairlead_kube.reflector import Key
from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.forgotten_starts import SlurmctldJobs, is_left
from fairlead_slurm_bridge.pods.manifest import PodRules
from fairlead_slurm_bridge.pods.mirror import LOOK_SECONDS, KubeMirror
from fairlead_slurm_bridge.pods.starting_attempts import StartingAttempts
from fairlead_slurm_bridge.pods.verdicts import is_over

_CLAIM_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 1.0
_TRIES = 5
"""Number of tries to delete a pod that changes all the time."""


@dataclass(eq=False)
class PodEnding:
    """The end of pods of one partition's jobs."""

    jobs: SlurmctldJobs
    client: KubeClient
    mirror: KubeMirror
    rules: PodRules
    starting: StartingAttempts
    gone_seconds: float
    """Longest time from the order to end a pod until it is really gone."""
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def end(self, number: int, restarts: int | None) -> str | None:
        """Take away the pods of a job that has ended, and wait until they are gone; returns why if not.

        Args:
            number: number of the job.
            restarts: restart count of the attempt that ended; None where the hook does not know it.

        Raises:
            SlurmError: slurmctld could not be asked what became of the job.
        """
        ending: set[Key] = set()
        claims: set[Key] = set()
        async with self.starting.turn(number):
            job = await self.jobs.job(number)
            self.starting.ends(number, job)
            for key, pod in self.mirror.of_job(number).items():
                if is_left(pod, job, completing=True):
                    if not pod.leaving:
                        await self.delete(key, pod.uid)
                    ending.add(key)
            if restarts is not None:
                await self._remove_unseen(Attempt(number, restarts), job)
                if job is not None:  # a bridge that was killed may have made its claim, and no pod
                    claims.add(self.rules.pod_key(job.account, Attempt(number, restarts)))
            claims = ending | (claims - self.mirror.pods.keys())  # a pod that goes on keeps its own
        began = time.monotonic()
        until = began + self.gone_seconds
        left = await self._gone(ending, until) or await self._claims_gone(claims, until)
        self._log.info("job_cleaned_up", job=number, seconds=round(time.monotonic() - began, 3), left=left)
        return left

    async def _remove_unseen(self, attempt: Attempt, job: SlurmJob | None) -> None:
        """Take away a pod that may have been made a moment ago, and has not been heard of."""
        if self.mirror.of_attempt(attempt) is not None or not is_over(attempt, job, completing=True):
            return
        name = attempt.pod_name(self.rules.cluster)
        for key in [key for key in self.mirror.capacity.promised if key.name == name]:
            await self.delete(key, None)
            self.mirror.capacity.release(key)

    async def _gone(self, ending: set[Key], until: float) -> str | None:
        while left := ending & self.mirror.pods.keys():
            if time.monotonic() >= until:
                return f"{', '.join(key.name for key in left)} did not end within {self.gone_seconds:g} s"
            await self.mirror.change(min(until - time.monotonic(), LOOK_SECONDS))
        return None

    async def _claims_gone(self, claims: set[Key], until: float) -> str | None:
        while left := [key for key in claims if not await self.claim_is_gone(key)]:
            if time.monotonic() >= until:
                return f"the claims {', '.join(key.name for key in left)} did not go within {self.gone_seconds:g} s"
            await asyncio.sleep(_CLAIM_LOOK_SECONDS)
            claims = set(left)
        return None

    async def stop(self, attempt: Attempt) -> None:
        """Ask the pod of an attempt to end, with the time that it is given for that."""
        found = self.mirror.of_attempt(attempt)
        if found is not None and not found[1].leaving:
            await self.delete(found[0], found[1].uid)

    async def remove(self, key: Key, pod: JobPod) -> None:
        """Ask for the end of a pod, and of the claim that was made for it."""
        if not pod.leaving:
            await self.delete(key, pod.uid)
        await self.claim_is_gone(key)

    async def claim_is_gone(self, key: Key) -> bool:
        """Ask for the end of a claim; returns whether it is gone. Kubernetes keeps it as long as its pod."""
        try:
            await self.client.delete(PERSISTENT_VOLUME_CLAIMS, key.name, key.namespace)
        except NotFoundError:
            return True
        except KubeError as error:
            self._log.warning("claim_not_deleted", name=key.name, error=str(error))
        return False

    async def delete(self, key: Key, uid: str | None) -> None:
        """Ask for the end of a pod; of one that waits only as it was seen.

        Another bridge that leads since may have handed the pod on, or let its program begin: then the pod stays, and whoever
        sweeps looks at it anew.
        """
        seen = _stage(self.mirror.pods.get(key))
        for _ in range(_TRIES):
            pod = self.mirror.pods.get(key)
            if _stage(pod) != seen:
                return
            waits = pod is not None and pod.waits and pod.uid == uid
            if await self._ask_for_end(key, uid, pod.version if pod is not None and waits else None):
                return
            await self.mirror.change(_RETRY_SECONDS)
        self._log.warning("pod_not_deleted", pod=key.name, error="it changes all the time")

    async def _ask_for_end(self, key: Key, uid: str | None, version: str | None) -> bool:
        """Ask Kubernetes once; returns whether that settles it: not where the version is an old one."""
        try:
            with self.mirror.leaving(key):
                await self.client.delete(PODS, key.name, key.namespace, uid=uid, resource_version=version)
        except ConflictError:
            return version is None
        except NotFoundError:
            return True
        except KubeError as error:
            self._log.warning("pod_not_deleted", pod=key.name, error=str(error))
        return True


def _stage(pod: JobPod | None) -> tuple[str, Attempt, bool] | None:
    """The facts about a pod that decide whether it goes."""
    return None if pod is None else (pod.uid, pod.attempt, pod.waits)
