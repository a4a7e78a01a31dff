"""A licence of Slurm's, as many as GPUs for the partition's pods, so that few jobs start in vain.

The gate decides all the same: tokens know nothing of CPUs and memory, nor of which GPUs lie on one node.

Their number is that of the GPUs that are free, and of those that the partition's jobs hold now. It does not change as jobs begin
and end: what a job takes moves from one part of the sum to the other. Others' pods change it, nodes that come and go, and pods
that take their time to end after Slurm has got the job's tokens back.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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


@dataclass(eq=False)
class TokenKeeper:
    """A keeper of the licence's number, which follows Kubernetes."""

    tokens: AccountedLicence
    mirror: KubeMirror
    shape: PodShape
    acts: Callable[[], bool]
    """Whether this bridge acts."""
    _told: int | None = field(default=None, init=False)
    _told_at: float = field(default=0.0, init=False)
    _complained: str = field(default="", init=False)
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def run(self) -> None:
        """Keep the number right until cancelled."""
        while True:
            if self.acts():
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
        await self.tokens.set_total(wanted)
        self._told, self._told_at = wanted, now
        if changed:
            self._log.info("tokens_set", count=wanted)

    def wanted(self) -> int:
        """The number of GPUs that are free, or taken by pods whose jobs hold tokens."""
        capacity, pods = self.mirror.capacity, self.mirror.pods
        # A job that is told to end, as its pod is, gives its tokens back.
        giving_back = {key for key, pod in pods.items() if pod.leaving or pod.handed_on}
        holding = (capacity.promised | pods.keys()) - giving_back
        return free_gpus(capacity.nodes().values(), self.shape) + capacity.gpus_of(holding)
