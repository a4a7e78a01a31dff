"""Programs that wait in their pods until the process of their attempt has come."""

import asyncio

import structlog

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import ConflictError, KubeError, NotFoundError
from fairlead_kube.kinds.resources import PODS
from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.manifest import begun
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.runs import Runs

_RETRY_SECONDS = 1.0


class WaitingPrograms:
    """The programs of one partition's jobs, as far as they have yet to begin.

    Args:
        client: calls Kubernetes.
        mirror: shows nodes and pods of Kubernetes.
        runs: remembers on which nodes processes have come.
    """

    def __init__(self, client: KubeClient, mirror: KubeMirror, runs: Runs) -> None:
        self._client = client
        self._mirror = mirror
        self._runs = runs
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def begin(self, key: Key, pod: JobPod, node: str) -> None:
        """Let a program begin, as its attempt's process has come: the pod is of this attempt alone."""
        self._runs.reported_in(pod.attempt, node)
        while (now := self._mirror.pods.get(key)) is not None and now.uid == pod.uid:
            if now.leaving or now.over or (now.began and not now.waits):
                return
            if now.attempt != pod.attempt:  # handed on; it may be taken back
                await self._mirror.change(_RETRY_SECONDS)
                continue
            self._mirror.begins(key)
            patch, version = begun(pod.uid), now.version
            try:
                await self._client.merge_patch(PODS, key.name, patch, key.namespace, resource_version=version)
            except NotFoundError:
                return
            except ConflictError:
                # Another pod has its name, or it has changed: another bridge may be taking it away.
                await self._mirror.change(_RETRY_SECONDS)
            except KubeError as error:
                self._log.warning("program_not_begun", pod=key.name, error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return
