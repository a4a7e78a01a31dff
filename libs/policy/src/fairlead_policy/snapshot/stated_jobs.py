"""Jobs as their clusters state them, one statement a job."""

from collections.abc import Iterator, Mapping

from fairlead_contracts.messages.state import JobState


class StatedJobs:
    """The statement of each job that holds, by uid.

    A job keeps its uid when its account changes, and then stands under two subjects until the old one's tombstone
    comes. The newer statement holds, by its stamp (the leader's epoch, then the revision, which grows over all objects
    of a cluster); of two with the same stamp, the one under the larger subject. The other holds again once the newer is
    gone. So what holds depends on what is stated alone, and not on the order in which it was heard.
    """

    def __init__(self, stated: Mapping[str, JobState] | None = None) -> None:
        self._by_subject: dict[str, JobState] = {}
        self._holding: dict[str, str] = {}
        """By uid, the subject whose statement holds."""
        self._older: dict[str, set[str]] = {}
        """By uid, the other subjects that state the job: rarely any."""
        for subject, job in (stated or {}).items():
            self.replace(subject, job)

    def __len__(self) -> int:
        """How many jobs there are."""
        return len(self._holding)

    def __iter__(self) -> Iterator[JobState]:
        """The statements that hold."""
        return map(self._by_subject.__getitem__, self._holding.values())

    def get(self, uid: str) -> JobState | None:
        """The statement of this job that holds; None where there is no such job."""
        subject = self._holding.get(uid)
        return None if subject is None else self._by_subject[subject]

    def stated(self, subject: str) -> JobState | None:
        """What is stated under a subject, whether it holds or not."""
        return self._by_subject.get(subject)

    def replace(
        self, subject: str, job: JobState | None
    ) -> dict[str, tuple[JobState | None, JobState | None]]:
        """Take in what a subject states now; None where it states nothing any more.

        Returns:
            By uid, where another statement holds now: the one before and the one after.
        """
        before = self._by_subject.get(subject)
        held = {one.uid: self.get(one.uid) for one in (before, job) if one is not None}
        if before is not None:
            self._remove(subject, before.uid)
        if job is not None:
            self._add(subject, job)
        return {uid: (was, now) for uid, was in held.items() if (now := self.get(uid)) is not was}

    def _add(self, subject: str, job: JobState) -> None:
        self._by_subject[subject] = job
        holding = self._holding.setdefault(job.uid, subject)
        if holding != subject:
            older, self._holding[job.uid] = sorted((holding, subject), key=self._rank)
            self._older.setdefault(job.uid, set()).add(older)

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
        del self._by_subject[subject]

    def _rank(self, subject: str) -> tuple[tuple[int, int], str]:
        return self._by_subject[subject].stamp, subject
