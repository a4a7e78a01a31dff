"""A licence of Slurm's, as many as GPUs for the partition's pods, so that few jobs start in vain.

The gate decides all the same: tokens know nothing of CPUs and memory, nor of which GPUs lie on one node.

Their number is that of the GPUs that are free, and of those that the partition's jobs hold now. It does not change as jobs begin
and end: what a job takes moves from one part of the sum to the other. Others' pods change it, nodes that come and go, and pods
that take their time to end after Slurm has got the job's tokens back.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from fairlead_policy.fit.shapes import PodShape
from fairlead_slurm.errors import SlurmError
from fairlead_slurm.licences import AccountedLicence
from fairlead_slurm_bridge.gate.capacity import free_gpus
from fairlead_slurm_bridge.pods.mirror import KubeMirror

_LEAST_PAUSE = 1.0
"""Least seconds between two looks: a change is a transaction in slurmdbd's database."""
_AGAIN_SECONDS = 60.0
"""Seconds after which the number is written once more, whoever has changed it."""


class TokenKeeper:
    """A keeper of the licence's number, which follows Kubernetes.

    Args:
        tokens: changes the licence in accounting.
        mirror: shows nodes and pods of Kubernetes.
        shape: labels and tolerations of the partition's pods.
        acts: whether this bridge acts.
    """

    def __init__(
        self, tokens: AccountedLicence, mirror: KubeMirror, shape: PodShape, *, acts: Callable[[], bool]
    ) -> None:
        self._tokens = tokens
        self._mirror = mirror
        self._shape = shape
        self._acts = acts
        self._told: int | None = None
        self._told_at = 0.0
        self._complained = ""
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def run(self) -> None:
        """Keep the number right until cancelled."""
        while True:
            if self._acts():
                try:
                    await self._tell()
                    self._complained = ""
                except SlurmError as error:
                    if str(error) != self._complained:
                        self._log.warning("tokens_not_set", error=str(error))
                    self._complained = str(error)
            await asyncio.sleep(_LEAST_PAUSE)  # and not until the next change: one in between would be missed

    async def _tell(self) -> None:
        wanted, now = self.wanted(), time.monotonic()
        if wanted == self._told and now - self._told_at < _AGAIN_SECONDS:
            return
        changed, self._told = wanted != self._told, None
        await self._tokens.set_total(wanted)
        self._told, self._told_at = wanted, now
        if changed:
            self._log.info("tokens_set", count=wanted)

    def wanted(self) -> int:
        """The number of GPUs that are free, or taken by pods whose jobs hold tokens."""
        capacity, pods = self._mirror.capacity, self._mirror.pods
        # A job that is told to end, as its pod is, gives its tokens back.
        giving_back = {key for key, pod in pods.items() if pod.leaving or pod.handed_on}
        holding = (capacity.promised | pods.keys()) - giving_back
        return free_gpus(capacity.nodes().values(), self._shape) + capacity.gpus_of(holding)
