"""The names that people may call jobs by: found without a look at every job.

Anybody may ask about a name, a tenant some times a second. Of a hundred thousand jobs each look took a tenth of a second, in
which no decision was made.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from fairlead_contracts.messages.state import JobState

_SORTED_AGAIN = 0.02
"""The part of all names that new ones may make up before they are sorted in; they are looked through one by one."""
_FEW_NEW = 256
_MOST_SLASHES = 4
"""Slashes in a question that are tried as the end of a scope, from the first one: kinds and names may have slashes,
too."""


class NameIndex:
    """Uids of jobs by each of their names, without the scope."""

    def __init__(self) -> None:
        self._uids: dict[str, dict[str, None]] = {}
        self._sorted: list[str] = []
        """Names in order; some may be gone."""
        self._new: dict[str, None] = {}
        """Names that came since they were sorted."""

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """Takes in a job's names as they are now."""
        if before is not None and after is not None and _called(before) == _called(after):
            return  # as nearly always: it waits, runs and ends under the names that it came with
        come = frozenset[str]() if after is None else _names(after)
        gone = frozenset[str]() if before is None else _names(before)
        if before is not None:
            for name in gone - come:
                self._forget(name, before.uid)
        if after is not None:
            for name in come - gone:
                self._note(name, after.uid)

    def _note(self, name: str, uid: str) -> None:
        uids = self._uids.get(name)
        if uids is None:
            uids = self._uids[name] = {}
            self._new[name] = None
        uids[uid] = None

    def _forget(self, name: str, uid: str) -> None:
        uids = self._uids[name]
        del uids[uid]
        if not uids:
            del self._uids[name]
            self._new.pop(name, None)  # else all that ever came stood here until somebody asks

    def of(self, name: str) -> Iterable[str]:
        """The uids of the jobs of this name."""
        return self._uids.get(name, ())

    def beginning(self, start: str) -> Iterator[str]:
        """The uids of jobs with a name that begins so, sorted names first."""
        if len(self._new) > max(_FEW_NEW, _SORTED_AGAIN * len(self._sorted)):
            self._sort()
        for at in range(bisect_left(self._sorted, start), len(self._sorted)):
            if not self._sorted[at].startswith(start):
                break
            yield from self._uids.get(self._sorted[at], ())
        for name in self._new:
            if name.startswith(start):
                yield from self._uids.get(name, ())

    def _sort(self) -> None:
        """Merges what is new into what is sorted: two runs, which Python's sort joins in one pass."""
        known = [name for name in self._sorted if name in self._uids and name not in self._new]
        known += sorted(name for name in self._new if name in self._uids)
        known.sort()
        self._sorted, self._new = known, {}


def _names(job: JobState) -> frozenset[str]:
    """The names that a job is called by; its uid is known as such."""
    return frozenset(name for name in _called(job) if name is not None)


def _called(job: JobState) -> tuple[str | None, ...]:
    return job.name, job.id, job.submission


def readings_of(name: str) -> list[tuple[str | None, str]]:
    """The ways to read what somebody calls a job, as a scope and a name in it: whole, in any scope (None), and by its slashes."""
    readings: list[tuple[str | None, str]] = [(None, name)]
    slash = name.find("/")
    while slash >= 0 and len(readings) <= _MOST_SLASHES:
        readings.append((name[:slash], name[slash + 1 :]))
        slash = name.find("/", slash + 1)
    return readings
