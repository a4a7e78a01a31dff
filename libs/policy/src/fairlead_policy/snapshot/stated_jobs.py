"""Jobs as their clusters state them, one statement a job."""

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from fairlead_contracts.messages.state import JobState, Phase, task_uid
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_cards import PoolCards

type PoolOfQueue = Callable[[str, str], str | None]
"""Finds the policy's pool of a queue's jobs, by (cluster, queue); None where nobody states the queue."""


def jobs_of(stated: JobState) -> tuple[JobState, ...]:
    """The jobs that one statement speaks of.

    The tasks in the window of an array are jobs of their own; the others have no position yet. Who may start in several
    queues stands in the first of them.
    """
    if stated.phase in (Phase.WAITING, Phase.HELD) and stated.queues and stated.queue != stated.queues[0]:
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

    def __iter__(self) -> Iterator[str]:
        """The uids of all jobs that carry out another."""
        return (uid for uids in self._by_carried.values() for uid in uids)

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

    def count_elsewhere(
        self, job: JobState, jobs: "StatedJobs", pool_of: PoolOfQueue, rulebook: Rulebook
    ) -> bool:
        """Whether a job counts as the one that it carries out, and not by itself.

        Anybody may say so of a job of theirs. It is believed where that one runs in another cluster of the same pool,
        whose hardware is shared, for the same tenant; and of one carrier alone, the first by uid.

        Args:
            job: the job that says so, or not.
            jobs: all jobs.
            pool_of: the policy's pool that a queue of a cluster leads to; None where nobody states it.
            rulebook: the policy.
        """
        carried = None if job.carries is None else jobs.get(job.carries)
        if carried is None or carried.phase is not Phase.RUNNING:
            return False
        pool = pool_of(job.cluster, job.queue)
        return (
            pool is not None
            and pool == pool_of(carried.cluster, carried.queue)
            and carried.cluster != job.cluster
            and rulebook.shares_hardware(pool)
            and rulebook.tenant_of(job) == rulebook.tenant_of(carried)
            and self.of(job.carries)[0] == job.uid
        )


class StatedJobs:
    """The statement of each job that holds, by uid.

    A job keeps its uid when its account changes, and then stands under two subjects until the old one's tombstone
    comes. The newer statement holds, by its stamp (the leader's epoch, then the revision, which grows over all objects
    of a cluster); of two with the same stamp, the one under the larger subject. The other holds again once the newer is
    gone. So what holds depends on what is stated alone, and not on the order in which it was heard. The same goes for a
    task of an array, which its array and a statement of its own may name at once.
    """

    def __init__(self, stated: Mapping[str, JobState] | None = None) -> None:
        self.carriers = Carriers()
        self._by_subject: dict[str, JobState] = {}
        """Statements by subject."""
        self._parts: dict[str, dict[str, JobState]] = {}
        """Jobs that a statement speaks of, by subject and uid, where they are not the one job as stated."""
        self._holding: dict[str, str] = {}
        """Subject whose statement holds, by uid."""
        self._older: dict[str, set[str]] = {}
        """Other subjects that state the job, by uid: rarely any."""
        for subject, job in (stated or {}).items():
            self.replace(subject, job)

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

    def replace(
        self, subject: str, job: JobState | None
    ) -> dict[str, tuple[JobState | None, JobState | None]]:
        """Take in what a subject states now; None where it states nothing any more.

        Returns:
            By uid, where another statement holds now: the one before and the one after.
        """
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
        changes = {uid: (was, now) for uid, was in held.items() if (now := self.get(uid)) != was}
        for was, now in changes.values():
            self.carriers.replace(was, now)
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


class ChargedJob(msgspec.Struct, frozen=True):
    """A waiting or running job, with the pool and tenant that it counts for and the demand that it counts with."""

    job: JobState
    pool: str
    """Name of the policy's pool."""
    tenant: str
    weighs: dict[str, int]
    """Demand of the job, its cards as HAMi gives them where its pool's are known."""
    flavors: dict[str, str]
    """Flavor of each resource that it holds while it runs, by the same names."""


def charged_job(
    job: JobState,
    jobs: StatedJobs,
    pool_of: PoolOfQueue,
    rulebook: Rulebook,
    cards: Mapping[str, PoolCards],
) -> ChargedJob | None:
    """The job with what it counts for and with; None where it counts nowhere by itself.

    Args:
        job: a job whose statement holds.
        jobs: all jobs.
        pool_of: the pool that a queue of a cluster leads to; None where nobody states it.
        rulebook: the policy.
        cards: the cards by the policy's pool, where its clusters register any.
    """
    if job.phase not in (Phase.WAITING, Phase.RUNNING):
        return None
    pool = pool_of(job.cluster, job.queue)
    if pool is None or jobs.carriers.count_elsewhere(job, jobs, pool_of, rulebook):
        return None
    known = cards.get(pool)
    return ChargedJob(
        job=job,
        pool=pool,
        tenant=rulebook.tenant_of(job),
        weighs=job.demand if known is None else known.demand_of(job),
        flavors=job.flavors if known is None else known.flavors_of(job),
    )
