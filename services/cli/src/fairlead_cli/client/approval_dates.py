"""Dates of approvals: the policy says who granted a class to a job and why, the history of its bucket says when."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from fairlead_bus import Bucket, Bus, Stored, is_deletion
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.policyfile.document import Grant
from fairlead_contracts.policyfile.read import decode_document

type GrantedSince = Callable[[Collection[str]], datetime | None]
"""Finds since when the job of these names has its grant; None where it has none, or the history does not reach so far."""


async def grant_history(bus: Bus) -> GrantedSince:
    """The history of grants, read once for any number of jobs."""
    stored = await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY)
    revisions = [(to_datetime(one.at), _grants_at(one)) for one in reversed(stored)]

    def granted_since(names: Collection[str]) -> datetime | None:
        since, now = None, None
        for at, grants in revisions:
            found = [grant for grant in grants if grant.job in names]
            if now is None:
                now = found
            if not found or found != now:
                return since
            since = at
        return since if len(stored) < topology.KEPT_POLICIES else None

    return granted_since


def _grants_at(stored: Stored) -> Sequence[Grant]:
    if is_deletion(stored.headers):
        return ()
    try:
        return decode_document(stored.payload).grants
    except DocumentError:
        return ()
