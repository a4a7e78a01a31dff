"""The ids of a snapshot's jobs: each is one job's alone."""

from collections.abc import Sequence

from fairlead_contracts.snapshot.types import WrittenJob
from fairlead_contracts.snapshot.values import SnapshotValues, are_names, is_name


class JobIds:
    """The ids and uids that were met. An id counts as the uid of a waiting job that states none.

    Args:
        values: collects problems.
    """

    def __init__(self, values: SnapshotValues) -> None:
        self._values = values
        self._ids: set[str] = set()
        """Ids of running jobs, and of jobs that state a uid, too."""
        self._uids: set[str] = set()
        """Uids as stated."""
        self._only_ids: set[str] = set()
        """Ids of jobs whose ids are their uids, too."""

    def take_running(self, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        """Adds the id of a running job, and tells what is wrong with it."""
        self._check_id("running", at, id)
        self._ids.add(id)

    def take_all(self, jobs: Sequence[WrittenJob]) -> bool:
        """Adds the ids of some waiting jobs, if all of them are right."""
        ids = {job.id for job in jobs}
        stated = {job.uid for job in jobs if job.uid is not None}
        uids = {job.id if job.uid is None else job.uid for job in jobs} if stated else ids
        named = ids | stated if stated else ids
        are_new = (
            len(ids) == len(uids) == len(jobs)
            and ids.isdisjoint(self._ids)
            and uids.isdisjoint(self._uids)
            and named.isdisjoint(self._only_ids)
            and are_names(named)
        )
        if are_new:
            only = uids - stated
            self._only_ids |= only
            self._ids |= ids - only
            self._uids |= stated
        return are_new

    def take(self, at: int, job: WrittenJob) -> None:
        """Adds the ids of one waiting job, and tells what is wrong with them."""
        known = len(self._values.problems)
        uid = job.id if job.uid is None else job.uid
        self._check_id("jobs", at, job.id)
        if job.uid is not None:
            self._values.check_name(("jobs", at, "uid"), uid)
        is_known = uid in self._uids or (job.uid is not None and uid in self._only_ids)
        if is_known and len(self._values.problems) == known:
            self._values.fail(("jobs", at, "uid"), uid, "is another job's, too")
        if job.uid is None:
            self._only_ids.add(uid)
        else:
            self._ids.add(job.id)
            self._uids.add(uid)

    def _check_id(self, key: str, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        if not is_name(id):
            self._values.check_name((key, at, "id"), id)
        if id in self._only_ids or id in self._ids:
            self._values.fail((key, at, "id"), id, "is another job's, too")
