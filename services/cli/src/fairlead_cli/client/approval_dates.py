"""Dates of approvals: the policy says who granted a class to a job and why, the history of its bucket says when."""

from collections.abc import Collection, Sequence
from datetime import datetime

from fairlead_bus import Bucket, Bus, Stored, is_deletion
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.policyfile.document import Grant
from fairlead_contracts.policyfile.read import decode_document


class GrantHistory:
    """The grants of each policy that is kept, the first one first.

    Args:
        stored: the policies, as the bucket keeps them.
    """

    def __init__(self, stored: Sequence[Stored]) -> None:
        self._revisions = [(to_datetime(one.at), _grants_at(one)) for one in stored]
        self._whole = len(stored) < topology.KEPT_POLICIES

    def since(self, names: Collection[str]) -> datetime | None:
        """The instant since when a job has its grant; None where it has none, or the history does not reach so far.

        Args:
            names: names of the job.
        """
        since, now = None, None
        for at, grants in reversed(self._revisions):
            found = [grant for grant in grants if grant.job in names]
            if now is None:
                now = found
            if not found or found != now:
                return since
            since = at
        return since if self._whole else None


async def grant_history(bus: Bus) -> GrantHistory:
    """The history of grants, read once for any number of jobs."""
    return GrantHistory(await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY))


def _grants_at(stored: Stored) -> Sequence[Grant]:
    if is_deletion(stored.headers):
        return ()
    try:
        return decode_document(stored.payload).grants
    except DocumentError:
        return ()
