"""Resources of a pool that are used up, found anew from all that waits and runs there."""

from collections.abc import Iterable, Mapping

from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.usage.saturation import Saturation, unflavored_room


def used_up(
    rules: PoolRules, running: Iterable[Mapping[str, int]], waiting: Iterable[Mapping[str, int]]
) -> frozenset[str]:
    """The resources that are used up of a pool of one part, without flavors.

    Args:
        running: amounts that each running job takes.
        waiting: amounts that each waiting job asks for.
    """
    part = ("", "")
    saturation = Saturation(rules, {part: unflavored_room(rules.capacity)})
    for demand in running:
        saturation.run(part, demand, {})
    for demand in waiting:
        saturation.wait(part, demand)
    return saturation.used_up()
