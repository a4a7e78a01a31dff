"""Tenants that were refused as such, and who may have been meant: for those who may read the policy.

What is answered to a tenant names nobody else.
"""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fairlead_bus import Bucket, Bus, BusError
from fairlead_contracts import subjects, topology

if TYPE_CHECKING:
    from fairlead_contracts.policyfile.document import PolicyDocument

_MOST_NAMED = 5


async def who_is_meant(bus: Bus, strangers: Collection[str]) -> list[str]:
    """A sentence on each of them with tenants of the policy; none where there are none, or we may not read it."""
    if not strangers:
        return []
    from fairlead_contracts.policyfile.read import decode_document  # only who needs it waits for it

    try:
        found = await Bucket(bus, topology.POLICY).newest_readable(subjects.DOCUMENT_KEY, decode_document)
    except BusError:
        return []
    return [] if found.value is None else list(_in_words(found.value, sorted(strangers)))


def _in_words(policy: "PolicyDocument", strangers: Collection[str]) -> Iterator[str]:
    parents = {tenant.parent for tenant in policy.tenants}
    known = [tenant.name for tenant in policy.tenants if tenant.name not in parents]
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    for stranger in strangers if known else ():
        near = get_close_matches(stranger, known, 1)
        names = f"{', '.join(known[:_MOST_NAMED])}{more}"
        if near:
            yield f"tenant {stranger}: did you mean {near[0]}? The policy names {names}"
        else:
            yield f"tenant {stranger}: the policy names {names}"
