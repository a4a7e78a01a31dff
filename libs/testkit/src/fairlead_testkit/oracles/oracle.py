"""The order by brute force, in exact fractions: progressive filling, one pick after another, from the top of the tree down.

Written apart from `policy` and sharing nothing with it, so that the two can prove each other. Slow on purpose: no
cumulative sums, no sort of the whole, no floats. Each pick walks down from the top: at every node the child with the
smallest (class, infinite share, key, submitted, uid) of its own next job is chosen, shares counted anew each time. For
some hundred jobs of tenants side by side, and some dozen of a tree.

Sources: Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, with weights (section 4.3) and, for waiting jobs, linear
aging with a cap: key = tag + rate * max(submitted, now - cap), lower goes first, after the class; Bhattacharya et al.,
"Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from fairlead_contracts.base.instants import DAY, Micros
from fairlead_contracts.policyfile.document import PolicyDocument

ZERO, ONE = Fraction(0), Fraction(1)
GRID = 2**64
"""Rescaled use of a larger denominator is counted in parts of this."""


def _bounded(part: Fraction) -> Fraction:
    return part if part.denominator <= GRID else Fraction(round(part * GRID), GRID)


@dataclass(frozen=True, kw_only=True)
class OracleJob:
    """A waiting job, demands in base units."""

    uid: str
    tenant: str
    job_class: str
    submitted: Micros
    demand: Mapping[str, int]
    override: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class OracleRules:
    """Rules that a pool is ordered by."""

    capacity: Mapping[str, int]
    entitlements: Mapping[str, Fraction] = field(default_factory=dict)
    """Entitlements by tenant; a tenant that is not in it has none, and goes last."""
    parents: Mapping[str, str] = field(default_factory=dict)
    classes: Sequence[str] = ("urgent", "approved", "normal")
    mode: Literal["strict", "additive", "multiplicative"] = "strict"
    class_weights: Mapping[str, Fraction] = field(default_factory=dict)
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    rate: Fraction = ZERO
    """Entitlements per microsecond."""
    cap: Micros | None = None
    rescaled: bool = False
    lowest_of_live: bool = False
    saturated: frozenset[str] = frozenset()

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


type Score = tuple[int, bool, bool, Fraction, Micros, str]
"""(class, used-up resource asked for, infinite share, key, submitted, uid)."""


class Pick(NamedTuple):
    """A job as it was picked, by the tenant on its way up: what it was compared by among that tenant's siblings."""

    job: OracleJob
    scores: Mapping[str, Score]
    shares: Mapping[str, Fraction | None]
    """Share over the entitlement, just before the job; None where it is infinite."""


class _Head(NamedTuple):
    score: Score
    leaf: str


def picks_of(
    jobs: Iterable[OracleJob],
    rules: OracleRules,
    now: Micros,
    use: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Pick]:
    """The jobs in order, each with what it was compared by: always the next of those that stand lowest, from the top down.

    Args:
        now: the instant that aging is counted at.
        use: amounts that run already and past use, by tenant.
    """
    return _Filling(jobs, rules, now, use or {}).run()


@dataclass(frozen=True, kw_only=True)
class OraclePosition:
    """A job's position with its exact terms among the tenants at the top; both None where the tag is infinite."""

    uid: str
    tenant: str
    tag: Fraction | None
    key: Fraction | None


def fill(
    jobs: Iterable[OracleJob],
    rules: OracleRules,
    now: Micros,
    use: Mapping[str, Mapping[str, int]] | None = None,
) -> list[OraclePosition]:
    """The order of the waiting jobs of tenants without a tree; the arguments are those of `picks_of`."""
    positions = []
    for pick in picks_of(jobs, rules, now, use):
        tag, tenant = pick.shares[pick.job.tenant], pick.job.tenant
        key = None if tag is None else pick.scores[tenant][3]
        positions.append(OraclePosition(uid=pick.job.uid, tenant=tenant, tag=tag, key=key))
    return positions


class _Filling:
    def __init__(
        self, jobs: Iterable[OracleJob], rules: OracleRules, now: Micros, use: Mapping[str, Mapping[str, int]]
    ) -> None:
        self.rules, self.now = rules, now
        self.held = {tenant: dict(amounts) for tenant, amounts in use.items()}
        self.waiting: dict[str, list[OracleJob]] = {}
        for job in jobs:
            self.waiting.setdefault(job.tenant, []).append(job)
        for queue in self.waiting.values():
            queue.sort(key=self._own_order)
        known = {*self.waiting, *self.held, *rules.parents, *rules.parents.values()}
        self.tops = sorted(tenant for tenant in known if tenant not in rules.parents)

    def run(self) -> list[Pick]:
        order = []
        while any(self.waiting.values()):
            heads = [head for top in self.tops if (head := self._head(top)) is not None]
            leaf = min(heads).leaf
            order.append(self._pick(leaf))
            job = self.waiting[leaf].pop(0)
            held = self.held.setdefault(leaf, {})
            if any(amount > self.rules.capacity.get(name, 0) for name, amount in job.demand.items()):
                continue  # never starts: those behind it must not wait as if it had
            for resource, amount in job.demand.items():
                held[resource] = held.get(resource, 0) + amount
        return order

    def _pick(self, leaf: str) -> Pick:
        way = [leaf]
        while way[-1] in self.rules.parents:
            way.append(self.rules.parents[way[-1]])
        heads = {node: head for node in way if (head := self._head(node)) is not None}
        scores = {node: head.score for node, head in heads.items()}
        return Pick(self.waiting[leaf][0], scores, {node: self._share(node) for node in way})

    def _own_order(self, job: OracleJob) -> tuple[object, ...]:
        weight, blocked = self._class_weight(job), self._blocked(job)
        if self.rules.mode == "additive":
            return blocked, weight + self.rules.rate * job.submitted, job.submitted, job.uid
        if self.rules.mode == "multiplicative":
            return blocked, -weight, job.submitted, job.uid
        return self._rank(job), blocked, job.submitted, job.uid

    def _head(self, node: str) -> _Head | None:
        """The node's next job, scored as its siblings see it."""
        leaf = self._next_leaf(node)
        if leaf is None:
            return None
        job = self.waiting[leaf][0]
        share = self._share(node)
        rank = self._rank(job) if self.rules.mode == "strict" else 0
        since = job.submitted if self.rules.cap is None else max(job.submitted, self.now - self.rules.cap)
        key = self._worth(share or ZERO, job) + self.rules.rate * since
        return _Head((rank, self._blocked(job), share is None, key, job.submitted, job.uid), leaf)

    def _next_leaf(self, node: str) -> str | None:
        if self.waiting.get(node):
            return node
        heads = [head for child in self._children(node) if (head := self._head(child)) is not None]
        return min(heads).leaf if heads else None

    def _children(self, node: str) -> list[str]:
        return [child for child, parent in self.rules.parents.items() if parent == node]

    def _below(self, node: str) -> list[str]:
        return [node, *(leaf for child in self._children(node) for leaf in self._below(child))]

    # Shares -------------------------------------------------------------------------------------------------------

    def _share(self, node: str) -> Fraction | None:
        """The dominant share over the entitlement; None where it is infinite."""
        vector, entitled = self._vector(node), self.rules.entitlements.get(node, ZERO)
        if vector is None or entitled == 0:
            return None
        return max(vector.values(), default=ZERO) / entitled

    def _vector(self, node: str) -> dict[str, Fraction] | None:
        """Part of each resource, of 1, that the node counts to hold; None where it holds what the pool lacks."""
        total: dict[str, int] = {}
        for tenant in self._below(node):
            for resource, amount in self.held.get(tenant, {}).items():
                total[resource] = total.get(resource, 0) + amount
        vector = self._parts(total)
        if vector is None or not self.rules.rescaled or not self._children(node):
            return vector
        return self._rescaled(node)

    def _parts(self, total: Mapping[str, int]) -> dict[str, Fraction] | None:
        vector: dict[str, Fraction] = {}
        for resource, amount in total.items():
            value = self.rules.resource_weights.get(resource, ONE)
            if value == 0 or amount == 0:
                continue
            capacity = self.rules.capacity.get(resource, 0)
            if capacity <= 0:
                return None
            vector[resource] = value * amount / capacity
        return vector

    def _rescaled(self, node: str) -> dict[str, Fraction]:
        """Live children brought to the lowest share among them; others as they are, but for saturated resources."""
        total: dict[str, Fraction] = {}
        own = self._parts(self.held.get(node, {})) or {}
        scaled = []
        parts = [own]
        for child in self._children(node):
            vector, share = self._vector(child) or {}, self._share(child)
            remaining = [job for leaf in self._below(child) for job in self.waiting.get(leaf, ())]
            if any(not self._blocked(job) for job in remaining):
                if share is None:
                    parts.append(vector)
                else:
                    scaled.append((vector, share))
            else:
                parts.append({r: part for r, part in vector.items() if r not in self.rules.saturated})
        shares = [share for _, share in scaled if share > 0 or self.rules.lowest_of_live]
        lowest = min(shares, default=ZERO)
        parts += [
            {r: part * lowest / share for r, part in vector.items()} for vector, share in scaled if share
        ]
        for part in parts:
            for resource, amount in part.items():
                total[resource] = total.get(resource, ZERO) + amount
        return {resource: _bounded(amount) for resource, amount in total.items()}

    # Classes ------------------------------------------------------------------------------------------------------

    def _rank(self, job: OracleJob) -> int:
        """The position of the job's class; an unknown class stands behind all."""
        classes = list(self.rules.classes)
        return classes.index(job.job_class) if job.job_class in classes else len(classes)

    def _class_weight(self, job: OracleJob) -> Fraction:
        return self.rules.class_weights.get(job.job_class, ONE) if job.override is None else job.override

    def _worth(self, share: Fraction, job: OracleJob) -> Fraction:
        if self.rules.mode == "additive":
            return share + self._class_weight(job)
        return share / self._class_weight(job) if self.rules.mode == "multiplicative" else share

    def _blocked(self, job: OracleJob) -> bool:
        return any(amount > 0 and resource in self.rules.saturated for resource, amount in job.demand.items())
