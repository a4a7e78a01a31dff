"""A snapshot in order: what scorers would do with the same facts. `levels` has what admitters would."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_contracts.snapshot.tenants import pools_of_tenants
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotPool, SnapshotTenant
from fairlead_policy.exact.ranking import Flags, Ints
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.order.position_columns import PositionColumns, PositionParts
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import JobQueue, PositionedJob, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.card_shares import with_card_shares
from fairlead_policy.snapshot.pool_shapes import with_open_cards
from fairlead_policy.tenants.sorted_jobs import OwnLines, amounts_of
from fairlead_policy.usage.saturation import Saturation, unflavored_room

_WHOLE = ("", "")
"""A pool of a snapshot is one part: which cluster gives what of it is not said."""

_RUNS = "\0"
"""The beginning of uids of running jobs. No name in a snapshot holds it, so they differ from those of waiting ones."""


class OrderedPool(msgspec.Struct, frozen=True, kw_only=True):
    """One pool of a snapshot, in order."""

    name: str
    rules: PoolRules
    positions: Sequence[Position]
    """Positions in order, mostly made as they are looked at: a million of them take a gigabyte. See `parts`."""
    standings: dict[str, TenantShare]
    """Share of each tenant that waits or runs there."""
    apart: frozenset[str] = frozenset()
    """Uids of the jobs that cannot start as things are."""

    def parts(self) -> PositionParts:
        """The positions as columns, some hundred at a time."""
        positions = self.positions
        if isinstance(positions, Positions):
            return positions.parts()
        return PositionParts(len(positions), lambda some: PositionColumns.of(positions[some]))

    def jobs(self) -> Iterator[PositionedJob]:
        """The jobs in order, as far as their positions repeat them: who asks for names alone has no position made."""
        return self.positions.jobs() if isinstance(self.positions, Positions) else iter(self.positions)


def policy_of(snapshot: Snapshot) -> PolicyDocument:
    """The snapshot's policy with its tenants: what it says of a tenant counts before what the policy says."""
    stated = {tenant.name: tenant for tenant in snapshot.tenants if not tenant.unlisted}
    listed = {tenant.name: tenant for tenant in snapshot.policy.tenants}
    names = dict.fromkeys([*listed, *sorted(stated)])
    tenants = [_merged(name, listed.get(name), stated.get(name)) for name in names]
    return msgspec.structs.replace(snapshot.policy, tenants=tenants)


def _merged(name: str, listed: Tenant | None, stated: SnapshotTenant | None) -> Tenant:
    known = Tenant(name=name) if listed is None else listed
    if stated is None:
        return known
    # Where its jobs stand limits no tenant that the policy lets into every pool: it is a sibling in all of them.
    everywhere = listed is not None and listed.pool is None
    return msgspec.structs.replace(
        known,
        weight=known.weight if stated.weight is None else stated.weight,
        pool=known.pool if stated.pool is None or everywhere else stated.pool,
        parent=known.parent if stated.parent is None else stated.parent,
    )


def order_snapshot(snapshot: Snapshot) -> list[OrderedPool]:
    """Each pool in order, by name. The order of the snapshot's lists changes nothing.

    Raises:
        DocumentError: cards or asks for them cannot be read, with every problem; see `with_card_shares`.
    """
    asking, snapshot = _by_pool(snapshot), with_card_shares(snapshot)
    orders = _running_orders(snapshot)
    waiting = _by_pool(snapshot)
    return [
        _ordered(pool, orders[pool.name], waiting[pool.name], asking[pool.name], snapshot.now)
        for pool in sorted(snapshot.pools, key=lambda pool: pool.name)
    ]


def orders_of(snapshot: Snapshot) -> dict[str, PoolFacts]:
    """The orders that a scorer would keep, by pool: to ask more of than the positions; a million jobs take a gigabyte.

    Raises:
        DocumentError: as `order_snapshot`.
    """
    asking, snapshot = _by_pool(snapshot), with_card_shares(snapshot)
    orders = _running_orders(snapshot)
    waiting = _by_pool(snapshot)
    for pool in snapshot.pools:
        jobs = waiting[pool.name]
        apart = _apart(pool, jobs, asking[pool.name], {}).tolist()
        orders[pool.name].wait_all(map(_waiting, jobs, apart))
    return dict(sorted(orders.items()))


def _apart(
    pool: SnapshotPool,
    waiting: Sequence[SnapshotJob],
    asking: Sequence[SnapshotJob],
    amounts: Mapping[str, Ints],
) -> Flags:
    """Whether each job of a pool cannot start as things are.

    Args:
        waiting: its jobs with what they weigh: by the capacity that is judged where the pool states no quota.
        asking: the same jobs, with what they ask for.
        amounts: what they weigh by resource, as far as it is known side by side.
    """
    judged, most = waiting, pool.capacity
    if pool.quota is not None:
        judged, most, amounts = asking, with_open_cards(pool.quota), {}
    found = np.array([job.flavorless or job.limited for job in judged], np.bool_)
    demands = [job.demand for job in judged]
    for name in set(most).union(*demands):
        limit = most.get(name, 0)
        if name in amounts:
            found |= amounts[name] > limit
        else:  # of a resource that is not counted, it may be more than 64 bits hold
            found |= np.array([demand.get(name, 0) > limit for demand in demands], np.bool_)
    return found


def _running_orders(snapshot: Snapshot) -> dict[str, PoolFacts]:
    """PoolFacts of each pool with running jobs and past use, without waiting jobs."""
    rulebook = Rulebook(policy_of(snapshot), revision=0)
    orders = {pool.name: PoolFacts(_rules(rulebook, pool, snapshot)) for pool in snapshot.pools}
    alone = snapshot.pools[0].name if len(snapshot.pools) == 1 else None
    stands_in = pools_of_tenants(snapshot.policy, snapshot.tenants, alone)
    for tenant in snapshot.tenants:
        order = orders.get(stands_in[tenant.name] or "")
        if tenant.past_use and order is not None:
            order.remember(tenant.name, tenant.past_use)
    for running in snapshot.running:
        orders[running.pool].run(_RUNS + running.id, running.tenant, running.demand)
    return orders


def _by_pool(snapshot: Snapshot) -> dict[str, list[SnapshotJob]]:
    if len(snapshot.pools) == 1:
        return {snapshot.pools[0].name: snapshot.jobs}
    waiting: dict[str, list[SnapshotJob]] = {pool.name: [] for pool in snapshot.pools}
    for job in snapshot.jobs:
        waiting[job.pool].append(job)
    return waiting


def _rules(rulebook: Rulebook, pool: SnapshotPool, snapshot: Snapshot) -> PoolRules:
    """The pool's rules; with H-DRF what runs and waits says which resources are used up, where the snapshot does not."""
    quota = None if pool.quota is None else with_open_cards(pool.quota)
    rules = rulebook.pool_rules(pool.name, pool.capacity, quota)
    if not rules.rescaled:
        return rules
    if pool.saturated is not None:
        return replace(rules, saturated=frozenset(pool.saturated) & frozenset(rules.resources))
    saturation = Saturation(rules, {_WHOLE: unflavored_room(pool.capacity)})
    for running in snapshot.running:
        if running.pool == pool.name:
            saturation.run(_WHOLE, running.demand, {})
    for job in snapshot.jobs:
        if job.pool == pool.name:
            saturation.wait(_WHOLE, job.demand)
    return replace(rules, saturated=saturation.used_up())


def _waiting(job: SnapshotJob, apart: bool) -> WaitingJob:  # noqa: FBT001 # mapped
    return WaitingJob(
        uid=job.uid,
        scope=job.tenant,
        id=job.id,
        tenant=job.tenant,
        job_class=job.job_class,
        submitted=job.submitted,
        demand=job.demand,
        queue=JobQueue(job.cluster or job.frontend, job.queue, apart),
        override=job.priority_override,
    )


def _ordered(
    pool: SnapshotPool,
    order: PoolFacts,
    jobs: Sequence[SnapshotJob],
    asking: Sequence[SnapshotJob],
    now: Micros,
) -> OrderedPool:
    """The pool in order.

    Args:
        order: the facts of what runs there, and of past use.
        jobs: the jobs that wait there, with what they weigh.
        asking: the same jobs, with what they ask for.
    """
    snapshot = order.snapshot
    # A million demands are looked at once.
    amounts = amounts_of([job.demand for job in jobs], order.rules)
    apart = _apart(pool, jobs, asking, dict(zip(order.rules.resources, amounts, strict=True)))
    full = snapshot.with_lines(OwnLines.of(jobs, None, snapshot.measure, apart, amounts))
    return OrderedPool(
        name=pool.name,
        rules=order.rules,
        positions=Order(full, now).positions(),
        standings={one.tenant: one for one in full.standings()},
        apart=frozenset(jobs[row].uid for row in np.flatnonzero(apart).tolist()),
    )
