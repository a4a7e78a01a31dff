"""Nodes of one partition that Slurm has drained over a job that it had forgotten to have started there."""

from collections.abc import Iterable
from pathlib import Path

from fairlead_slurm.cluster import lines_with
from fairlead_slurm.commands import Commands

_DUPLICATE = "Duplicate jobid"
"""Slurm's own reason (slurmctld/agent.c). Nothing is wrong with such a node: slurmd refused a job that it still had."""


class PartitionNodes:
    """The nodes of a partition by Slurm's commands.

    Args:
        conf: slurm.conf; by default where Slurm's commands look.
        partition: of the nodes.
        seconds: how long one command may take.
    """

    def __init__(self, conf: Path | None, partition: str, *, seconds: float = 20.0) -> None:
        self._commands = Commands(conf, seconds=seconds)
        self._partition = partition

    async def drained(self) -> list[str]:
        """The nodes that Slurm has drained so, and that are in no other partition.

        Raises:
            SlurmError: slurmctld does not answer.
        """
        return duplicates(
            await self._commands.output("scontrol", "--oneliner", "show", "node"), self._partition
        )

    async def resume(self, nodes: Iterable[str]) -> None:
        """Let jobs start there again. It takes an administrator, SlurmUser or root.

        Raises:
            SlurmError: slurmctld does not answer, or refuses it.
        """
        await self._commands.output("scontrol", "update", f"nodename={','.join(nodes)}", "state=resume")


def duplicates(text: str, partition: str) -> list[str]:
    """The nodes of this partition alone that are drained for that reason, of `scontrol --oneliner show node`."""
    return [
        words["NodeName"]
        for words in lines_with(text, "NodeName")
        if "DRAIN" in words.get("State", "")
        and words.get("Reason", "").startswith(_DUPLICATE)
        and words.get("Partitions") == partition
    ]
