"""A snapshot in order: what scorers would do with the same facts. `levels` has what admitters would."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position, TenantShare
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_contracts.snapshot.tenants import pools_of_tenants
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotPool, SnapshotTenant
from fairlead_policy.exact.scoring import JobColumns
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.order.position_columns import PositionColumns, PositionParts
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import JobQueue, PositionedJob, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.card_shares import with_card_shares
from fairlead_policy.tenants.sorted_jobs import OwnLines
from fairlead_policy.usage.saturation import Saturation, whole_room

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
    oversized: bool = True
    """Whether some job may ask for more than the pool has."""

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
    snapshot = with_card_shares(snapshot)
    orders = _running_orders(snapshot)
    waiting = _by_pool(snapshot)
    return [
        _ordered(pool.name, orders[pool.name], waiting[pool.name], snapshot.now)
        for pool in sorted(snapshot.pools, key=lambda pool: pool.name)
    ]


def orders_of(snapshot: Snapshot) -> dict[str, PoolFacts]:
    """The orders that a scorer would keep, by pool: to ask more of than the positions; a million jobs take a gigabyte.

    Raises:
        DocumentError: as `order_snapshot`.
    """
    snapshot = with_card_shares(snapshot)
    orders = _running_orders(snapshot)
    for name, jobs in _by_pool(snapshot).items():
        orders[name].wait_all(map(_waiting, jobs))
    return dict(sorted(orders.items()))


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
    rules = rulebook.pool_rules(pool.name, pool.capacity)
    if not rules.rescaled:
        return rules
    if pool.saturated is not None:
        return replace(rules, saturated=frozenset(pool.saturated) & frozenset(rules.resources))
    saturation = Saturation(rules, {_WHOLE: whole_room(pool.capacity)})
    for running in snapshot.running:
        if running.pool == pool.name:
            saturation.run(_WHOLE, running.demand, {})
    for job in snapshot.jobs:
        if job.pool == pool.name:
            saturation.wait(_WHOLE, job.demand)
    return replace(rules, saturated=saturation.used_up())


def _waiting(job: SnapshotJob) -> WaitingJob:
    return WaitingJob(
        uid=job.uid,
        scope=job.tenant,
        id=job.id,
        tenant=job.tenant,
        job_class=job.job_class,
        submitted=job.submitted,
        demand=job.demand,
        queue=JobQueue(job.cluster or job.frontend, job.queue, job.flavorless),
        override=job.priority_override,
    )


def _ordered(name: str, order: PoolFacts, jobs: list[SnapshotJob], now: Micros) -> OrderedPool:
    """The pool in order.

    Args:
        name: the pool's name.
        order: the facts of what runs there, and of past use.
        jobs: the jobs that wait there.
        now: the instant.
    """
    snapshot = order.snapshot
    lines = OwnLines.of(jobs, None, snapshot.measure)
    full = snapshot.with_lines(lines)
    return OrderedPool(
        name=name,
        rules=order.rules,
        positions=Order(full, now).positions(),
        standings={one.tenant: one for one in full.standings()},
        oversized=_asks_for_more(lines, order.rules),
    )


def _asks_for_more(lines: OwnLines, rules: PoolRules) -> bool:
    """Whether some job asks for more than the pool has: no column holds what such a one asks for."""
    nothing = ~JobColumns.of(lines.numbers).demand.any(axis=0)
    return any(not rules.holds(lines.job_at(row).demand) for row in np.flatnonzero(nothing).tolist())
