"""Jobs that wait for a limit of their user's: the first of them has a position, those behind it have none. Pure.

Slurm holds back what a limit of an association or a QOS leaves no room for, and says so of a job when it comes to it in
the order of priorities. All of a user's jobs that ask for no less wait for the same limit then. Were they all ranked, they
would fill the window, and nobody who could start would have a level. So one of them stands for all: it keeps its position,
and Slurm goes on looking whether the limit still holds. It is stated as limited, so it counts neither for its tenant, as if
it started, nor in the window.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fairlead_contracts.messages.state import JobState
from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.statements.hindrances import ORDINARY_REASONS

_LIMIT = re.compile(r"(Assoc|QOS)(Grp|Max)|Max\w+PerAccount")
"""The beginning of reasons that name a most of an association or a QOS; who asks for less than a least is alone in it."""
_OF_ONE_JOB = ("PerJob", "PerNode")
"""Words in reasons that name a limit of what one job may ask for: who is above it never starts as it is."""
_READINGS = 30
"""Readings for which a limit counts after it was told last, a quarter of a minute at least: whoever stands for the others
may start meanwhile, and Slurm has to come to the next one first."""
_MOST = 8
"""Sizes of an owner's jobs that are told apart, at most: else every job would be compared with every other."""

type _Owner = tuple[str, str, str, tuple[str, ...]]
"""Account, user, QOS and partitions: each of them may have limits."""
type _Amounts = Mapping[str, float]
"""Base units by resource, with the run time in microseconds among them."""

_TIME = "time"


class _Limit(msgspec.Struct):
    asked: _Amounts
    """Amounts that a job asked for which the limit held back."""
    reason: str
    readings: int
    """Number of readings for which it counts yet."""
    alone: str
    """The only job that it says something of, by its id; empty where it is one for all that ask for no less."""

    @property
    def of_one_job(self) -> bool:
        """Whether it says what one job may ask for, whatever runs."""
        return any(words in self.reason for words in _OF_ONE_JOB)

    def holds(self, job: SlurmJob, asked: _Amounts) -> bool:
        """Whether it holds the job back."""
        return self.alone in ("", job.id) and _no_less(asked, self.asked)


class UserLimits:
    """The limits that hold jobs back, by whose jobs these are."""

    def __init__(self) -> None:
        self._limits: dict[_Owner, list[_Limit]] = {}

    def limited(self, jobs: Sequence[tuple[SlurmJob, JobState]]) -> dict[str, str]:
        """The jobs that a limit holds back, by uid, each with the reason for which it has no position.

        The reason is empty for a job that has one.

        Args:
            jobs: the waiting jobs of one reading, an array's remainder as one.
        """
        self._note([job for job, _ in jobs])
        limited = [one for one in jobs if _owner(one[0]) in self._limits]
        ahead: dict[_Owner, list[tuple[_Amounts, str]]] = {}
        found: dict[str, str] = {}
        # What is left of an array has the number of its first task, and comes behind the tasks that have positions.
        for job, state in sorted(limited, key=lambda one: (one[1].submitted, one[0].array, one[0].task or 0)):
            owner = _owner(job)
            asked = _asked(job)
            if holding := [one for one in self._limits[owner] if one.holds(job, asked)]:
                found[state.uid] = _why_unranked(job, asked, ahead.setdefault(owner, []), holding)
        return found

    def _note(self, jobs: Sequence[SlurmJob]) -> None:
        """Takes in what Slurm says in this reading; forgets what it has not said for a while."""
        told: dict[_Owner, list[_Limit]] = {}
        for job in jobs:
            if _LIMIT.match(job.reason):
                alone = job.id if "PerNode" in job.reason else ""
                _add(told.setdefault(_owner(job), []), _Limit(_asked(job), job.reason, _READINGS, alone))
        for owner, limit in self._older():
            _add(told.setdefault(owner, []), limit)
        self._limits = told

    def _older(self) -> Iterator[tuple[_Owner, _Limit]]:
        for owner, limits in self._limits.items():
            for limit in limits:
                limit.readings -= 1
                if limit.readings > 0:
                    yield owner, limit


def _why_unranked(
    job: SlurmJob, asked: _Amounts, ahead: list[tuple[_Amounts, str]], holding: Sequence[_Limit]
) -> str:
    """The reason for which the job has no position; empty where it has one. It may stand for those behind it then."""
    own = next((one for one in holding if one.of_one_job), None)
    if own is not None:
        return f"asks for more than a limit in Slurm lets one job have ({own.reason})"
    stands = next((name for amounts, name in ahead if _no_less(asked, amounts)), None)
    if stands is None and len(ahead) >= _MOST:
        stands = ahead[-1][1]
    if stands is not None:
        reason = holding[0].reason
        return f"a limit of its user's in Slurm is reached ({reason}), and job {stands} comes first"
    # Who waits for something else, too, says nothing of when the limit ends.
    if job.reason in ORDINARY_REASONS or _LIMIT.match(job.reason):
        ahead.append((asked, job.id))
    return ""


def _add(limits: list[_Limit], limit: _Limit) -> None:
    """Adds a limit, unless another one implies it; limits that the new one implies go."""
    alike = [one for one in limits if (one.alone, one.of_one_job) == (limit.alone, limit.of_one_job)]
    if any(_no_less(limit.asked, one.asked) for one in alike):
        return
    said = [one for one in alike if _no_less(one.asked, limit.asked)]
    limits[:] = [one for one in limits if one not in said]
    if len(limits) < 2 * _MOST:
        limits.append(limit)


def _owner(job: SlurmJob) -> _Owner:
    return job.account, job.user, job.qos, job.partitions


def _asked(job: SlurmJob) -> _Amounts:
    return {**job.resources, _TIME: math.inf if job.time_limit is None else job.time_limit}


def _no_less(asked: _Amounts, amounts: _Amounts) -> bool:
    return all(asked.get(resource, 0) >= amount for resource, amount in amounts.items())
