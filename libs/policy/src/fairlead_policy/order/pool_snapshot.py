"""One pool at one moment: what waits, what runs and what was used, by tenant. The one thing that an order is made from.

A snapshot never changes. What is done to it gives another one, which shares all tenants that are the same, and with them
what was worked out of these: so an event costs its own tenant, and what-if costs what an event does.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from fairlead_contracts.messages.decisions import TenantShare
from fairlead_policy.exact.scoring import ShareMeasure
from fairlead_policy.order.head_columns import HeadColumns
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.own_line import OwnLine
from fairlead_policy.tenants.sorted_jobs import OwnLines
from fairlead_policy.tenants.tenant_queue import HOLDS_NOTHING, TenantHeld, TenantQueue
from fairlead_policy.tenants.tenant_share import tenant_share_of
from fairlead_policy.tenants.tenant_tree import TenantTree


@dataclass(slots=True)
class TenantChange:
    """The change of one tenant from one snapshot to the next."""

    come: dict[str, WaitingJob] = field(default_factory=dict)
    """Jobs that wait from now on, by uid."""
    gone: dict[str, WaitingJob] = field(default_factory=dict)
    """Jobs that waited and wait no more, as they were, by uid."""
    running: int = 0
    """Change of the number of running jobs."""
    use: Counter[str] = field(default_factory=Counter)
    """Change of what running jobs take, base units by resource."""
    past: Mapping[str, int] | None = None
    """Past use from now on; None where it stays."""

    def take(self, demand: Mapping[str, int], step: int) -> None:
        """Adds a demand to the use, `step` times; a Counter's own methods for it take three times as long."""
        for resource, amount in demand.items():
            self.use[resource] += step * amount

    def held(self, before: TenantHeld) -> TenantHeld:
        """The tenant's holding after the change; past use is not looked at."""
        use = before.use
        if self.use:
            sums = ((name, use.get(name, 0) + self.use[name]) for name in {**use, **self.use})
            use = {name: amount for name, amount in sums if amount}
        return TenantHeld(before.running + self.running, use, before.past)


@dataclass(frozen=True, slots=True, eq=False)
class PoolSnapshot:
    """A pool at one moment, as a value: made by `of_nobody`, or of another one by a change."""

    measure: ShareMeasure
    trees: Mapping[str, TenantTree]
    """Trees of tenants by top-level tenant: what waits and runs there."""
    past: Mapping[str, Mapping[str, int]]
    """Past use by tenant as stated, base units by resource."""
    head_columns: HeadColumns = field(default_factory=HeadColumns)
    """Columns of queues' heads; shared by all snapshots that come of one another."""

    @classmethod
    def of_nobody(cls, rules: PoolRules) -> "PoolSnapshot":
        """The snapshot of a pool in which nothing waits or runs."""
        return cls(ShareMeasure(rules), {}, {})

    @property
    def rules(self) -> PoolRules:
        """The rules that the pool is scored by."""
        return self.measure.rules

    def tenant_queue(self, tenant: str) -> TenantQueue | None:
        """A tenant's running and waiting jobs; None where it has none."""
        tree = self.trees.get(self.rules.top_of(tenant))
        return None if tree is None else tree.tenant_queues.get(tenant)

    def tenant_queue_or_new(self, tenant: str) -> TenantQueue:
        """A tenant's queue; an empty one where it has none."""
        found = self.tenant_queue(tenant)
        if found is None:
            return TenantQueue(tenant, self.measure, OwnLine.of_none(self.measure), TenantHeld())
        return found

    def tenant_queues(self, tenants: Iterable[str] | None = None) -> Iterable[TenantQueue]:
        """The tenant queues of these tenants, or of all, that have any jobs."""
        if tenants is None:
            return chain.from_iterable(tree.tenant_queues.values() for tree in self.trees.values())
        found = map(self.tenant_queue, dict.fromkeys(tenants))
        return (queue for queue in found if queue is not None)

    def with_job(self, job: WaitingJob, *, instead_of: WaitingJob) -> "PoolSnapshot":
        """The snapshot with a waiting job in place of what it was known as."""
        without = self.with_changes({instead_of.tenant: TenantChange(gone={instead_of.uid: instead_of})})
        return without.with_changes({job.tenant: TenantChange(come={job.uid: job})})

    def without_use(self, tenant: str, use: Mapping[str, int]) -> "PoolSnapshot":
        """The snapshot without a tenant's running job that takes so much."""
        less = Counter({name: -amount for name, amount in use.items()})
        return self.with_changes({tenant: TenantChange(use=less, running=-1)})

    def with_changes(self, changes: Mapping[str, TenantChange]) -> "PoolSnapshot":
        """The snapshot with the changes of these tenants."""
        if not changes:
            return self
        queues = {tenant: self.tenant_queue_or_new(tenant) for tenant in changes}
        # Who is new is numbered with all others that are.
        new = [tenant for tenant, queue in queues.items() if queue.line.is_new]
        come = [job for tenant in new for job in changes[tenant].come.values()]
        lines = _lines_of(come, self.measure) if come else {}
        found = {}
        for tenant, queue in queues.items():
            change = changes[tenant]
            held = change.held(queue.held)
            if tenant in lines:
                found[tenant] = TenantQueue(tenant, self.measure, lines[tenant], held)
            else:
                found[tenant] = queue.changed(change.gone, change.come, held)
        past = {tenant: change.past for tenant, change in changes.items() if change.past is not None}
        return _replaced(self, found, past)

    def with_lines(self, lines: OwnLines) -> "PoolSnapshot":
        """The snapshot with all these jobs waiting; their tenants have no waiting job yet."""
        found = {}
        for tenant, line in OwnLine.of(lines, self.measure).items():
            known = self.tenant_queue(tenant) if self.trees else None
            held = HOLDS_NOTHING if known is None else known.held
            found[tenant] = TenantQueue(tenant, self.measure, line, held)
        return _replaced(self, found, {})

    def under(self, rules: PoolRules) -> "PoolSnapshot":
        """The snapshot with the same facts under other rules."""
        measure = ShareMeasure(rules, self.measure.queues)
        queues = list(self.tenant_queues())
        if _same_numbers(self.rules, rules):
            lines = {queue.tenant: queue.line.under(measure) for queue in queues}
        else:
            jobs = [job for queue in queues for job in queue.line.all.jobs]
            lines = _lines_of(jobs, measure)
        none = OwnLine.of_none(measure)
        found = {
            queue.tenant: TenantQueue(
                queue.tenant, measure, lines.get(queue.tenant, none), queue.held._replace(past={})
            )
            for queue in queues
        }
        return _replaced(PoolSnapshot(measure, {}, {}), found, self.past)

    def standings(self, tenants: Iterable[str] | None = None) -> list[TenantShare]:
        """The standings of these tenants and of those above them, by name.

        By default of each that is named, waits or runs.
        """
        if tenants is None:
            running = (queue.tenant for queue in self.tenant_queues())
            tenants = (*self.rules.entitlements, *running, *self.past)
        # A shard of ten thousand tenants asks at each event: mostly they stand in no tree, and changed nothing.
        trees, ways, names = self.trees, self.rules.ways, set(tenants)
        names.update(*(ways[name] for name in names & ways.keys()))
        tops = ((name, ways[name][-1] if name in ways else name) for name in sorted(names))
        return [
            trees[top].standing(name) if top in trees else tenant_share_of(name, [], self.rules)
            for name, top in tops
        ]

    def waiting(self, tenants: Iterable[str] | None = None) -> dict[JobQueue, int]:
        """The number of jobs of these tenants, or of all, that wait in each queue."""
        counts: Counter[JobQueue] = Counter()
        for queue in self.tenant_queues(tenants):
            counts.update(queue.waiting_by_queue)
        return dict(sorted(counts.items()))


def _lines_of(jobs: Sequence[WaitingJob], measure: ShareMeasure) -> dict[str, OwnLine]:
    """The line of each tenant that has some of these jobs."""
    return OwnLine.of(OwnLines.of(jobs, (job.queue for job in jobs), measure), measure)


def _replaced(
    before: PoolSnapshot, queues: Mapping[str, TenantQueue], past: Mapping[str, Mapping[str, int]]
) -> PoolSnapshot:
    """The snapshot with other queues of some tenants, and other past use of some."""
    rules, found = before.rules, {**queues}
    of_parents: dict[str, Mapping[str, int]] = {}
    for tenant, stated in past.items():
        # Use of what the pool has no more of must not put its tenant behind all others.
        counted = {name: amount for name, amount in stated.items() if not rules.lacks(name)}
        if tenant in rules.children:
            of_parents[tenant] = counted
        else:
            queue = found[tenant] if tenant in found else before.tenant_queue_or_new(tenant)
            found[tenant] = queue.changed({}, {}, queue.held._replace(past=counted))
    trees = dict(before.trees)
    for top, tree in _changed_trees(before, found, of_parents).items():
        trees[top] = tree
        if tree.idle:
            del trees[top]
    if not past:
        return PoolSnapshot(before.measure, trees, before.past, before.head_columns)
    kept = {tenant: stated for tenant, stated in {**before.past, **past}.items() if stated}
    return PoolSnapshot(before.measure, trees, kept, before.head_columns)


def _changed_trees(
    before: PoolSnapshot, queues: Mapping[str, TenantQueue], past: Mapping[str, Mapping[str, int]]
) -> dict[str, TenantTree]:
    """The trees in which tenants have other queues, or, with children, other past use."""
    rules, measure = before.rules, before.measure
    # Thousands of tenants at once: mostly each stands alone, and each look-up here is theirs all.
    strict, ways, children = rules.strict, rules.ways, rules.children
    by_top: dict[str, tuple[list[TenantQueue], dict[str, Mapping[str, int]]]] = {}
    trees: dict[str, TenantTree] = {}
    for tenant, queue in queues.items():
        if strict and tenant not in ways and tenant not in children:
            trees[tenant] = TenantTree(tenant, measure, {} if queue.idle else {tenant: queue}, {})
        else:
            by_top.setdefault(rules.top_of(tenant), ([], {}))[0].append(queue)
    for tenant, used in past.items():
        by_top.setdefault(rules.top_of(tenant), ([], {}))[1][tenant] = used
    for top, changed in by_top.items():
        known = before.trees.get(top)
        trees[top] = (TenantTree(top, measure, {}, {}) if known is None else known).changed(*changed)
    return trees


def _same_numbers(before: PoolRules, after: PoolRules) -> bool:
    """Whether what jobs were numbered by under some rules holds under others."""
    return (
        before.resources == after.resources
        and before.classes == after.classes
        and before.strict
        and after.strict
        and before.saturated == after.saturated
    )
