"""Jobs that have ended as accounting has them, where slurmctld knows the jobs no more (it forgets them after MinJobAge)."""

import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.quantities import instant, tres
from fairlead_slurm.queue import SlurmJob, joined

FIELDS = (
    "jobid", "jobidraw", "state", "start", "end", "submit", "account", "user", "partition", "qos", "nnodes", "alloctres",
    "reqtres",
)  # fmt: skip
"""The fields that sacct is asked for: none that a user fills in as they like, as a name may hold what looks like the next line."""
ENDS = ("BF", "CA", "CD", "DL", "F", "NF", "OOM", "PR", "TO")
"""The states of jobs that have ended, as sacct is asked for them."""
_COMMENT = re.compile(r" --comment=(fairlead=\S+ digest=\S+)")


def ended_jobs(text: str) -> list[SlurmJob]:
    """The ended jobs in what `sacct --parsable2` prints; jobs that have not ended, and tasks that never were, are left out.

    Raises:
        UnreadableError: a line has other fields than those asked for.
    """
    return joined(_jobs(text))


def submitted_jobs(text: str) -> list[SlurmJob]:
    """The ended jobs that were made of submissions, with their comments, in what sacct prints of the same fields and SubmitLine.

    A line that cannot be read is left out: whoever submits in the account may write the next line into his own.
    """
    found = []
    for line in text.splitlines():
        fields = line.split("|", len(FIELDS))
        comment = _COMMENT.search(fields[-1])
        if len(fields) > len(FIELDS) and comment is not None:
            with suppress(UnreadableError, ValueError):
                jobs = ended_jobs("|".join(fields[:-1]))
                found += [msgspec.structs.replace(job, comment=comment[1]) for job in jobs]
    return found


def _jobs(text: str) -> Iterator[SlurmJob]:
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != len(FIELDS):
            raise UnreadableError(f"sacct's line {line[:80]!r}")
        name, number, state, started, ended, submitted, account, user, partition, qos, nodes, held, asked = (
            fields
        )
        ends, since = instant(ended), instant(submitted)
        leader, plus, _ = name.partition("+")
        # A part of a heterogeneous job, `11+1`, goes by the number of its record.
        own = number if plus else name
        array, underscore, task = own.partition("_")
        if ends is None or since is None or not array.isdecimal() or not (task or "0").isdecimal():
            continue
        yield SlurmJob(
            id=own,
            array=int(array),
            task=int(task) if underscore else None,
            number=int(number),
            state=state.partition(" ")[0],  # `CANCELLED by 1000`
            priority=0,
            nice=0,
            account=account,
            user=user,
            partitions=tuple(partition.split(",")),
            qos=qos,
            submitted=since,
            started=instant(started),
            ends=ends,
            eligible=None,
            time_limit=None,
            restarts=0,
            nodes=int(nodes) if nodes.isdecimal() else 1,
            resources=tres(held or asked),
            dependency="",
            reason="",
            comment="",
            name="",
            leader=int(leader) if plus else 0,
        )
