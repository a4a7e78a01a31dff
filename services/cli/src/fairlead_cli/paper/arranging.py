"""A snapshot's order as its frontends go through it: fairness first, then reserve mode, then the nodes."""

from collections.abc import Mapping

import msgspec

from fairlead_cli.paper.fitting import walked
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.snapshot.levels import PlannedLevels, plan_snapshot_levels, steering_of
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot
from fairlead_policy.snapshot.placement import JobFit
from fairlead_policy.snapshot.reserve import PaperReservation, in_reserved_order, reserve_snapshot


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in the order that its frontend goes through."""

    pool: OrderedPool
    reservation: PaperReservation | None
    """Starts that reserve mode promises, where the policy asks for that."""
    fits: Mapping[str, JobFit] | None = None
    """Fits of the jobs by uid, where the policy asks for that."""
    plan: PlannedLevels | None = None
    """Levels that the order takes, where they were asked for."""


def order(snapshot: Snapshot, *, levels: bool = False) -> list[PlannedPool]:
    """The pools in order, by name, with the levels that this takes where they are asked for.

    Raises:
        DocumentError: cards or asks for them cannot be read, with every problem.
    """
    plain = order_snapshot(snapshot)
    # Who can never run does not depend on the order: it is known before anybody is promised a start.
    walk = walked(snapshot, plain)
    never = frozenset[str]() if walk is None else walk.never
    found = []
    for pool in plain:
        reservation = reserve_snapshot(snapshot, pool, never)
        found.append(PlannedPool(in_reserved_order(pool, reservation), reservation))
    reserved = {one.pool.name: one.reservation for one in found if one.reservation is not None}
    if walk is not None and reserved:
        heads = {name: one.head for name, one in reserved.items() if one.head is not None}
        walk = walked(snapshot, [one.pool for one in found], heads)
    if walk is not None:
        found = [msgspec.structs.replace(one, fits=walk.jobs) for one in found]
        never = walk.never
    return [_with_levels(snapshot, one, never) for one in found] if levels else found


def _with_levels(snapshot: Snapshot, planned: PlannedPool, never: frozenset[str]) -> PlannedPool:
    steering, window = steering_of(snapshot, planned.pool.name), snapshot.policy.window
    plan = plan_snapshot_levels(
        planned.pool, snapshot.jobs, window, steering, never=never, reservation=planned.reservation
    )
    return msgspec.structs.replace(planned, plan=plan)


def ids_of(pool: OrderedPool) -> dict[str, str]:
    """The ids of a pool's jobs, by uid."""
    return {job.uid: job.id for job in pool.jobs()}
