"""The least end of a tenant's use that brings a job before another, found by trying it in the order itself.

For trees of tenants and classes that are not strict, where less use of one tenant also changes the sequence of those
above it. What is found is tried from both sides: the end moves the job, and one unit less does not.
"""

from collections.abc import Callable, Mapping
from math import ceil

from fairlead_contracts.base.quantities import base_units

GIBIBYTE = 2**30

type Ends = Mapping[str, int]


def unit_of(resource: str) -> int:
    """The unit that people count a resource in, as base units: one card, one core, one GiB."""
    return GIBIBYTE if base_units(resource) == 1 else base_units(resource)


def least_end(running: Ends, resource: str, moves: Callable[[Ends], bool]) -> Ends | None:
    """The least whole units of a resource whose end moves the job; None where no end of it does.

    Args:
        running: what the tenant's running jobs hold.
        resource: the one that ends.
        moves: whether the end of these amounts moves the job; it does with more where it does with less.
    """
    unit, held = unit_of(resource), running.get(resource, 0)

    def amounts(units: int) -> Ends:
        return {resource: min(units * unit, held)}

    least, most = 1, ceil(held / unit)
    if not held or not moves(amounts(most)):
        return None
    while least < most:
        middle = (least + most) // 2
        if moves(amounts(middle)):
            most = middle
        else:
            least = middle + 1
    return amounts(least)
