"""Jobs as their clusters state them, one statement a job."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from fairlead_contracts.messages.state import JobState, Phase, task_uid

_QUEUED = (Phase.WAITING, Phase.HELD)


class JobChange(NamedTuple):
    """A job before and after a change; None where it wasn't there, or isn't any more."""

    before: JobState | None
    after: JobState | None

    @property
    def admitted(self) -> bool:
        """Whether the frontend admitted the job with this change. It may have waited unseen before."""
        return (
            self.after is not None
            and self.after.phase is Phase.RUNNING
            and (self.before is None or self.before.phase in _QUEUED)
        )


def jobs_of(stated: JobState) -> tuple[JobState, ...]:
    """The jobs that one statement speaks of.

    The tasks in the window of an array are jobs of their own; the others have no position yet. Who may start in several
    queues stands in the first of them.
    """
    if stated.phase in _QUEUED and stated.queues and stated.queue != stated.queues[0]:
        stated = msgspec.structs.replace(stated, queue=stated.queues[0])
    if stated.array is None:
        return (stated,)
    return tuple(
        msgspec.structs.replace(stated, id=f"{stated.id}_{task}", uid=task_uid(stated.uid, task), array=None)
        for task in dict.fromkeys(stated.array.window)
    )


class Carriers:
    """Jobs that say that they carry out another one."""

    def __init__(self) -> None:
        self._by_carried: dict[str, set[str]] = {}

    def __len__(self) -> int:
        """The number of jobs that are said to be carried out."""
        return len(self._by_carried)

    def of(self, uid: str | None) -> list[str]:
        """The uids of the jobs that carry out this one."""
        return sorted(self._by_carried.get(uid, ())) if uid is not None else []

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """Takes in that another statement of one job holds."""
        if before is not None and before.carries is not None:
            uids = self._by_carried[before.carries]
            uids.discard(before.uid)
            if not uids:
                del self._by_carried[before.carries]
        if after is not None and after.carries is not None:
            self._by_carried.setdefault(after.carries, set()).add(after.uid)


class StatedJobs:
    """The statement of each job that holds, by uid.

    A job keeps its uid when its account changes, and then stands under two subjects until the old one's tombstone
    comes. The newer statement holds, by its stamp (the leader's epoch, then the revision, which grows over all objects
    of a cluster); of two with the same stamp, the one under the larger subject. The other holds again once the newer is
    gone. So what holds depends on what is stated alone, and not on the order in which it was heard. The same goes for a
    task of an array, which its array and a statement of its own may name at once.
    """

    def __init__(self) -> None:
        self.carriers = Carriers()
        self._by_subject: dict[str, JobState] = {}
        """Statements by subject."""
        self._parts: dict[str, dict[str, JobState]] = {}
        """Jobs that a statement speaks of, by subject and uid, where they are not the one job as stated."""
        self._holding: dict[str, str] = {}
        """Subject whose statement holds, by uid."""
        self._older: dict[str, set[str]] = {}
        """Other subjects that state the job, by uid: rarely any."""

    def __len__(self) -> int:
        """The number of jobs."""
        return len(self._holding)

    def __iter__(self) -> Iterator[JobState]:
        """The statements that hold."""
        return (self._part(subject, uid) for uid, subject in self._holding.items())

    def get(self, uid: str) -> JobState | None:
        """The statement of this job that holds; None where there is no such job."""
        subject = self._holding.get(uid)
        return None if subject is None else self._part(subject, uid)

    def stated(self, subject: str) -> JobState | None:
        """The job stated under a subject, whether it holds or not."""
        return self._by_subject.get(subject)

    def replace(self, subject: str, job: JobState | None) -> dict[str, JobChange]:
        """Takes in what a subject states now, None for nothing; returns where another statement holds now, by uid."""
        before = self._uids(subject)
        after = () if job is None else jobs_of(job)
        held = {uid: self.get(uid) for uid in (*before, *(one.uid for one in after))}
        for uid in before:
            self._remove(subject, uid)
        self._by_subject.pop(subject, None)
        self._parts.pop(subject, None)
        if job is not None:
            self._by_subject[subject] = job
            if len(after) != 1 or after[0] is not job:
                self._parts[subject] = {one.uid: one for one in after}
        for one in after:
            self._add(subject, one.uid)
        changes = {uid: JobChange(was, now) for uid, was in held.items() if (now := self.get(uid)) != was}
        for change in changes.values():
            self.carriers.replace(change.before, change.after)
        return changes

    def _uids(self, subject: str) -> Collection[str]:
        """The jobs that the subject's statement speaks of."""
        parts = self._parts.get(subject)
        if parts is not None:
            return parts
        job = self._by_subject.get(subject)
        return () if job is None else (job.uid,)

    def _part(self, subject: str, uid: str) -> JobState:
        parts = self._parts.get(subject)
        return self._by_subject[subject] if parts is None else parts[uid]

    def _add(self, subject: str, uid: str) -> None:
        holding = self._holding.setdefault(uid, subject)
        if holding != subject:
            older, self._holding[uid] = sorted((holding, subject), key=self._rank)
            self._older.setdefault(uid, set()).add(older)

    def _remove(self, subject: str, uid: str) -> None:
        older = self._older.pop(uid, set()) - {subject}
        if self._holding[uid] == subject:
            if older:
                self._holding[uid] = max(older, key=self._rank)
                older.discard(self._holding[uid])
            else:
                del self._holding[uid]
        if older:
            self._older[uid] = older

    def _rank(self, subject: str) -> tuple[tuple[int, int], str]:
        return self._by_subject[subject].stamp, subject
