"""A snapshot's order as its frontends go through it: fairness first, then reserve mode, then the nodes."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairlead_cli.paper.fitting import walked
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.snapshot.levels import PlannedLevels
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot
from fairlead_policy.snapshot.placement import JobFit, Walk
from fairlead_policy.snapshot.reserve import PaperReservation, in_reserved_order, reserve_snapshot


class ArrangedPool(NamedTuple):
    """A pool in the order that its frontend goes through."""

    pool: OrderedPool
    reservation: PaperReservation | None
    """Starts that reserve mode promises, where the policy asks for that."""


class Arranged(NamedTuple):
    """The pools of a snapshot in order, and where their jobs fit."""

    pools: list[ArrangedPool]
    walk: Walk | None
    """Nodes for the jobs in that order, where the policy asks for that."""


def arranged(snapshot: Snapshot) -> Arranged:
    """The pools in order, by name, and where their jobs fit.

    Raises:
        DocumentError: cards or asks for them cannot be read, with every problem.
    """
    plain = order_snapshot(snapshot)
    # Who can never run does not depend on the order: it is known before anybody is promised a start.
    first = walked(snapshot, plain)
    pools = [_reserved(snapshot, pool, first) for pool in plain]
    if first is None or all(one.reservation is None for one in pools):
        return Arranged(pools, first)
    return Arranged(pools, walked(snapshot, [one.pool for one in pools], _heads(pools)))


def _reserved(snapshot: Snapshot, pool: OrderedPool, first: Walk | None) -> ArrangedPool:
    reservation = reserve_snapshot(snapshot, pool, frozenset() if first is None else first.never)
    return ArrangedPool(in_reserved_order(pool, reservation), reservation)


def _heads(pools: list[ArrangedPool]) -> dict[str, str]:
    found = ((one.pool.name, one.reservation.head) for one in pools if one.reservation is not None)
    return {name: head for name, head in found if head is not None}


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in order, with the levels that this takes where they were asked for."""

    pool: OrderedPool
    plan: PlannedLevels | None
    fits: Mapping[str, JobFit] | None = None
    """Fits of the jobs by uid, where the policy asks for that."""
    reservation: PaperReservation | None = None
    """Starts that reserve mode promises, where the policy asks for that."""


def ids_of(pool: OrderedPool) -> dict[str, str]:
    """The ids of a pool's jobs, by uid."""
    return {job.uid: job.id for job in pool.jobs()}
