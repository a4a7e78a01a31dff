"""A tenant's share of a pool: what it may have, and what it and all below it have."""

from collections.abc import Collection, Iterable, Mapping

from fairlead_contracts.messages.decisions import TenantShare
from fairlead_policy.exact.ranking import ratio
from fairlead_policy.rules.pool_rules import LARGEST, NOTHING, PoolRules
from fairlead_policy.tenants.tenant_queue import TenantQueue


def tenant_share_of(
    tenant: str,
    tenant_queues: Collection[TenantQueue],
    rules: PoolRules,
    past: Mapping[str, int] | None = None,
) -> TenantShare:
    """The share of the tenant and all below it: what it may have, and has.

    Args:
        tenant: a leaf, or a tenant with others below it.
        tenant_queues: the queues whose use counts as the tenant's.
        past: use of its own that is no tenant queue's.
    """
    use = _sum(tenant_queue.use for tenant_queue in tenant_queues)
    remembered = _sum([*(tenant_queue.past for tenant_queue in tenant_queues), past or {}])
    counted = _sum([use, remembered])
    share, dominant = NOTHING, ""
    for name, unit in zip(rules.resources, rules.unit_shares, strict=True):
        amount = counted.get(name, 0)
        if amount and (one := amount * unit) > share:
            share, dominant = one, name
    weight, entitled = rules.weight_of(tenant), rules.entitlement_of(tenant)
    return TenantShare(
        tenant=tenant,
        weight=ratio(weight.numerator, weight.denominator),
        entitled=ratio(entitled.numerator, entitled.denominator),
        use=use,
        share=ratio(share.numerator, share.denominator),
        dominant=dominant,
        waiting=sum(map(len, tenant_queues)),
        running=sum(tenant_queue.running for tenant_queue in tenant_queues),
        parent=rules.parents.get(tenant),
        past=remembered,
    )


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():  # a Counter's update takes three times as long
            total[name] = total.get(name, 0) + amount
    return {name: min(amount, LARGEST) for name, amount in sorted(total.items())}
