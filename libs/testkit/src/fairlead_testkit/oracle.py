"""The order by brute force, in exact fractions: progressive filling, one head after another.

Written apart from `policy` and sharing nothing with it, so that the two can prove each other. Slow on purpose: no
cumulative sums, no sort of the whole, no floats. For pools of some hundred jobs.

Source: Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, with weights (section 4.3) and, for waiting jobs, linear
aging with a cap: key = tag + rate * max(submitted, now - cap), lower goes first, after the class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from fairlead_contracts.base.instants import DAY, Micros
from fairlead_contracts.policyfile.document import PolicyDocument

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, kw_only=True)
class OracleJob:
    """One waiting job, demands in base units."""

    uid: str
    tenant: str
    job_class: str
    submitted: Micros
    demand: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class OracleRules:
    """What a pool is ordered by."""

    capacity: Mapping[str, int]
    entitlements: Mapping[str, Fraction] = field(default_factory=dict)
    """By tenant; a tenant that is not in it has none, and goes last."""
    classes: Sequence[str] = ("urgent", "approved", "normal")
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    rate: Fraction = ZERO
    """Entitlements per microsecond."""
    cap: Micros | None = None

    @staticmethod
    def of(document: PolicyDocument, capacity: Mapping[str, int], pool: str = "") -> "OracleRules":
        """The document's rules for a pool of this capacity. A decimal in it means what it says: 0.1 is a tenth."""
        days = document.aging.cap_days
        return OracleRules(
            capacity=capacity,
            entitlements={one.name: entitlement(document, one.name, pool) for one in document.tenants},
            classes=tuple(document.classes),
            resource_weights={name: Fraction(repr(v)) for name, v in document.resource_weights.items()},
            rate=Fraction(repr(document.aging.entitlement_per_day)) / DAY,
            cap=None if days is None else round(Fraction(repr(days)) * DAY),
        )

    def share(self, tenant: str, use: Mapping[str, int]) -> Fraction | None:
        """The tenant's dominant share with this use, over its entitlement; None where it is infinite.

        A resource that the pool has none of makes any use of it infinite; so does an entitlement of 0, even without use.
        """
        entitled = self.entitlements.get(tenant, ZERO)
        largest = ZERO
        for resource, amount in use.items():
            value = self.resource_weights.get(resource, ONE)
            if value == 0 or amount == 0:
                continue
            capacity = self.capacity.get(resource, 0)
            if capacity <= 0:
                return None
            largest = max(largest, value * amount / capacity)
        return None if entitled == 0 else largest / entitled


def entitlement(document: PolicyDocument, tenant: str, pool: str = "") -> Fraction:
    """The part of a pool that a tenant is entitled to, by the definition: weight over the siblings' sum, times the parent's."""
    known = {one.name: one for one in document.tenants}
    stated = document.unlisted_weight if tenant not in known else known[tenant].weight
    weight = Fraction(repr(stated or 0))
    if tenant in known and not _counts(document, tenant, pool):
        return ZERO
    if document.divide_by == "weight" or stated is None:
        return weight
    parent = known[tenant].parent if tenant in known else None
    among = [
        Fraction(repr(one.weight))
        for one in document.tenants
        if one.parent == parent and _counts(document, one.name, pool)
    ]
    if parent is None and document.unlisted_weight is not None:
        among += [Fraction(repr(document.unlisted_weight))] * document.expected_unlisted
    part = weight / sum(among) if any(among) else ONE / len(among)
    above = ZERO if parent is None else entitlement(document, parent, pool)
    return part * (above or ONE)


def _counts(document: PolicyDocument, tenant: str | None, pool: str) -> bool:
    """Whether neither the tenant nor one above it is limited to another pool."""
    known = {one.name: one for one in document.tenants}
    while tenant is not None:
        if known[tenant].pool is not None:
            return known[tenant].pool == pool
        tenant = known[tenant].parent
    return True


@dataclass(frozen=True, kw_only=True)
class OraclePlace:
    """A job's place with its exact terms; both None where the tag is infinite."""

    uid: str
    tenant: str
    tag: Fraction | None
    key: Fraction | None


def fill(
    jobs: Iterable[OracleJob],
    rules: OracleRules,
    now: Micros,
    use: Mapping[str, Mapping[str, int]] | None = None,
) -> list[OraclePlace]:
    """The order of the waiting jobs: always serve the tenant whose head has the smallest tuple.

    Args:
        jobs: the waiting jobs of one pool, in any order.
        rules: of the pool.
        now: the instant that aging is counted at.
        use: what runs already, by tenant.
    """
    queues: dict[str, list[OracleJob]] = {}
    for job in jobs:
        queues.setdefault(job.tenant, []).append(job)
    for queue in queues.values():
        queue.sort(key=lambda job: (_rank(rules, job), job.submitted, job.uid))
    held = {tenant: dict((use or {}).get(tenant, {})) for tenant in queues}
    order: list[OraclePlace] = []
    while any(queues.values()):
        heads = [
            (_score(queue[0], rules, held[tenant], now), tenant) for tenant, queue in queues.items() if queue
        ]
        _, tenant = min(heads)
        job = queues[tenant].pop(0)
        tag = rules.share(tenant, held[tenant])
        key = None if tag is None else tag + _aging(job, rules, now)
        order.append(OraclePlace(uid=job.uid, tenant=tenant, tag=tag, key=key))
        for resource, amount in job.demand.items():
            held[tenant][resource] = held[tenant].get(resource, 0) + amount
    return order


def _score(
    job: OracleJob, rules: OracleRules, held: Mapping[str, int], now: Micros
) -> tuple[int, bool, Fraction, Micros, str]:
    tag = rules.share(job.tenant, held)
    key = ZERO if tag is None else tag + _aging(job, rules, now)
    return (_rank(rules, job), tag is None, key, job.submitted, job.uid)


def _aging(job: OracleJob, rules: OracleRules, now: Micros) -> Fraction:
    since = job.submitted if rules.cap is None else max(job.submitted, now - rules.cap)
    return rules.rate * since


def _rank(rules: OracleRules, job: OracleJob) -> int:
    """The position of the job's class; an unknown class stands behind all."""
    return list(rules.classes).index(job.job_class) if job.job_class in rules.classes else len(rules.classes)
