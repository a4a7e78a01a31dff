"""Jobs that cannot start as things are: they ask for more than their whole pool may have.

A Kueue quota holds for nodes that are yet to come, too: a job within it is admitted, and an autoscaler brings the nodes.
So a job is judged by the quota, in the units that its frontend counts, and cards that are there only say where it fits.
"""

from collections.abc import Mapping

from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_policy.rules.pool_rules import LARGEST


def is_beyond(demand: Mapping[str, int], quota: Mapping[str, int]) -> bool:
    """Whether a job asks for more of any resource than the whole quota has: it cannot start."""
    return any(amount > quota.get(name, 0) for name, amount in demand.items())


def with_open_cards(quota: Mapping[str, int]) -> dict[str, int]:
    """The quota of a pool whose nodes register cards. Of what it does not say of cards nobody knows a limit."""
    return dict.fromkeys(CARD_RESOURCES, LARGEST) | dict(quota)
