"""What if: where a job would stand in another class, or after ends, tried in the order itself and taken back.

An order does not depend on how it came to be, so what is tried and taken back leaves no trace.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_contracts.messages.explanations import Makeup, Promoted
from fairlead_policy.explain.breakdown import makeup_of
from fairlead_policy.explain.counterfactuals import ends_to_pass, stands_alone
from fairlead_policy.explain.least_end import Ends, least_end
from fairlead_policy.explain.surroundings import count_before
from fairlead_policy.order.merging import sort_key
from fairlead_policy.order.pool_order import PoolOrder

_TRIED = 2000
"""Jobs of a tree at most in which ends are found by trying: each try merges it anew."""


def breakdown_of(order: PoolOrder, uid: str, now: Micros) -> Makeup | None:
    """What the start tag of a waiting job is made of; None where it does not wait, or with H-DRF."""
    job, rules, found = order.job(uid), order.rules, order.found(uid, now)
    if job is None or found is None or rules.rescaled:
        return None
    tree = order.trees[rules.top_of(job.tenant)]
    past = tree.past_below(tree.top)
    return makeup_of(*found, job.tenant, list(tree.tenant_queues.values()), rules=rules, past=past)


def if_promoted(order: PoolOrder, uid: str, urgency: str, now: Micros) -> Promoted | None:
    """Where a waiting job would stand in another class; None where it does not wait."""
    job = order.job(uid)
    if job is None:
        return None
    order.wait(msgspec.structs.replace(job, urgency=urgency))
    try:
        return _standing(order, uid, job.tenant, now)
    finally:
        order.wait(job)


def if_ended(order: PoolOrder, place: Place, ends: Ends, now: Micros) -> Promoted | None:
    """Where a waiting job would stand if so much of its own tenant's running jobs had ended; None where it does not wait."""
    with _ended(order, place.tenant, ends):
        return _standing(order, place.uid, place.tenant, now)


def _standing(order: PoolOrder, uid: str, tenant: str, now: Micros) -> Promoted | None:
    """The job's place, and how many stand before it below its own top-level tenant."""
    place = order.place(uid, now)
    if place is None:
        return None
    kin = list(order.trees[order.rules.top_of(tenant)].tenant_queues)
    return Promoted(place=place, own=sum(count_before(order, place, now, kin).values()))


def least_ends_to_pass(order: PoolOrder, uid: str, others: Iterable[Place], now: Micros) -> list[Ends | None]:
    """For each other job, the least of its own tenant's running jobs that has to end before this one passes it.

    Base units by resource. None where no end does it, or where the tree is too large to try: exact where the
    tenant stands alone, elsewhere in whole units of what it holds most of. The others are of other top-level
    tenants.
    """
    place, breakdown = order.place(uid, now), breakdown_of(order, uid, now)
    if place is None or breakdown is None:
        return [None for _ in others]
    if stands_alone(place, order.rules):
        return [ends_to_pass(breakdown, place, other, order.rules, now) for other in others]
    return [_least_end(order, place, other, now) for other in others]


def _least_end(order: PoolOrder, place: Place, other: Place, now: Micros) -> Ends | None:
    tenant_queue, bar = order.tenant_queues[place.tenant], sort_key(other, order.rules, now)
    tree = order.trees[order.rules.top_of(place.tenant)]
    if not tenant_queue.running or sum(map(len, tree.tenant_queues.values())) > _TRIED:
        return None

    def moves(ends: Ends) -> bool:
        with _ended(order, place.tenant, ends):
            found = order.place(place.uid, now)
        return found is not None and sort_key(found, order.rules, now) < bar

    return least_end(dict(tenant_queue.use), place.dominant, moves)


@contextmanager
def _ended(order: PoolOrder, tenant: str, ends: Ends) -> Iterator[None]:
    """The order as if so much of the tenant's had ended, and then as it was."""
    tenant_queue, tree = order.tenant_queues[tenant], order.trees[order.rules.top_of(tenant)]
    tenant_queue.end(ends)
    tree.changed(tenant)
    try:
        yield
    finally:
        tenant_queue.start(ends)
        tree.changed(tenant)
