"""A partition whose jobs run as pods: the gate's questions to slurmctld, by Slurm's commands.

They are about its jobs, and about nodes that Slurm drained over a job that it forgot to have started there.
"""

from collections.abc import Iterable
from itertools import batched
from pathlib import Path

from fairlead_slurm.cluster import lines_with
from fairlead_slurm.commands import Commands
from fairlead_slurm.errors import CommandFailedError
from fairlead_slurm.queue import QueueFormat, QueueReader, SlurmJob
from fairlead_slurm.updates import checked, is_gone

_DUPLICATE = "Duplicate jobid"
"""Slurm's reason for a drained node that is sound: slurmd refused a job that it still had
(slurmctld/agent.c)."""
_IN_A_LIST = 200


class PodPartition:
    """The partition of one cluster whose jobs run as pods, by Slurm's commands.

    Args:
        conf: slurm.conf; by default where Slurm's commands look.
        seconds: longest time of one command.

    Raises:
        SlurmUnreachableError: from each method, while slurmctld does not answer.
    """

    def __init__(self, conf: Path | None, partition: str, *, seconds: float = 20.0) -> None:
        self._commands = Commands(conf, seconds=seconds)
        self._partition = partition
        self._reader = QueueReader()

    async def jobs(self) -> list[SlurmJob]:
        """All jobs that slurmctld knows of the partition, with those that ended a moment ago."""
        form = QueueFormat()
        where = f"--partition={self._partition}"
        return self._reader.read(await self._commands.printed("squeue", *form.arguments, where), form).jobs

    async def job(self, number: int) -> SlurmJob | None:
        """The job with this record's number; None where slurmctld does not know it any more."""
        form = QueueFormat()
        try:
            printed = await self._commands.printed("squeue", *form.arguments, f"--jobs={number:d}")
        except CommandFailedError as error:
            if is_gone(str(error)):
                return None
            raise
        return next((job for job in QueueReader().read(printed, form).jobs if job.number == number), None)

    async def script(self, number: int) -> str:
        """The batch script that slurmctld keeps of a job.

        Raises:
            CommandFailedError: the job has no script, or is gone.
        """
        ended = await self._commands.run("scontrol", "write", "batch_script", f"{number:d}", "-")
        # scontrol ends with 0 also where slurmctld gave it none (scontrol.c); no job's script is empty.
        if not ended.out:
            raise CommandFailedError(f"the script of job {number:d}: {ended.errors.strip() or 'nothing'}")
        return ended.out.decode(errors="replace")

    async def wake(self, jobs: Iterable[str]) -> None:
        """Let waiting jobs, whose begin Slurm put off, be tried at once. Jobs that are gone are left out.

        Not in the second in which they went back: slurmd refuses such a job, and Slurm ends it as failed.
        """
        lines = [
            f"update jobid={','.join(part)} starttime=now"
            for part in batched((checked(job) for job in jobs), _IN_A_LIST, strict=False)
        ]
        if lines:
            await self._commands.run("scontrol", given="\n".join([*lines, "quit", ""]))

    async def requeue(self, job: str) -> None:
        """Put a job back into the queue that holds nodes. One that has ended or gone back by itself stays as it is."""
        await self._commands.run("scontrol", "requeue", "incomplete", checked(job))

    async def cancel(self, number: int) -> None:
        """Cancel a job, which may have ended."""
        await self._commands.run("scancel", f"{number:d}")

    async def drained(self) -> list[str]:
        """The nodes that Slurm has drained over a duplicate job, and that are in no other partition."""
        return duplicates(
            await self._commands.output("scontrol", "--oneliner", "show", "node"), self._partition
        )

    async def resume(self, nodes: Iterable[str]) -> None:
        """Let jobs start on these nodes again, which only an administrator, SlurmUser or root may.

        Raises:
            SlurmError: slurmctld refuses it.
        """
        await self._commands.output("scontrol", "update", f"nodename={','.join(nodes)}", "state=resume")


def duplicates(text: str, partition: str) -> list[str]:
    """Nodes in `scontrol show node` that are drained over a duplicate job and in this partition alone."""
    return [
        words["NodeName"]
        for words in lines_with(text, "NodeName")
        if "DRAIN" in words.get("State", "")
        and words.get("Reason", "").startswith(_DUPLICATE)
        and words.get("Partitions") == partition
    ]
