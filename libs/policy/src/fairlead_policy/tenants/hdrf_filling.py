"""Progressive filling with H-DRF: a tree's jobs one by one, from the top down, as far as somebody looks.

Each node serves the child whose next job has the smallest (class, blocked, infinite share, key, submitted, uid). A start
changes what one leaf holds, and with it what each node above counts to hold; siblings stand as they stood. So a job costs
(levels x log of the siblings), and the first jobs of a tree are found without a look at those behind: of these it only
counts that some are left, as a tenant is live while a job of it waits that is not blocked.

The tree as it stands before any start is kept: an event changes one leaf and the nodes above it. Keys are exact: fractions
of integers, told apart by their nearest floats where these differ.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import add, mul
from typing import NamedTuple, Protocol

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, ratio
from fairlead_policy.exact.scoring import ShareMeasure, lacking_of
from fairlead_policy.rules.pool_rules import LARGEST, counted_amount
from fairlead_policy.tenants.least import Least
from fairlead_policy.tenants.merging import ScoredNode
from fairlead_policy.tenants.rescaling import (
    ChildShares,
    CountedHolding,
    Dominant,
    ExactFraction,
    SiblingState,
)
from fairlead_policy.tenants.tenant_queue import TenantQueue

_BLOCK = 32
"""Rows of a tenant that are looked up at once, at first."""
_LARGEST_BLOCK = 4096


class HdrfFacts(Protocol):
    """A tree's knowledge of its tenants."""

    @property
    def tenant_queues(self) -> Mapping[str, TenantQueue]:
        """The tenant queues by tenant: what runs and waits."""
        ...

    def own_past(self, tenant: str) -> Mapping[str, int]:
        """A parent tenant's past use that belongs to none of its children."""
        ...

    def use_below(self, tenant: str) -> Mapping[str, int]:
        """The use below a tenant: what runs, and past use."""
        ...


class _ServedJob(NamedTuple):
    """A waiting job, as far as its position depends on it."""

    rank: int
    submitted: Micros
    weight_number: int
    uid: str
    queue: int
    demand: list[int]


type ServingHead = tuple[int, float, ExactFraction, Micros, str, _ServedJob]
"""A node's next job: (class, blocked and infinite share, key as a float, key, submitted, uid), and the job."""


class _Keys:
    """Makes heads of jobs and of the tags that their nodes stand at; submit instants before the horizon, if any, count as it."""

    def __init__(self, measure: ShareMeasure, horizon: Micros | None) -> None:
        self._rate = measure.rules.rate.as_integer_ratio()
        self._mode = measure.rules.class_mode
        self._weights = measure.multipliers.exact
        self._horizon = horizon

    def head(self, job: _ServedJob, over: int, under: int, *, infinite: bool) -> ServingHead:
        """The job as the next of a node whose tag is `over / under`."""
        if infinite:
            over, under = 0, 1
        if (
            job.weight_number
            and self._mode == "multiplicative"
            and (weight := self._weights[job.weight_number])
        ):
            over, under = over * weight.denominator, under * weight.numerator
        elif job.weight_number and self._mode == "additive":
            weight = self._weights[job.weight_number]
            over, under = over * weight.denominator + weight.numerator * under, under * weight.denominator
        faster, slower = self._rate
        if faster:
            aged = job.submitted if self._horizon is None else max(job.submitted, self._horizon)
            over, under = over * slower + aged * faster * under, under * slower
        return (
            job.rank * 2 + infinite, ratio(over, under), ExactFraction(over, under), job.submitted, job.uid, job,
        )  # fmt: skip


type Member = Leaf | Branch
"""A tenant of the tree."""
type Path = tuple[int, ...]
"""Numbers of children, from the top down."""


class Leaf:
    """A tenant that has jobs of its own, or nobody below it."""

    def __init__(self, tenant: str, facts: HdrfFacts, measure: ShareMeasure, number: int) -> None:
        rules = measure.rules
        self.tenant, self.number = tenant, number
        self.entitlement = rules.entitlement_of(tenant)
        self.tenant_queue = facts.tenant_queues.get(tenant)
        if tenant in rules.children:
            use = facts.use_below(tenant)
        else:
            use = {} if self.tenant_queue is None else self.tenant_queue.counted_use
        self.use = use
        self.totals = [counted_amount(self.use.get(name, 0)) for name in rules.resources]
        self.started = 0
        self._measure = measure
        self._held: CountedHolding | None = None
        self._lacks = lacking_of(self.use, rules) is not None
        self._free = 0 if self.tenant_queue is None else self.tenant_queue.unblocked
        self._rows: list[_ServedJob] = []
        self._first_row = 0

    def copy(self) -> "Leaf":
        """A copy that changes without the original."""
        return copy(self)  # what it refers to is replaced, never changed

    @property
    def live(self) -> bool:
        """Whether a job that is not blocked is still to start."""
        return self._free > 0

    def holding(self) -> CountedHolding:
        """The leaf's holding, as its parent counts it."""
        if self._held is None:
            self._held = self._holding(self.totals)
        return self._held

    def _holding(self, totals: Sequence[int]) -> CountedHolding:
        parts = list(map(mul, totals, self._measure.numerators))
        return CountedHolding(parts, self._measure.denominator, max(parts, default=0))

    def states(self, rank: Ints, demand: Ints) -> Iterator[SiblingState]:
        """Tells the leaf's state after each of its jobs, by their ranks and demands, (resources, jobs)."""
        totals, free = self.totals, self._free
        for one, asked in zip(rank.tolist(), demand.T.tolist(), strict=True):
            totals = list(map(add, totals, asked))
            free -= not one & 1
            yield SiblingState(self._holding(totals), free > 0)

    def head(self, keys: _Keys) -> ServingHead | None:
        """The tenant's next job, as its siblings see it; None where all have started."""
        job = self.job()
        if job is None:
            return None
        held, entitlement = self.holding(), self.entitlement
        infinite = not entitlement or self._lacks or max(self.totals, default=0) > LARGEST
        over, under = held.most * entitlement.denominator, held.under * entitlement.numerator
        return keys.head(job, over, under, infinite=infinite)

    def scored_node(self) -> ScoredNode:
        """The tenant's facts that its scores are made of, beside its jobs."""
        return ScoredNode(self.tenant, self._measure.scale_of(self.tenant), self.totals, self._lacks)

    def job(self) -> _ServedJob | None:
        """The tenant's next job; None where all have started."""
        at = self.started - self._first_row
        if at >= len(self._rows):
            if self.tenant_queue is None or self.started >= len(self.tenant_queue):
                return None
            size = min(max(_BLOCK, self.started), _LARGEST_BLOCK)
            self._rows, self._first_row, at = _rows(self.tenant_queue, self.started, size), self.started, 0
        return self._rows[at]

    def start(self, job: _ServedJob) -> None:
        """Notes that the next job starts."""
        self.started += 1
        self._free -= not job.rank & 1
        self.totals = list(map(add, self.totals, job.demand))
        self._held = None


def _rows(tenant_queue: TenantQueue, start: int, count: int) -> list[_ServedJob]:
    columns = tenant_queue.columns(start + count, start)
    return [
        _ServedJob(rank, submitted, weight_number, tenant_queue.uid_at(row), queue, demand)
        for row, (rank, submitted, weight_number, queue, demand) in enumerate(
            zip(
                columns.rank.tolist(),
                columns.submitted.tolist(),
                columns.weight_number.tolist(),
                columns.queue.tolist(),
                columns.demand.T.tolist(),
                strict=True,
            ),
            start,
        )
    ]


class ServedLine:
    """The jobs that a node has served, in order."""

    __slots__ = ("held", "leaf", "row")

    def __init__(self) -> None:
        self.leaf: list[int] = []
        """Number of each job's tenant."""
        self.row: list[int] = []
        """Position of each job in its tenant's own order."""
        self.held: list[Dominant] = []
        """The largest part of what the node counted to hold before each job."""


class Branch:
    """A tenant with others below it."""

    def __init__(self, tenant: str, facts: HdrfFacts, measure: ShareMeasure) -> None:
        rules = measure.rules
        self.tenant = tenant
        self.entitlement = rules.entitlement_of(tenant)
        self.children: list[Member] = []
        self.use: Counter[str] = Counter()
        self.line = ServedLine()
        self.heads: Least[ServingHead] = Least()
        self._measure = measure
        past = facts.own_past(tenant)
        own = [counted_amount(past.get(name, 0)) for name in rules.resources]
        entitlements = [rules.entitlement_of(child) for child in rules.children[tenant]]
        self.child_shares = ChildShares(entitlements, list(map(mul, own, rules.unit_shares)), rules)
        self._held: CountedHolding | None = None
        self._dominant: Dominant | None = None
        self._copied_children: set[int] = set()
        self._started = [0] * len(rules.resources)
        self._lacks: bool | None = None
        self._totals: list[int] | None = None

    def copy(self) -> "Branch":
        """A copy that changes without the original."""
        other = copy(self)
        other.copy_parts()
        return other

    def copy_parts(self) -> None:
        """Copies the mutable parts, so that the original stays unchanged."""
        self.children, self.line, self._copied_children = self.children.copy(), ServedLine(), set()
        self.heads, self.child_shares = self.heads.copy(), self.child_shares.copy()
        self.use = self.use.copy()

    def copied_child(self, number: int) -> Member:
        """The child as a copy that may change: the tree before any start stays as it is."""
        if number not in self._copied_children:
            self._copied_children.add(number)
            self.children[number] = self.children[number].copy()
        return self.children[number]

    def touched(self) -> Iterator[Member]:
        """The children that were copied: below each of them a job was served."""
        return (self.children[number] for number in sorted(self._copied_children))

    def next(self) -> Leaf | None:
        """The tenant of the next job."""
        first = self.heads.first()
        if first is None:
            return None
        child = self.children[first[1]]
        return child if isinstance(child, Leaf) else child.next()

    @property
    def live(self) -> bool:
        """Whether a job that is not blocked is still to start below it."""
        return self.child_shares.live

    def holding(self) -> CountedHolding:
        """The holding that the branch counts with."""
        if self._held is None:
            self._held = self.child_shares.held()
        return self._held

    def dominant(self) -> Dominant:
        """The largest part of the holding. The top of a tree is asked for no more than that."""
        if self._dominant is None:
            self._dominant = self.child_shares.dominant() if self._held is None else self._held.dominant
        return self._dominant

    def update_child(self, number: int, keys: _Keys) -> None:
        """Takes in the new state of a child."""
        child = self.children[number]
        self.child_shares.set_child(number, child.holding(), child.live)
        self._held = self._dominant = None
        head = child.head(keys)
        if head is None:
            self.heads.drop(number)
        else:
            self.heads.put(number, head)

    def aged(self, keys: _Keys) -> "Branch":
        """The branch with its heads, and those below it, counted from another instant."""
        other = self.copy()
        other.heads = Least()
        for number, child in enumerate(self.children):
            aged = other.children[number] = child.aged(keys) if isinstance(child, Branch) else child
            head = aged.head(keys)
            if head is not None:
                other.heads.put(number, head)
        return other

    def add_use(self, use: Mapping[str, int], sign: int) -> None:
        """Counts so much more as running below."""
        for name, amount in use.items():
            self.use[name] += sign * amount
        self._lacks = self._totals = None

    def head(self, keys: _Keys) -> ServingHead | None:
        """The branch's next job, as its siblings see it; None where all have started."""
        first = self.heads.first()
        if first is None:
            return None
        counted, entitlement = self.holding(), self.entitlement
        over, under = counted.most * entitlement.denominator, counted.under * entitlement.numerator
        totals = zip(self.totals, self._started, strict=True)
        infinite = not entitlement or self.lacks or any(held + more > LARGEST for held, more in totals)
        return keys.head(first[0][-1], over, under, infinite=infinite)

    def serve(self, leaf: Leaf, job: _ServedJob) -> None:
        """Notes that a child's next job starts; the child itself has noted it."""
        line = self.line
        line.leaf.append(leaf.number)
        line.row.append(leaf.started - 1)
        line.held.append(self.dominant())
        self._started = list(map(add, self._started, job.demand))

    @property
    def totals(self) -> list[int]:
        """The use below, running and past, by resource of the pool."""
        if self._totals is None:
            self._totals = [counted_amount(self.use[name]) for name in self._measure.rules.resources]
        return self._totals

    @property
    def lacks(self) -> bool:
        """Whether the use below takes in a resource of which the pool has none."""
        if self._lacks is None:
            self._lacks = lacking_of(self.use, self._measure.rules) is not None
        return self._lacks

    def scored_node(self) -> ScoredNode:
        """The tenant's facts that its scores are made of, beside its jobs."""
        return ScoredNode(self.tenant, self._measure.scale_of(self.tenant), self.totals, self.lacks)


class LiveTree:
    """A tree as it stands before any of its jobs starts. A value: a change of one tenant copies the nodes above it.

    Args:
        top: its root; nobody changes what is below it.
        paths: the children that lead to each tenant with own jobs or nobody below it, from the top down.
        horizon: submit instants before it count as it; None where none is.
    """

    def __init__(
        self, top: Member, paths: Mapping[str, Path], measure: ShareMeasure, horizon: Micros | None = None
    ) -> None:
        self.top, self._paths = top, paths
        self._measure, self._horizon = measure, horizon
        self._keys = _Keys(measure, horizon)

    @classmethod
    def of(cls, top: str, measure: ShareMeasure, facts: HdrfFacts) -> "LiveTree":
        """A whole tree."""
        keys, paths = _Keys(measure, None), dict[str, Path]()

        def built(tenant: str, path: Path, above: Sequence[Branch]) -> Member:
            tenant_queue = facts.tenant_queues.get(tenant)
            below = measure.rules.children.get(tenant, ())
            if not below or (tenant_queue is not None and len(tenant_queue)):
                leaf = Leaf(tenant, facts, measure, len(paths))
                paths[tenant] = path
                for branch in above:
                    branch.add_use(leaf.use, 1)
                return leaf
            found = Branch(tenant, facts, measure)
            for branch in (*above, found):
                branch.add_use(facts.own_past(tenant), 1)
                branch.add_use({} if tenant_queue is None else tenant_queue.counted_use, 1)
            for number, child in enumerate(below):
                found.children.append(built(child, (*path, number), (*above, found)))
                found.update_child(number, keys)
            return found

        return cls(built(top, (), ()), paths, measure)

    def with_tenants(self, tenants: Iterable[str], facts: HdrfFacts) -> "LiveTree | None":
        """The tree with these tenants as they are now; None where the tree itself may be another by it."""
        top = self.top.copy()
        for tenant in sorted(tenants):
            path = self._paths.get(tenant)
            if path is None or tenant in self._measure.rules.children:
                return None
            top = self._with_leaf(top, path, tenant, facts)
        return LiveTree(top, self._paths, self._measure, self._horizon)

    def _with_leaf(self, top: Member, path: Path, tenant: str, facts: HdrfFacts) -> Member:
        above: list[tuple[Branch, int]] = []
        node = top
        for number in path:
            if isinstance(node, Branch):
                above.append((node, number))
                node = node.copied_child(number)
        after = Leaf(tenant, facts, self._measure, node.number if isinstance(node, Leaf) else 0)
        for branch, number in reversed(above):
            if branch.children[number] is node:
                branch.children[number] = after
            branch.add_use(node.use, -1)
            branch.add_use(after.use, 1)
            branch.update_child(number, self._keys)
        return top if above else after

    def at(self, horizon: Micros | None) -> "LiveTree":
        """The tree with submit instants before the horizon counted as it."""
        if horizon == self._horizon:
            return self
        other = LiveTree(self.top, self._paths, self._measure, horizon)
        if isinstance(other.top, Branch):
            other.top = other.top.aged(other._keys)
        return other

    def filling(self) -> "HdrfFilling":
        """The tree's jobs, to be served from the first."""
        return HdrfFilling(self.top, self._keys, self._horizon)


class CachedTree(NamedTuple):
    """A tree as somebody looked at it last, and the tenants that changed since."""

    tree: LiveTree
    since: frozenset[str]


class HdrfFilling:
    """A tree's jobs in the sequence in which it serves them, as far as somebody looked.

    Args:
        top: the tree that it begins with; left as it is.
        keys: makes the heads.
        horizon: submit instants before it count as it; None where none is.
    """

    def __init__(self, top: Member, keys: _Keys, horizon: Micros | None) -> None:
        self.horizon = horizon
        self._top = top.copy()
        self._keys = keys
        self._served: list[tuple[str, int]] = []
        """The tenant and the queue of each job."""

    def __len__(self) -> int:
        return len(self._served)

    def reached(self, *, untouched: bool) -> Iterator[Member]:
        """The nodes below which a job was served, or all with those that are untouched; children come before those above."""
        return _children_first(self._top, untouched=untouched)

    @property
    def use(self) -> Mapping[str, int]:
        """The use of the tenant: what runs, and past use."""
        return self._top.use

    def until(self, wanted: Mapping[int, int], tenants: Collection[str] | None) -> None:
        """Serves until so many jobs of each queue are there, of these tenants or all; there must be as many."""
        left = dict(wanted)
        missing = sum(left.values())
        at = 0
        while missing and (at < len(self._served) or self._serve()):
            tenant, queue = self._served[at]
            at += 1
            if left.get(queue) and (tenants is None or tenant in tenants):
                left[queue] -= 1
                missing -= 1

    def _serve(self) -> bool:
        """Starts the tree's next job; False where there is none."""
        path: list[tuple[Branch, int]] = []
        node = self._top
        while isinstance(node, Branch):
            first = node.heads.first()
            if first is None:
                return False
            path.append((node, first[1]))
            node = node.copied_child(first[1])
        job = node.job()
        if job is None:
            return False
        node.start(job)
        for branch, number in reversed(path):
            branch.serve(node, job)
            branch.update_child(number, self._keys)
        self._served.append((node.tenant, job.queue))
        return True


def _children_first(node: Member, *, untouched: bool) -> Iterator[Member]:
    if isinstance(node, Branch):
        for child in node.children if untouched else node.touched():
            yield from _children_first(child, untouched=untouched)
    yield node
