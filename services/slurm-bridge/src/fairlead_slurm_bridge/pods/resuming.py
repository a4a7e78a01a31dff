"""Nodes that Slurm drains over a job that it forgot, brought back where the site lets the bridge do so.

On the partition's nodes stand the processes that print pods' output, and no program: what slurmd still holds there takes
nothing from the next job.
"""

import asyncio
from collections.abc import Callable

import structlog

from fairlead_slurm.errors import SlurmError
from fairlead_slurm.partition import PartitionNodes


class NodeResumer:
    """A resumer of nodes that Slurm has drained over a forgotten job; it looks at them now and then.

    Args:
        nodes: answers about slurmctld's nodes.
        leads: whether this bridge is the one that acts.
        seconds: time between two looks.
    """

    def __init__(self, nodes: PartitionNodes, *, leads: Callable[[], bool], seconds: float) -> None:
        self._nodes = nodes
        self._leads = leads
        self._seconds = seconds
        self._complained = ""
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def run(self) -> None:
        """Resume nodes until cancelled."""
        while True:
            if self._leads():
                await self._look()
            await asyncio.sleep(self._seconds)

    async def _look(self) -> None:
        try:
            drained = await self._nodes.drained()
            if drained:
                await self._nodes.resume(drained)
                self._log.warning("nodes_resumed", nodes=drained)
            self._complained = ""
        except SlurmError as error:
            if str(error) != self._complained:
                self._log.warning("nodes_not_resumed", error=str(error))
            self._complained = str(error)
