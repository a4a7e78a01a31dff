"""What `fairlead order` prints, as JSON or as lines."""

from collections.abc import Mapping, Sequence

import msgspec

from fairlead_contracts.messages.decisions import Place
from fairlead_policy.order.position_columns import PlacedJob, PositionColumns
from fairlead_policy.snapshot.levels import PlannedLevels
from fairlead_policy.snapshot.ordering import OrderedPool
from fairlead_policy.snapshot.placement import JobFit
from fairlead_policy.snapshot.reserve import PaperReservation

type Part = PositionColumns[PlacedJob] | Sequence[Place]
"""Of an order: see `OrderedPool.parts`."""


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in order, with the levels that this takes where they were asked for."""

    pool: OrderedPool
    plan: PlannedLevels | None
    fits: Mapping[str, JobFit] | None = None
    """By uid, where the policy asks for that."""
    reservation: PaperReservation | None = None
    """Where the policy asks for that."""


def jobs_of(part: Part) -> Sequence[PlacedJob]:
    """What a part of an order is about."""
    return part.jobs if isinstance(part, PositionColumns) else part


def ids_of(pool: OrderedPool) -> dict[str, str]:
    """By uid."""
    return {place.uid: place.id for place in pool.places}
