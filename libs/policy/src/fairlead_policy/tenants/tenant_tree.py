"""A top-level tenant and all tenants below it: what runs and waits there, and in which sequence it is served.

Its sequence depends on its own jobs and the pool's capacity alone, so shards of whole trees need no word from each
other. A tree is a value: a change of a tenant gives another one, which shares the other tenants, and its sequence is
made when somebody looks, as deep as they look.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import TenantShare
from fairlead_policy.exact.flips import first_flip
from fairlead_policy.exact.ranking import Ints, TieBreak
from fairlead_policy.exact.scoring import ShareMeasure, lacking_of
from fairlead_policy.rules.jobs import JobQueue, PositionedJob
from fairlead_policy.rules.pool_rules import PoolRules, counted_amount
from fairlead_policy.tenants.hdrf_filling import CachedTree, HdrfFilling, LiveTree
from fairlead_policy.tenants.hdrf_sequences import served_prefixes, whole_sequences
from fairlead_policy.tenants.merging import JobTable, ScoredNode, SequencePrefix, leaf_prefix, merge
from fairlead_policy.tenants.own_line import first_of_queues
from fairlead_policy.tenants.sequence_columns import SequenceColumns
from fairlead_policy.tenants.service_order import InfiniteCause, ServiceOrder, cause_of
from fairlead_policy.tenants.tenant_queue import TenantQueue
from fairlead_policy.tenants.tenant_share import tenant_share_of

_SHALLOW = 64
"""Jobs of each tenant, beside the window, that heads are first looked for among."""
_DEEPER = 4
_ALL = 2**62


class TenantTree:
    """The state of a top-level tenant and all below it in a pool. One that stands alone is a tree of one node.

    Args:
        tenant_queues: the queues of the tenants that wait or run, or did of late.
        past: past use of tenants with children that is nobody's below.
        cached_tree: the tree that an earlier state was served from (H-DRF).
        standings: shares that were worked out for an earlier state of the tree and hold.
    """

    def __init__(
        self,
        top: str,
        measure: ShareMeasure,
        tenant_queues: Mapping[str, TenantQueue],
        past: Mapping[str, Mapping[str, int]],
        *,
        cached_tree: CachedTree | None = None,
        standings: Mapping[str, TenantShare] | None = None,
    ) -> None:
        self.top = top
        self.tenant_queues = tenant_queues
        self._past = past
        self._measure = measure
        self.alone = measure.rules.stands_alone(top)
        self._rescaled = measure.rules.rescaled and not self.alone
        self._cached_tree = cached_tree
        self._standings = {} if standings is None else {**standings}
        # What somebody looked at last:
        self._made: tuple[Micros | None, int, ServiceOrder] | None = None
        self._filling: HdrfFilling | None = None
        self._served: tuple[int, ServiceOrder] | None = None
        """Number of jobs that were served, and their sequence (H-DRF)."""
        self._heads: tuple[int, Collection[str] | None, ServiceOrder | None, SequenceColumns] | None = None
        """Heads that were looked at last: their window, their tenants, the sequence they were taken from, their jobs."""

    def changed(
        self, tenant_queues: Iterable[TenantQueue], past: Mapping[str, Mapping[str, int]]
    ) -> "TenantTree":
        """The tree with other queues in place of those of the same tenants, and other past use of tenants with children."""
        found, remembered, names = {**self.tenant_queues}, {**self._past, **past}, set(past)
        for tenant_queue in tenant_queues:
            names.add(tenant_queue.tenant)
            found[tenant_queue.tenant] = tenant_queue
            if tenant_queue.idle:
                del found[tenant_queue.tenant]
        cached_tree = self._cached_tree
        if cached_tree is not None:
            cached_tree = CachedTree(cached_tree.tree, cached_tree.since | names)
        kept = {name: amounts for name, amounts in remembered.items() if amounts}
        moved = {one for name in names for one in self.rules.way_up(name)}
        standings = {name: share for name, share in self._standings.items() if name not in moved}
        return TenantTree(self.top, self._measure, found, kept, cached_tree=cached_tree, standings=standings)

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs or is remembered."""
        return not self.tenant_queues and not self._past

    def past_below(self, tenant: str) -> Counter[str]:
        """Past use of a tenant and those below it that is no tenant queue's."""
        total: Counter[str] = Counter()
        for name, past in self._past.items():
            if tenant in self._measure.rules.way_up(name):
                total.update(past)
        return total

    def use_below(self, tenant: str) -> Counter[str]:
        """The use below a tenant: what runs, and past use."""
        total = self.past_below(tenant)
        for tenant_queue in self.tenant_queues_below(tenant):
            total.update(tenant_queue.counted_use)
        return total

    def tenant_queues_below(self, tenant: str) -> Iterator[TenantQueue]:
        """The tenant queues whose use counts towards a tenant, by name."""
        if tenant not in self.rules.children:
            if tenant in self.tenant_queues:
                yield self.tenant_queues[tenant]
            return
        for name, tenant_queue in sorted(self.tenant_queues.items()):
            if tenant in self._measure.rules.way_up(name):
                yield tenant_queue

    def standing(self, tenant: str) -> TenantShare:
        """The share of a tenant and of all below it: worked out once for all trees in which none of these changed."""
        known = self._standings.get(tenant)
        if known is None:
            below = list(self.tenant_queues_below(tenant))
            known = tenant_share_of(tenant, below, self.rules, self.past_below(tenant))
            self._standings[tenant] = known
        return known

    def sequence(self, now: Micros, depth: int = _ALL) -> ServiceOrder:
        """The sequence at an instant: made of the first `depth` jobs of each tenant at least."""
        made = self._made
        if self._rescaled:
            depth = _ALL
        tenant_queues = [
            tenant_queue for _, tenant_queue in sorted(self.tenant_queues.items()) if len(tenant_queue)
        ]
        horizon = self._horizon(tenant_queues, now)
        longest = max(map(len, tenant_queues), default=0)
        if made is None or made[0] != horizon or made[1] < min(depth, longest):
            table = JobTable.of(tenant_queues, [depth] * len(tenant_queues))
            found = ServiceOrder(
                self._prefixes(table, now, horizon),
                self.top,
                table,
                self._measure,
                use=self.use_below(self.top),
                now=now,
            )
            made = self._made = horizon, depth, found
        return made[2]

    def all(self, now: Micros, tenants: Collection[str] | None = None) -> SequenceColumns:
        """All jobs of these tenants, or of the whole tree; it does not stand alone."""
        sequence = self.sequence(now)
        return SequenceColumns.of(sequence, self.indexes(sequence, tenants))

    def heads(self, now: Micros, window: int, tenants: Collection[str] | None = None) -> SequenceColumns:
        """The first `window` jobs of each queue, of these tenants or all: the same value as long as nothing moved."""
        known = self._heads
        if self.alone and known is not None and known[0] == window:
            return known[3]
        if not any(map(len, self.tenant_queues.values())):
            return SequenceColumns.of_nobody(self)
        if self.alone:
            found = SequenceColumns.of_own_order(
                self, self.lone_queue, self.lone_queue.line.first_of_queues(window)
            )
            self._heads = window, None, None, found
            return found
        sequence, at = self._first(now, window, tenants)
        if known is not None and known[:2] == (window, tenants) and known[2] is sequence:
            return known[3]
        found = SequenceColumns.of(sequence, at)
        self._heads = window, tenants, sequence, found
        return found

    @property
    def lone_queue(self) -> TenantQueue:
        """The tenant queue of a tree of one node."""
        return self.tenant_queues[self.top]

    def job_at(self, index: int) -> PositionedJob:
        """The job at an index; the tenant stands alone."""
        return self.lone_queue.line.job_at(index)

    def jobs_at(self, indexes: Ints) -> Sequence[PositionedJob]:
        """The jobs at these indexes; the tenant stands alone."""
        return self.lone_queue.jobs_at(indexes)

    def tie_at(self, index: int) -> TieBreak:
        """The tie that settles equal keys and submit instants; the tenant stands alone."""
        return self.lone_queue.uid_at(index), 0

    def cause_at(self, _: int, /) -> InfiniteCause:
        """The resource that the pool has none of and that makes the shares of all its jobs infinite."""
        return cause_of(self.use_below(self.top), self.rules)

    def _first(self, now: Micros, window: int, tenants: Collection[str] | None) -> tuple[ServiceOrder, Ints]:
        if self.rules.rescaled:
            return self._served_heads(now, window, tenants)
        depth = window + _SHALLOW
        while True:
            sequence = self.sequence(now, depth)
            indexes = self._first_of_queues(sequence, window, tenants)
            if indexes is not None:
                return sequence, indexes
            depth *= _DEEPER

    def _served_heads(
        self, now: Micros, window: int, tenants: Collection[str] | None
    ) -> tuple[ServiceOrder, Ints]:
        waiting = self._waiting(tenants)
        number = self._measure.queues.number
        wanted = {number(queue): min(window, count) for queue, count in waiting.items()}
        self._served_so_far(now).until(wanted, tenants)
        sequence = self._as_served(now)
        first = self._first_of_queues(sequence, window, tenants)
        # Nothing is missing but jobs below a tenant that has some of its own: these are in no sequence.
        return sequence, self.indexes(sequence, tenants) if first is None else first

    def find(self, job: PositionedJob, now: Micros) -> tuple[ServiceOrder, int] | None:
        """The sequence as far as a job takes it, and the job's index in it; None where it does not wait here."""
        tenant_queue = self.tenant_queues.get(job.tenant)
        row = None if tenant_queue is None else tenant_queue.row_of(job)
        if tenant_queue is None or row is None:
            return None
        if self.alone:
            return self.sequence(now, row + 1), row
        sequence = self.sequence(now)
        return sequence, sequence.index_at(tenant_queue, row)

    def indexes(self, sequence: ServiceOrder, tenants: Collection[str] | None) -> Ints:
        """The indexes of these tenants' jobs, or of all."""
        if tenants is None:
            return np.arange(len(sequence))
        chosen = np.array([tenant_queue.tenant in tenants for tenant_queue in sequence.table.tenant_queues])
        return np.flatnonzero(chosen[sequence.tenant_queues])

    def next_flip(self, sequence: ServiceOrder) -> Micros | None:
        """An instant before which time alone changes nothing in the sequence; None where it never does."""
        rules, multipliers = self._measure.rules, self._measure.multipliers
        compared = (prefix.compared for prefix in sequence.prefixes.values())
        flips = [first_flip(rows, rules, multipliers) for rows in compared if rows is not None]
        return min((flip for flip in flips if flip is not None), default=None)

    def _horizon(self, tenant_queues: list[TenantQueue], now: Micros) -> Micros | None:
        """The horizon that an instant's sequence depends on: jobs that are submitted before it are beyond the cap."""
        cap = self._measure.rules.cap
        if cap is None or self.alone:
            return None
        oldest = min((tenant_queue.oldest for tenant_queue in tenant_queues), default=now)
        return None if oldest >= now - cap else now - cap

    def _served_so_far(self, now: Micros) -> HdrfFilling:
        """The jobs served at this instant, to go on from (H-DRF)."""
        tenant_queues = (
            [tenant_queue for tenant_queue in self.tenant_queues.values() if len(tenant_queue)]
            if self.rules.cap is not None
            else []
        )
        horizon = self._horizon(tenant_queues, now)
        if self._filling is None or self._filling.horizon != horizon:
            self._filling, self._served = self._live_tree(horizon).filling(), None
        return self._filling

    def _live_tree(self, horizon: Micros | None) -> LiveTree:
        """The tree before any of its jobs starts (H-DRF)."""
        known = self._cached_tree
        tree = None if known is None else known.tree.with_tenants(known.since, self)
        tree = LiveTree.of(self.top, self._measure, self) if tree is None else tree
        tree = tree.at(horizon)
        self._cached_tree = CachedTree(tree, frozenset())
        return tree

    def _as_served(self, now: Micros) -> ServiceOrder:
        """The sequence as far as it was served (H-DRF)."""
        filling, made = self._served_so_far(now), self._served
        if made is None or made[0] < len(filling):
            table, prefixes = served_prefixes(filling, self._measure, now)
            sequence = ServiceOrder(prefixes, self.top, table, self._measure, use=filling.use, now=now)
            made = self._served = len(filling), sequence
        return made[1]

    def _first_of_queues(
        self, sequence: ServiceOrder, window: int, tenants: Collection[str] | None
    ) -> Ints | None:
        """The indexes of each queue's first jobs, ascending; None where the sequence is too short."""
        number = self._measure.queues.number
        waiting = {number(queue): count for queue, count in self._waiting(tenants).items()}
        among = self.indexes(sequence, tenants)
        found = first_of_queues(sequence.queues[among], waiting, window)
        return None if found is None else among[found]

    def _waiting(self, tenants: Collection[str] | None) -> Counter[JobQueue]:
        """The number of waiting jobs of these tenants, or of all, in each queue."""
        waiting: Counter[JobQueue] = Counter()
        for name, tenant_queue in self.tenant_queues.items():
            if tenants is None or name in tenants:
                waiting.update(tenant_queue.waiting_by_queue)
        return waiting

    def _prefixes(self, table: JobTable, now: Micros, horizon: Micros | None) -> dict[str, SequencePrefix]:
        """The sequence of every tenant that has jobs in the table, from the leaves up."""
        if self._rescaled:
            return whole_sequences(self._live_tree(horizon).top, table, self._measure, now)
        numbers = {queue.tenant: number for number, queue in enumerate(table.tenant_queues)}
        found: dict[str, SequencePrefix] = {}

        def up_to(tenant: str) -> SequencePrefix | None:
            if tenant in numbers:
                found[tenant] = leaf_prefix(table, numbers[tenant])
            else:
                below = map(up_to, self.rules.children.get(tenant, ()))
                parts = [part for part in below if part is not None]
                if parts:
                    found[tenant] = merge(table, parts, self._node(tenant), now)
            return found.get(tenant)

        up_to(self.top)
        return found

    def _node(self, tenant: str) -> ScoredNode:
        """The holdings by which a tenant with children is scored."""
        use = self.use_below(tenant)
        counted = [counted_amount(use.get(name, 0)) for name in self.rules.resources]
        scale = self._measure.scale_of(tenant)
        return ScoredNode(tenant, scale, counted, lacking_of(use, self.rules) is not None)

    def own_past(self, tenant: str) -> Mapping[str, int]:
        """A parent tenant's past use that belongs to none of its children."""
        return self._past.get(tenant, {})

    @property
    def rules(self) -> PoolRules:
        """The rules of the pool."""
        return self._measure.rules
