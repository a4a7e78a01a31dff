"""Ends of jobs as accounting has them, where slurmctld knows the jobs no more (it forgets them after MinJobAge)."""

from collections.abc import Iterator

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.quantities import instant

FIELDS = ("jobid", "jobidraw", "state", "start", "end")
"""The fields that sacct is asked for."""


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job or array task."""

    array: int
    """Number of its array, or of the job itself."""
    task: int | None
    state: str
    """The last state, as squeue prints it."""
    started: Micros | None
    ended: Micros


def job_ends(text: str) -> Iterator[JobEnd]:
    """The ends in what `sacct --parsable2` prints; jobs that have not ended, and tasks that never were, are left out.

    Raises:
        UnreadableError: a line has other fields than those asked for.
    """
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != len(FIELDS):
            raise UnreadableError(f"sacct's line {line[:80]!r}")
        name, number, state, started, ended = fields
        at = instant(ended)
        # A part of a heterogeneous job, `11+1`, goes by the number of its record.
        array, _, task = (number if "+" in name else name).partition("_")
        if at is None or not array.isdecimal() or not (task or "0").isdecimal():
            continue
        yield JobEnd(
            array=int(array),
            task=int(task) if task else None,
            state=state.partition(" ")[0],  # `CANCELLED by 1000`
            started=instant(started),
            ended=at,
        )
