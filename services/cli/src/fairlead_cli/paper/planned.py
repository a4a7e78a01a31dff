"""What `fairlead order` prints, as JSON or as lines."""

from collections.abc import Mapping

import msgspec

from fairlead_policy.snapshot.levels import PlannedLevels
from fairlead_policy.snapshot.ordering import OrderedPool
from fairlead_policy.snapshot.placement import JobFit
from fairlead_policy.snapshot.reserve import PaperReservation


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in order, with the levels that this takes where they were asked for."""

    pool: OrderedPool
    plan: PlannedLevels | None
    fits: Mapping[str, JobFit] | None = None
    """By uid, where the policy asks for that."""
    reservation: PaperReservation | None = None
    """Where the policy asks for that."""


def ids_of(pool: OrderedPool) -> dict[str, str]:
    """By uid."""
    return {place.uid: place.id for place in pool.places}
