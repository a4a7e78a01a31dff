"""Updates of many jobs by one scontrol: jobs that get the same value share a command, commands go to standard input.

scontrol takes each job of a list by itself, and says of each that it refuses which one that is and why; but a list with
something in it that is no job id is refused as a whole, so ids are checked before.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import batched, groupby

from fairlead_slurm.errors import FatalSlurmError

HIGHEST_SITE_FACTOR = 2**31 - 3
"""Highest SiteFactor, and lowest below 0, that Slurm takes (NICE_OFFSET - 3, slurm.h)."""
_IN_A_LIST = 200
"""Ids in one command, at most: some 2 kB, well within the line that scontrol reads."""
_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10})?")
_REFUSED_LAST = re.compile(r"^(.*?) for job ([0-9_]+)$")
_REFUSED_FIRST = re.compile(r"^([0-9_]+): (.*)$")
_GONE = ("invalid job id", "already finished", "already completing")


class NotAnIdError(FatalSlurmError):
    """The text given as a job's id has not the form of one."""


def is_id(job: str) -> bool:
    """Whether the text has the form of a job's id."""
    return _ID.fullmatch(job) is not None


def checked(job: str) -> str:
    """The id, once its form is checked.

    Raises:
        NotAnIdError: the text has not the form of an id. Nothing else ever reaches a command.
    """
    if not is_id(job):
        raise NotAnIdError(f"{job[:40]!r} is no id of a Slurm job")
    return job


def checked_factor(factor: int) -> int:
    """The SiteFactor, once its bounds are checked.

    Raises:
        ValueError: Slurm's has not so many bits.
    """
    if abs(factor) > HIGHEST_SITE_FACTOR:
        raise ValueError(f"site factor {factor} is out of range")
    return factor


def site_factor_lines(factors: Sequence[tuple[str, int]]) -> list[str]:
    """The commands for scontrol, in the order given: neighbours of one value share a command.

    Raises:
        NotAnIdError: an id is none.
        ValueError: a factor is out of range.
    """
    lines = []
    for factor, jobs in groupby(factors, key=lambda pair: pair[1]):
        lines += [
            f"update jobid={','.join(part)} sitefactor={checked_factor(factor)}"
            for part in batched((checked(job) for job, _ in jobs), _IN_A_LIST, strict=False)
        ]
    return lines


def jobs_of(line: str) -> list[str]:
    """The jobs that a command of `site_factor_lines` is for."""
    return line.split()[1].removeprefix("jobid=").split(",")


def refusals(errors: str, asked: Iterable[str]) -> dict[str, str]:
    """Reasons by job, of those that were asked for; lines that name none of them are left out."""
    wanted = set(asked)
    found: dict[str, str] = {}
    for line in errors.splitlines():
        last, first = _REFUSED_LAST.match(line), _REFUSED_FIRST.match(line)
        if last is not None and last[2] in wanted:
            found[last[2]] = last[1]
        elif first is not None and first[1] in wanted:
            found[first[1]] = first[2]
    return found


def is_gone(why: str) -> bool:
    """Whether a refusal says that the job waits no more."""
    return any(words in why.lower() for words in _GONE)
