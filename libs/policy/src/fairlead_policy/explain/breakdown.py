"""The parts of a waiting job's start tag: what runs, past use, and the tenant's own jobs before it."""

from collections import Counter
from collections.abc import Collection, Mapping

from fairlead_contracts.messages.explanations import Makeup
from fairlead_policy.exact.ranking import ratio
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue


def makeup_of(
    sequence: ServiceOrder,
    at: int,
    tenant: str,
    tenant_queues: Collection[TenantQueue],
    *,
    rules: PoolRules,
    past: Mapping[str, int],
) -> Makeup:
    """The parts of a job's start tag.

    Args:
        sequence: of its top-level tenant.
        at: the job's position in it.
        tenant: the job's own.
        tenant_queues: of that tenant and all below it.
        rules: of the pool.
        past: use of those with children that is no tenant queue's.
    """
    running: Counter[str] = Counter()
    remembered: Counter[str] = Counter(past)
    for tenant_queue in tenant_queues:
        running.update(tenant_queue.use)
        remembered.update(tenant_queue.past)
    before = _asked(sequence, at, rules)
    weight, entitled = rules.weight_of(sequence.top), rules.entitlement_of(sequence.top)
    parts = {
        name: (running[name] + remembered[name] + before[name]) * unit / entitled
        for name, unit in rules.unit_share_by_name.items()
        if entitled
    }
    return Makeup(
        tenant=sequence.top,
        weight=ratio(weight.numerator, weight.denominator),
        entitled=ratio(entitled.numerator, entitled.denominator),
        running=_held(running),
        own_running=next(
            (_held(tenant_queue.use) for tenant_queue in tenant_queues if tenant_queue.tenant == tenant), {}
        ),
        past=_held(remembered),
        before=_held(before),
        jobs=at,
        shares={
            name: ratio(part.numerator, part.denominator) for name, part in sorted(parts.items()) if part
        },
    )


def _asked(sequence: ServiceOrder, ahead: int, rules: PoolRules) -> Counter[str]:
    """The sum that the first jobs ask for, of each resource that counts."""
    # Sums of Python's integers: 64 bits may not hold them.
    sums = [sum(column.tolist()) for column in sequence.first_columns(ahead).demand.T]
    return Counter(dict(zip(rules.resources, sums, strict=True)))


def _held(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in sorted(amounts.items()) if amount}
