"""A snapshot whose nodes register cards: asks for them, as HAMi takes them, charged to the pool as shares of cards."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotGang,
    SnapshotJob,
    SnapshotNode,
    SnapshotRunning,
)
from fairlead_policy.fit.facts import gang_of, read_cards, shapes_of
from fairlead_policy.hami.charges import CardPool

_ASKED = frozenset(CARD_RESOURCES)


def with_card_shares(snapshot: Snapshot) -> Snapshot:
    """The snapshot with capacity and demand of cards as shares of physical cards; see `hami.charges.CardPool`.

    What a job says of cards stays, in its gang. So this done twice is this done once. Where no node registers cards,
    and of pools that count otherwise, it is the snapshot as it is: `nvidia.com/gpu` and its kin are resources like any
    other there.

    Raises:
        DocumentError: cards or asks that cannot be read, with every problem.
    """
    with_cards = pools_with_cards(snapshot)
    if not any(pool.card_shares and pool.name in with_cards for pool in snapshot.pools):
        return snapshot
    problems: list[FieldError] = []
    serves = _Serving(snapshot)
    registered = list(zip(snapshot.nodes, read_cards(snapshot.nodes, problems), strict=True))
    pools = {
        pool.name: CardPool([card for node, cards in registered if serves(node, pool.name) for card in cards])
        for pool in snapshot.pools
        if pool.card_shares and pool.name in with_cards
    }
    charging = _Charging(pools, problems)
    charged = msgspec.structs.replace(
        snapshot,
        pools=[
            msgspec.structs.replace(pool, capacity=pools[pool.name].capacity(pool.capacity))
            if pool.name in pools
            else pool
            for pool in snapshot.pools
        ],
        running=charging.charged("running", snapshot.running),
        jobs=charging.charged("jobs", snapshot.jobs),
    )
    if problems:
        raise DocumentError(problems)
    return charged


def pools_with_cards(snapshot: Snapshot) -> set[str]:
    """The pools whose cards are known one by one: a node that their jobs may run on registers some."""
    serves = _Serving(snapshot)
    registering = [node for node in snapshot.nodes if node.registers_cards]
    return {pool.name for pool in snapshot.pools if any(serves(node, pool.name) for node in registering)}


class _Serving:
    """Tells which nodes a pool's jobs may run on: its clusters', where the snapshot tells clusters apart.

    A pool's clusters are those of its queues, and those that the policy joins; of one that has neither, any.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._clusters: dict[str, set[str]] = {}
        for queue in snapshot.queues:
            if queue.cluster:
                self._clusters.setdefault(queue.pool, set()).add(queue.cluster)
        for pool in snapshot.policy.pools:
            for member in pool.members:
                self._clusters.setdefault(pool.name, set()).add(member.partition("/")[0])

    def __call__(self, node: SnapshotNode, pool: str) -> bool:
        clusters = self._clusters.get(pool)
        return node.pool in (None, pool) and (
            not node.cluster or clusters is None or node.cluster in clusters
        )


class CardCharges:
    """The weights of jobs in one pool whose cards are known; jobs that say the same are weighed once."""

    def __init__(self, pool: CardPool) -> None:
        self._pool = pool
        self._known: dict[object, dict[str, int]] = {}

    def charge(self, job: SnapshotJob | SnapshotRunning) -> dict[str, int]:
        """The weight of a job's cards, in base units; nothing where it asks for none.

        Raises:
            FieldError: HAMi does not take what it asks for, or nobody can say which of its pods ask.
        """
        if job.gang is None and _ASKED.isdisjoint(job.demand):
            return {}
        key = (job.pods, tuple(sorted(job.demand.items()))) if job.gang is None else None
        if key is not None and key in self._known:
            return self._known[key]
        total = Counter[str]()
        for shape in gang_of(job, with_cards=True).shapes:
            for ask in shape.vgpus:
                for name, amount in self._pool.charge(ask, shape.card_annotations).items():
                    total[name] += amount * shape.count
        for name, amount in total.items():
            if amount > MAX_QUANTITY:
                raise FieldError(f"demand.{name}", amount, "is more than any cluster has")
        charge = {name: amount for name, amount in total.items() if amount}
        if key is not None:
            self._known[key] = charge
        return charge


def charged_demand(demand: Mapping[str, int], charge: Mapping[str, int]) -> dict[str, int]:
    """The demand, its cards replaced by their weight."""
    if not charge:
        return dict(demand)
    return {name: amount for name, amount in demand.items() if name not in _ASKED} | dict(charge)


class _Charging:
    """Charges the jobs of several pools."""

    def __init__(self, pools: dict[str, CardPool], problems: list[FieldError]) -> None:
        self._pools = {name: CardCharges(pool) for name, pool in pools.items()}
        self._problems = problems

    def charged[J: (SnapshotJob, SnapshotRunning)](self, key: str, jobs: Iterable[J]) -> list[J]:
        """The jobs, those that ask for cards charged for them."""
        charged = []
        for at, job in enumerate(jobs):
            try:
                charged.append(self._with_charge(job) if job.pool in self._pools else job)
            except FieldError as error:
                if job.frontend:  # it is queued, whatever it asks for: it weighs what its frontend counts
                    charged.append(job)
                else:
                    self._problems.append(FieldError(f"{key}[{at}].{error.field}", error.value, error.reason))
        return charged

    def _with_charge[J: (SnapshotJob, SnapshotRunning)](self, job: J) -> J:
        charge = self._pools[job.pool].charge(job)
        if not charge:
            return job
        gang = SnapshotGang(
            shapes=shapes_of(job, with_cards=True),
            zone_key=None if job.gang is None else job.gang.zone_key,
            annotations={} if job.gang is None else job.gang.annotations,
        )
        return msgspec.structs.replace(job, demand=charged_demand(job.demand, charge), gang=gang)
