"""Walking an order with nodes in view: each waiting job all or nothing, on what those before it leave.

Fairness decides who goes first, fit says where and whether. So the order is an input here and is never changed: a job that
finds no room is passed over and takes nothing, as a frontend that fills gaps does. Every answer is one of five. `placed`:
here its pods fit, checked pod by pod. `never`: more than the pool has, or proven to fit nowhere even if nothing ran.
`no-quota`: the pool is full, or what is left is kept for the head of its line. `no-room`: the pool has it in sum, its
nodes or cards do not. `unknown`: jobs run, and nodes do not say what is used of them, and what is said (of cards, as
HAMi notes it) does not prove that there is no room; or parts of cards are asked for, and no node registers a card.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.snapshot.gangs import ONLY_SHAPE
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.facts import asks_for_parts, gang_of, node_of, read_cards
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import PlacedPod, Placement, Unfit, with_pods
from fairlead_policy.fit.shapes import FitNode, Gang
from fairlead_policy.fit.unschedulable import (
    AskRefused,
    BehindHead,
    BeyondPool,
    NoCards,
    NoNodes,
    PoolFull,
    UnschedulableReason,
    UseNotStated,
    ask_refused,
)
from fairlead_policy.hami.annotations import CardStrategy, node_strategy_of
from fairlead_policy.hami.requests import VgpuRequestError
from fairlead_policy.snapshot.card_shares import pools_with_cards, with_card_shares


class FitVerdict(StrEnum):
    """Whether a job fits."""

    PLACED = "placed"
    NO_QUOTA = "no-quota"
    NO_ROOM = "no-room"
    NEVER = "never"
    UNKNOWN = "unknown"


class NodeFit(msgspec.Struct, frozen=True, kw_only=True):
    """A job's pods and cards on one node."""

    node: str
    """Name of the node; `<cluster>/<node>` where the snapshot has several clusters."""
    pods: int
    cards: dict[str, int]
    """vGPUs by uuid."""


class JobFit(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one job."""

    answer: FitVerdict
    nodes: tuple[NodeFit, ...] = ()
    """Nodes where it is placed, by name."""
    reasons: tuple[UnschedulableReason, ...] = ()
    """Reasons for which it is not placed; never empty then."""
    exact: bool = True
    """Whether the answer is proven; False: no way was found, and that there is none is not proven."""


class PlacementWalk(msgspec.Struct, frozen=True, kw_only=True):
    """The result of walking the order of all pools."""

    jobs: dict[str, JobFit]
    """Answers by uid."""
    placed: dict[str, tuple[Gang, tuple[PlacedPod, ...]]]
    """Gangs of the jobs that are placed, and where their pods are, by uid."""

    @property
    def never(self) -> frozenset[str]:
        """The uids of jobs that can never run as things are."""
        return frozenset(uid for uid, fit in self.jobs.items() if fit.answer is FitVerdict.NEVER)


def walk(
    snapshot: Snapshot,
    orders: Mapping[str, Iterable[str]],
    strategy: CardStrategy,
    heads: Mapping[str, str] | None = None,
) -> PlacementWalk:
    """The place of each waiting job, or the reason for which it has none.

    Pools are walked by name; on nodes that several pools may use the later ones get what the earlier ones leave.

    Args:
        snapshot: nodes, what runs, what waits.
        orders: the uids of each pool's waiting jobs, in order.
        strategy: the strategy for jobs that state none (`hami.io/node-scheduler-policy`).
        heads: the uid of the job at which a frontend stops, by pool in reserve mode: none behind it is placed.

    Raises:
        DocumentError: cards or asks cannot be read, with every problem.
    """
    walker = _Walker(with_card_shares(snapshot), strategy)
    jobs = {job.uid: job for job in snapshot.jobs}
    for pool, uids in sorted(orders.items()):
        head = None if heads is None else heads.get(pool)
        stopped = None
        for uid in uids:
            walker.answer_next(jobs[uid], pool, stopped)
            if uid == head:
                stopped = BehindHead(pool=pool, head=jobs[uid].id)
    return PlacementWalk(jobs=walker.answers, placed=walker.placed)


class _Walker:
    def __init__(self, snapshot: Snapshot, strategy: CardStrategy) -> None:
        self.answers: dict[str, JobFit] = {}
        self.placed: dict[str, tuple[Gang, tuple[PlacedPod, ...]]] = {}
        self._strategy = strategy
        self._capacity = {pool.name: pool.capacity for pool in snapshot.pools}
        self._use: dict[str, Counter[str]] = {pool.name: Counter() for pool in snapshot.pools}
        for running in snapshot.running:
            self._use[running.pool].update(running.demand)
        self._charged = {job.uid: job.demand for job in snapshot.jobs}
        self._gangs, self._refused = _gangs(snapshot)
        with_cards = pools_with_cards(snapshot)
        self._cardless = {
            job.uid for job in snapshot.jobs if job.pool not in with_cards and asks_for_parts(job)
        }
        self._nodes = _nodes(snapshot)
        self._ranges = _Ranges(snapshot)
        self._table = CardTable()
        unsaid = [node for node in snapshot.nodes if node.used is None]
        self._nodes_without_use = len(unsaid) if snapshot.running else 0
        empty = {name: node.emptied() for name, node in self._nodes.items()}
        self._proofs_if_empty = _Proofs(empty, CardTable(), self._ranges)
        self._proofs_as_stated = _Proofs(self._nodes, self._table, self._ranges)
        """Proofs by the use that is stated; asked only where missing facts keep jobs from being placed."""

    def answer_next(self, job: SnapshotJob, pool: str, stopped: BehindHead | None) -> None:
        """Answers for the next job of the pool's order. `stopped`: why the frontend does not get so far."""
        if (refused := self._refused.get(job.uid)) is not None:
            self.answers[job.uid] = JobFit(answer=FitVerdict.NEVER, reasons=(refused,))
            return
        gang, demand = self._gangs[job.uid], self._charged[job.uid]
        fit = self._beyond_pool(demand, pool)
        if fit is None and stopped is not None:
            never = self._never(gang, job, pool) if self._nodes else None
            fit = never or JobFit(answer=FitVerdict.NO_QUOTA, reasons=(stopped,))
        fit = fit or self._no_quota(demand, pool, gang, job)
        self.answers[job.uid] = fit or self._on_nodes(gang, demand, job, pool)

    def _beyond_pool(self, demand: Mapping[str, int], pool: str) -> JobFit | None:
        capacity = self._capacity[pool]
        beyond = tuple(
            BeyondPool(pool=pool, resource=name, wanted=amount, capacity=capacity.get(name, 0))
            for name, amount in sorted(demand.items())
            if amount > capacity.get(name, 0)
        )
        return JobFit(answer=FitVerdict.NEVER, reasons=beyond) if beyond else None

    def _no_quota(self, demand: Mapping[str, int], pool: str, gang: Gang, job: SnapshotJob) -> JobFit | None:
        """The answer where the pool has no quota left; a job that no node could ever hold is told that instead."""
        capacity, use = self._capacity[pool], self._use[pool]
        full = tuple(
            PoolFull(pool=pool, resource=name, wanted=amount, left=max(capacity.get(name, 0) - use[name], 0))
            for name, amount in sorted(demand.items())
            if amount + use[name] > capacity.get(name, 0)
        )
        if not full:
            return None
        return self._never(gang, job, pool) or JobFit(answer=FitVerdict.NO_QUOTA, reasons=full)

    def _on_nodes(self, gang: Gang, demand: Mapping[str, int], job: SnapshotJob, pool: str) -> JobFit:
        if (why := self._missing_fact(job)) is not None:
            none = (self._never(gang, job, pool) if self._nodes else None) or self._crowded(gang, job, pool)
            if none is None:
                self._use[pool].update(demand)
            return none or JobFit(answer=FitVerdict.UNKNOWN, reasons=(why,), exact=False)
        annotations = {} if job.gang is None else job.gang.annotations
        strategy = node_strategy_of(annotations, self._strategy)
        found = place(
            gang, [self._nodes[name] for name in self._ranges.of(job, pool)], strategy, table=self._table
        )
        if isinstance(found, Unfit):
            return self._never(gang, job, pool) or JobFit(
                answer=FitVerdict.NO_ROOM, reasons=found.reasons, exact=found.exact
            )
        self._nodes.update(with_pods(gang, self._nodes, found.pods))
        self._use[pool].update(demand)
        self.placed[job.uid] = gang, found.pods
        return JobFit(answer=FitVerdict.PLACED, nodes=_per_node(found))

    def _missing_fact(self, job: SnapshotJob) -> UnschedulableReason | None:
        """The fact that is missing to place the job, as a reason; None where all is known."""
        if not self._nodes:
            return NoNodes()
        if self._nodes_without_use:
            return UseNotStated(nodes=self._nodes_without_use)
        return NoCards(shape=ONLY_SHAPE) if job.uid in self._cardless else None

    def _never(self, gang: Gang, job: SnapshotJob, pool: str) -> JobFit | None:
        """The proof that it fits nowhere even if nothing ran, where there is one."""
        unfit = self._proofs_if_empty.of(gang, job, pool)
        return None if unfit is None else JobFit(answer=FitVerdict.NEVER, reasons=unfit.reasons)

    def _crowded(self, gang: Gang, job: SnapshotJob, pool: str) -> JobFit | None:
        """The proof that what is said to be used leaves no room: what is not said can only take more."""
        unfit = self._proofs_as_stated.of(gang, job, pool) if self._nodes_without_use else None
        return None if unfit is None else JobFit(answer=FitVerdict.NO_ROOM, reasons=unfit.reasons)


class _Proofs:
    """Proofs that gangs fit nowhere on nodes that stay as they are; alike gangs are tried once."""

    def __init__(self, nodes: Mapping[str, FitNode], table: CardTable, ranges: "_Ranges") -> None:
        self._nodes = nodes
        self._table = table
        self._ranges = ranges
        self._known: dict[tuple[tuple[str, str], bytes], Unfit | None] = {}

    def of(self, gang: Gang, job: SnapshotJob, pool: str) -> Unfit | None:
        """The proof that the gang fits nowhere; None where it fits, or nothing is proven."""
        key = (self._ranges.key_of(job, pool), msgspec.json.encode(gang))
        if key not in self._known:
            nodes = [self._nodes[name] for name in self._ranges.of(job, pool)]
            found = place(gang, nodes, table=self._table)
            self._known[key] = found if isinstance(found, Unfit) and found.exact else None
        return self._known[key]


class _Ranges:
    """The nodes that jobs of a pool and a cluster may use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = [(node, node_of(node, ()).name) for node in snapshot.nodes]
        self._known: dict[tuple[str, str], list[str]] = {}

    def key_of(self, job: SnapshotJob, pool: str) -> tuple[str, str]:
        """The key of the job's nodes: jobs with one key may use the same."""
        return pool, job.cluster

    def of(self, job: SnapshotJob, pool: str) -> list[str]:
        """The names of a job's nodes. A node without pool or cluster is for all; a job without a cluster uses any."""
        key = self.key_of(job, pool)
        if key not in self._known:
            self._known[key] = [
                name
                for node, name in self._nodes
                if node.pool in (None, pool) and (not node.cluster or job.cluster in ("", node.cluster))
            ]
        return self._known[key]


def _nodes(snapshot: Snapshot) -> dict[str, FitNode]:
    problems: list[FieldError] = []
    cards = list(read_cards(snapshot.nodes, problems))
    if problems:
        raise DocumentError(problems)
    nodes = map(node_of, snapshot.nodes, cards)
    return {node.name: node for node in nodes}


def _gangs(snapshot: Snapshot) -> tuple[dict[str, Gang], dict[str, AskRefused]]:
    """The pods of each job; of a frontend's jobs, those that HAMi refuses apart: they are in its queue all the same."""
    with_cards, problems = pools_with_cards(snapshot), list[FieldError]()
    gangs: dict[str, Gang] = {}
    refused: dict[str, AskRefused] = {}
    for at, job in enumerate(snapshot.jobs):
        try:
            gangs[job.uid] = gang_of(job, with_cards=job.pool in with_cards)
        except FieldError as error:
            if isinstance(error, VgpuRequestError) and job.frontend:
                refused[job.uid] = ask_refused(error)
            else:
                problems.append(FieldError(f"jobs[{at}].{error.field}", error.value, error.reason))
    if problems:
        raise DocumentError(problems)
    return gangs, refused


def _per_node(found: Placement) -> tuple[NodeFit, ...]:
    pods: Counter[str] = Counter()
    cards: dict[str, Counter[str]] = {}
    for pod in found.pods:
        pods[pod.node] += 1
        cards.setdefault(pod.node, Counter()).update(uuid for uuids in pod.cards for uuid in uuids)
    return tuple(
        NodeFit(node=name, pods=pods[name], cards=dict(sorted(cards[name].items()))) for name in sorted(pods)
    )
