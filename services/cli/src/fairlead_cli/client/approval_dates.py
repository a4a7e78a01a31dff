"""When a class was granted to a job: the policy says who and why, the history of its bucket says when."""

from collections.abc import Collection, Sequence
from datetime import datetime

from fairlead_bus import Bucket, Bus, Stored, is_deletion
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.policyfile.document import Grant
from fairlead_contracts.policyfile.read import decode_document


async def granted_since(bus: Bus, names: Collection[str]) -> datetime | None:
    """Since when a job has the grant that it has now; None where it has none, or the history does not reach so far.

    Args:
        bus: the connection.
        names: of the job.
    """
    stored = await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY)
    since, now = None, None
    for one in reversed(stored):
        found = [grant for grant in _grants_at(one) if grant.job in names]
        if now is None:
            now = found
        if not found or found != now:
            return since
        since = to_datetime(one.at)
    return since if len(stored) < topology.KEPT_POLICIES else None


def _grants_at(stored: Stored) -> Sequence[Grant]:
    if is_deletion(stored.headers):
        return ()
    try:
        return decode_document(stored.payload).grants
    except DocumentError:
        return ()
