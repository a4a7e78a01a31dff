"""The jobs of a large JSON snapshot, read at once where nothing is wrong with them.

Jobs are alike: they are of few tenants, classes and queues, and ask for few different amounts. What the checks found
right once is right again, so of a job only its names and numbers are looked at, and that of many jobs together, field by
field: Python needs far less for a hundred values of a kind than for a hundred jobs. Any other job is left to the checks,
which say what is wrong with its place: the outcome is the same, only slower.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, TypeGuard

import msgspec
from msgspec.structs import replace

from fairlead_contracts.base.duplicate_keys import gives_twice
from fairlead_contracts.base.instants import SECOND, Micros, from_datetime, from_seconds
from fairlead_contracts.snapshot.interned import Demand, Gang, Kin, Kins, Quantity, all_there
from fairlead_contracts.snapshot.loaded import Columns, LoadedJob, Seconds, says_nothing
from fairlead_contracts.snapshot.names import TakenNames
from fairlead_contracts.snapshot.types import SnapshotJob, WrittenJob

__all__ = ["Checked", "GivenTwiceError", "Limits", "LoadedJob", "QuickJobs", "UnreadJobs"]


class UnreadJobs:
    """The jobs of a JSON text, and what proves that none of them gives a key twice (see `base.duplicate_keys`).

    Attributes:
        texts: of each job.
        keys: so many colons are known to stand behind different keys; once all are read.
        in_strings: at least so many more stand in strings, where none is written as an escape.
    """

    def __init__(self, texts: Sequence[msgspec.Raw]) -> None:
        self.texts = texts
        self.keys = 0
        self.in_strings = 0

    def give_twice(self, colons: int) -> bool:
        """Whether one of them gives a key twice, or there is more than they are; once they are read.

        Args:
            colons: how many there are in the text that the jobs come from, outside of all else that is known there.
        """
        if colons == self.keys:
            return False
        if colons == self.keys + self.in_strings and not any(b"\\" in bytes(text) for text in self.texts):
            return False
        # Each is looked at: some 5 µs a job.
        twice = any(gives_twice(bytes(text)) for text in self.texts)
        return twice or colons != sum(bytes(text).count(b":") for text in self.texts)


class GivenTwiceError(Exception):
    """A job has a key twice. Which one is told by whoever reads the text again, slowly."""


class Checked(NamedTuple):
    """A job that was looked at closely."""

    job: SnapshotJob
    right: bool
    """Whether nothing was found wrong with it."""


class Limits(NamedTuple):
    """What single values must lie within."""

    first: int
    """Second that can be named."""
    last: int
    name: int
    """Characters."""
    level: int


class _Few(NamedTuple):
    """What few jobs say, a value a job; checked, and times in microseconds."""

    queue_time: Sequence[Micros]
    priority_override: Sequence[float | None]
    level: Sequence[int]
    runtime_limit: Sequence[Micros | None]
    gang: Sequence[Gang]


_TOGETHER = (128, 8, 1)
"""Jobs that are taken together. Where one of them is odd they go in smaller parts, until it is alone."""
_loaded = msgspec.json.Decoder(LoadedJob)
_written = msgspec.json.Decoder(WrittenJob)


class QuickJobs:
    """Takes jobs that are right beyond doubt.

    Args:
        ids: of jobs so far, running ones among them; it grows meanwhile.
        uids: of waiting jobs so far; it grows meanwhile, and is whole whenever `check` is called.
        check: looks at a job closely, tells what is wrong, and adds its names to those above.
        resources: by pool.
        quantity: reads an amount.
        limits: of single values.
    """

    def __init__(
        self,
        *,
        ids: set[str],
        uids: set[str],
        check: Callable[[int, WrittenJob], Checked],
        resources: Mapping[str, Collection[str]],
        quantity: Quantity,
        limits: Limits,
    ) -> None:
        self._names = TakenNames(ids, uids, limits.name)
        self._check = check
        self._kins = Kins(resources, quantity)
        self._limits = limits

    def read(self, found: UnreadJobs) -> list[SnapshotJob]:
        """Each job.

        Raises:
            MsgspecError: it has keys or kinds of values that no job has.
            GivenTwiceError: it has a key twice.
        """
        jobs: list[SnapshotJob] = []
        self._read(found.texts, found, _TOGETHER, jobs)
        return jobs

    def _read(
        self, texts: Sequence[msgspec.Raw], found: UnreadJobs, sizes: Sequence[int], jobs: list[SnapshotJob]
    ) -> None:
        """Adds the jobs of these texts, the next ones, to those before them."""
        for start in range(0, len(texts), sizes[0]):
            part = texts[start : start + sizes[0]]
            taken = self._take(part, found)
            if taken is not None:
                jobs += taken
            elif len(sizes) > 1:
                self._read_parts(part, found, sizes[1:], jobs)
            else:
                jobs.append(self._closely(len(jobs), part[0], found))

    def _read_parts(
        self, texts: Sequence[msgspec.Raw], found: UnreadJobs, sizes: Sequence[int], jobs: list[SnapshotJob]
    ) -> None:
        """Adds jobs among which some are odd: what most odd ones say is looked for, to spare the others the search."""
        runs = [(odd, list(run)) for odd, run in groupby(texts, _is_annotated)]
        if len(runs) == 1 and not runs[0][0]:
            self._read(texts, found, sizes, jobs)
            return
        for odd, run in runs:
            if odd:
                jobs += [self._closely(at, raw, found) for at, raw in enumerate(run, len(jobs))]
            else:
                self._read(run, found, (len(run), *sizes), jobs)

    def _closely(self, at: int, raw: msgspec.Raw, found: UnreadJobs) -> SnapshotJob:
        text = bytes(raw)
        if gives_twice(text):
            raise GivenTwiceError
        found.keys += text.count(b":")
        self._names.settle()
        job, right = self._check(at, _written.decode(text))
        self._names.entered(job.id, job.uid)
        if right:
            with suppress(msgspec.ValidationError):
                self._kins.learn(_loaded.decode(text), job)
        return job

    def _take(self, texts: Sequence[msgspec.Raw], found: UnreadJobs) -> list[SnapshotJob] | None:
        """The jobs; None, and nothing done, where somebody has to look closer at one of them."""
        try:
            said = Columns.of(map(_loaded.decode, texts))
        except msgspec.ValidationError:
            return None
        kins = self._kins.all_of(said.stated()) if says_nothing(said.annotations) else None
        if kins is None:
            return None
        demands = [kin.demands[text] for kin, text in zip(kins, map(bytes, said.demand), strict=True)]
        submitted = self._instants(said.submitted)
        plain = said.is_plain()
        few = None if plain else self._few(said)
        if not all_there(demands) or submitted is None or (few is None and not plain):
            return None
        if not self._names.enter(said.id, None if says_nothing(said.uid) else said.uids()):
            return None
        _count(found, said, kins, demands)
        if few is None:
            return _plain_jobs(said.id, kins, demands, submitted)
        found.keys += _further_keys(said) + sum(gang.keys for gang in few.gang)
        return _jobs(said, kins, demands, submitted, few)

    def _few(self, said: Columns) -> _Few | None:
        """None where somebody has to look closer at one of the jobs."""
        limits, overrides = self._limits, self._kins.overrides
        queue_times = self._instants(said.queue_times())
        gangs = [self._kins.gang(written) for written in said.gang]
        levels = [SnapshotJob.DEFAULT_LEVEL if one is None else one for one in said.level]
        if queue_times is None or not all_there(gangs) or not overrides.issuperset(said.priority_override):
            return None
        if not all(abs(level) <= limits.level for level in levels):
            return None
        if not all(one is None or 0 <= one <= limits.last for one in said.runtime_limit):
            return None
        if any(front is None and gang.gang for front, gang in zip(said.frontend, gangs, strict=True)):
            return None  # what its pods ask for is compared with its demand
        lasting = [None if one is None else from_seconds(one) for one in said.runtime_limit]
        return _Few(queue_times, said.priority_override, levels, lasting, gangs)

    def _instants(self, found: Sequence[Seconds]) -> list[Micros] | None:
        """None where one of them is none that can be named."""
        limits = self._limits
        if _are_whole(found) and limits.first <= min(found) and max(found) <= limits.last:
            return [seconds * SECOND for seconds in found]
        instants = [instant for one in found if (instant := self._instant(one)) is not None]
        return instants if len(instants) == len(found) else None

    def _instant(self, found: Seconds) -> Micros | None:
        limits = self._limits
        if type(found) is int:
            return found * SECOND if limits.first <= found <= limits.last else None
        if isinstance(found, datetime):
            instant = from_datetime(found)
            return instant if limits.first <= instant // SECOND <= limits.last else None
        return from_seconds(found) if limits.first <= found < limits.last else None


def _is_annotated(text: msgspec.Raw) -> bool:
    """Whether it seems so: if it is not, a closer look does no harm."""
    return b'"annotations"' in bytes(text)


def _are_whole(times: Sequence[Seconds]) -> TypeGuard[Sequence[int]]:
    return set(map(type, times)) == {int}


def _plain_jobs(
    names: Sequence[str], kins: Sequence[Kin], demands: Sequence[Demand], submitted: Sequence[Micros]
) -> list[SnapshotJob]:
    """Jobs of which only this is to be said."""
    # A copy of another job, but for a few fields, costs half of a job that is made anew.
    return [
        replace(kin.model, id=name, uid=name, demand=demand.amounts, submitted=at, queue_time=at)
        for name, kin, demand, at in zip(names, kins, demands, submitted, strict=True)
    ]


def _jobs(
    said: Columns, kins: Sequence[Kin], demands: Sequence[Demand], submitted: Sequence[Micros], few: _Few
) -> list[SnapshotJob]:
    return [
        replace(
            kin.model,
            id=name,
            uid=uid,
            demand=demand.amounts,
            submitted=at,
            queue_time=queued,
            priority_override=override,
            level=level,
            runtime_limit=limit,
            pods=gang.pods,
            gang=gang.gang,
        )
        for name, uid, kin, demand, at, queued, override, level, limit, gang in zip(
            said.id, said.uids(), kins, demands, submitted, *few, strict=True
        )
    ]


def _count(found: UnreadJobs, said: Columns, kins: Sequence[Kin], demands: Sequence[Demand]) -> None:
    """The keys that all jobs have, and the colons in strings."""
    found.keys += sum([kin.keys for kin in kins]) + sum([demand.keys for demand in demands])
    found.in_strings += sum([kin.in_strings for kin in kins]) + said.colons_in_strings()


def _further_keys(said: Columns) -> int:
    """How many keys there are of those that not every job has, names and gangs left out."""
    columns = said.uid, said.queue_time, said.level, said.runtime_limit, said.priority_override
    return sum(len(column) - column.count(None) for column in columns)
