"""The output of a pod, and its results on shared storage, which are kept before it goes."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import structlog

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import KubeError
from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.kube_facts import CONTAINER, JobPod
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.results import ResultPlan, planned

_MOST_OUTPUT = 64 * 2**20
"""Bytes of a pod's output that are kept, at most; a kubelet itself keeps 10 MiB by default
(containerLogMaxSize)."""


@dataclass(eq=False)
class ResultKeeper:
    """A finder of what an epilog keeps of a pod."""

    client: KubeClient
    mirror: KubeMirror
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    def plans(self, number: int) -> list[tuple[Key, JobPod, ResultPlan]]:
        """The plans for a job's pods that ended by themselves, in the order of its attempts."""
        pods = self.mirror.of_job(number).items()
        found = [(key, pod, planned(pod)) for key, pod in pods if not pod.handed_on]
        due = [(key, pod, plan) for key, pod, plan in found if plan is not None]
        return sorted(due, key=lambda one: one[1].attempt)

    async def output(self, key: Key) -> AsyncGenerator[bytes]:
        """The pod's output, as far as Kubernetes still has it."""
        left = _MOST_OUTPUT
        try:
            async with self.client.pod_log(
                key.name, key.namespace, container=CONTAINER, follow=False
            ) as pieces:
                async for piece in pieces:
                    if piece[:left]:
                        yield piece[:left]
                    left -= len(piece)
                    if left <= 0:
                        self._log.warning("output_cut", pod=key.name, bytes=_MOST_OUTPUT)
                        return
        except KubeError as error:
            self._log.warning("output_not_kept", pod=key.name, error=str(error))
