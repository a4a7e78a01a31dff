"""Jobs that wait for a limit of their user's: the first of them has a position, those behind it have none. Pure.

Slurm holds back what a limit of an association or a QOS leaves no room for, and says so of a job when it comes to it in
the order of priorities. All of a user's jobs that ask for no less wait for the same limit then. Were they all ranked, each
would count for its tenant as if it started, and the tenant's others would wait for starts that cannot be. So one of them
stands for all: it keeps its position, and Slurm goes on looking whether the limit still holds.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_contracts.messages.state import JobState
from fairlead_slurm import SlurmJob

_LIMITS = ("Assoc", "QOS")
"""Beginnings of the reasons that name a limit of an association or a QOS."""
_OF_ONE_JOB = ("PerJob", "PerNode")
"""Words in reasons that name a limit of what one job may ask for: who is above it never starts as it is."""
_READINGS = 10
"""Readings for which a limit counts after it was told last: whoever stands for the others may start meanwhile, and Slurm
has to come to the next one first."""

type _Owner = tuple[str, str, str]
"""Account, user and QOS."""
type _Amounts = Mapping[str, float]
"""Base units by resource, with the run time in microseconds among them."""

_TIME = "time"


class _Limit(msgspec.Struct):
    asked: _Amounts
    """Amounts that a job asked for which the limit held back."""
    reason: str
    readings: int
    """Number of readings for which it counts yet."""


class UserLimits:
    """The limits that hold jobs back, by whose jobs these are."""

    def __init__(self) -> None:
        self._limits: dict[_Owner, list[_Limit]] = {}

    def held_back(self, jobs: Sequence[tuple[SlurmJob, JobState]]) -> dict[str, str]:
        """The jobs that have no position, by uid, each with the reason in words.

        Args:
            jobs: the waiting jobs of one reading, an array's remainder as one.
        """
        self._note(job for job, _ in jobs)
        limited = [one for one in jobs if _owner(one[0]) in self._limits]
        found: dict[str, str] = {}
        ahead: dict[_Owner, list[tuple[_Amounts, str]]] = {}
        for job, state in sorted(limited, key=lambda one: (one[1].submitted, one[1].uid)):
            asked = _asked(job)
            limit = next((one for one in self._limits[_owner(job)] if _no_less(asked, one.asked)), None)
            if limit is None:
                continue
            if any(words in limit.reason for words in _OF_ONE_JOB):
                found[state.uid] = f"asks for more than a limit in Slurm lets one job have ({limit.reason})"
                continue
            before = ahead.setdefault(_owner(job), [])
            stands = next((name for amounts, name in before if _no_less(asked, amounts)), None)
            if stands is None:
                before.append((asked, state.id))
            else:
                found[state.uid] = (
                    f"a limit of its user's in Slurm is reached ({limit.reason}), and job {stands} comes first"
                )
        return found

    def _note(self, jobs: Iterable[SlurmJob]) -> None:
        """Takes in what Slurm says in this reading; forgets what it has not said for a while."""
        told: dict[_Owner, list[_Limit]] = {}
        for job in jobs:
            if job.reason.startswith(_LIMITS):
                _add(told.setdefault(_owner(job), []), _Limit(_asked(job), job.reason, _READINGS))
        for owner, limits in self._limits.items():
            for limit in limits:
                limit.readings -= 1
                if limit.readings > 0:
                    _add(told.setdefault(owner, []), limit)
        self._limits = told


def _add(limits: list[_Limit], limit: _Limit) -> None:
    """Adds a limit that none of these says already."""
    if not any(_no_less(limit.asked, one.asked) for one in limits):
        limits.append(limit)


def _owner(job: SlurmJob) -> _Owner:
    return job.account, job.user, job.qos


def _asked(job: SlurmJob) -> _Amounts:
    return {**job.resources, _TIME: math.inf if job.time_limit is None else job.time_limit}


def _no_less(asked: _Amounts, amounts: _Amounts) -> bool:
    return all(asked.get(resource, 0) >= amount for resource, amount in amounts.items())
