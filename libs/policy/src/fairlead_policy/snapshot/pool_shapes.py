"""Pools as clusters and the policy make them, jobs apart; and who may start in them at all.

A Kueue quota holds for nodes that are yet to come, too: a job within it is admitted, and an autoscaler brings the nodes.
So a job is judged by the quota, in the units that its frontend counts, and cards that are there only say where it fits.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_contracts.messages.state import PoolState, QueueState
from fairlead_policy.rules.pool_rules import LARGEST
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_cards import PoolCards
from fairlead_policy.snapshot.stated_cluster import StatedCluster
from fairlead_policy.usage.saturation import FlavorRoom, PoolPart, unflavored_room


class PoolShape(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of the policy, as far as it is stated."""

    capacity: dict[str, int]
    """Capacity over the stated pools that it is made of, base units; sorted by resource."""
    quota: dict[str, int]
    """The sum of what these state, however many cards are there, as frontends count: who asks for more never starts."""
    rooms: dict[PoolPart, FlavorRoom]
    """Room of each of these stated pools by itself."""
    clusters: frozenset[str]
    """The clusters whose state it is decided from."""
    parks: bool = False
    """Whether a queue of it puts aside what does not fit: then much that comes free at once is filled by its own order."""


def is_beyond(demand: Mapping[str, int], quota: Mapping[str, int]) -> bool:
    """Whether a job asks for more of any resource than the whole quota has: it cannot start."""
    return any(amount > quota.get(name, 0) for name, amount in demand.items())


def with_open_cards(quota: Mapping[str, int]) -> dict[str, int]:
    """The quota of a pool whose nodes register cards. Of what it does not say of cards nobody knows a limit."""
    return dict.fromkeys(CARD_RESOURCES, LARGEST) | dict(quota)


def cards_by_pool(clusters: Mapping[str, StatedCluster], rulebook: Rulebook) -> dict[str, PoolCards]:
    """The cards of the policy's pools; without those whose clusters register none."""
    found: dict[str, PoolCards] = {}
    for pool in sorted({name for name, _ in _by_pool(clusters, rulebook)}):
        members = sorted({cluster for cluster, _ in rulebook.members_of(pool)} & clusters.keys())
        cards = PoolCards.of(node for cluster in members for node in clusters[cluster].nodes.values())
        if cards is not None:
            found[pool] = cards
    return found


def pool_shapes(
    clusters: Mapping[str, StatedCluster], rulebook: Rulebook, cards: Mapping[str, PoolCards]
) -> dict[str, PoolShape]:
    """The policy's pools that some cluster states, or has a queue of, by name.

    Args:
        clusters: the objects of all clusters.
        cards: the cards by pool, as `cards_by_pool` finds them.
    """
    parts: dict[str, list[PoolState]] = {}
    stating: dict[str, set[str]] = {}
    parking = set[str]()
    for name, one in _by_pool(clusters, rulebook):
        parts.setdefault(name, []).extend([one] if isinstance(one, PoolState) else ())
        stating.setdefault(name, set()).add(one.cluster)
        if isinstance(one, QueueState) and one.parks:
            parking.add(name)
    return {
        name: PoolShape(
            capacity=_joined(found, cards.get(name), shared=rulebook.shares_hardware(name)),
            quota=_quota(found, cards.get(name), shared=rulebook.shares_hardware(name)),
            rooms={(part.cluster, part.name): _room(part, cards.get(name)) for part in found},
            # A member that no cluster states yet counts too: the pool is whole only with it.
            clusters=frozenset(stating[name] | {cluster for cluster, _ in rulebook.members_of(name)}),
            parks=name in parking,
        )
        for name, found in sorted(parts.items())
    }


def _by_pool(
    clusters: Mapping[str, StatedCluster], rulebook: Rulebook
) -> Iterator[tuple[str, PoolState | QueueState]]:
    """The stated pools and queues, each with the policy's pool that it leads to."""
    for name, cluster in clusters.items():
        for queue in cluster.queues.values():
            yield rulebook.pool_of(name, queue.pool), queue
        for pool in cluster.pools.values():
            yield rulebook.pool_of(name, pool.name), pool


def _joined(parts: Iterable[PoolState], cards: PoolCards | None, *, shared: bool) -> dict[str, int]:
    """The capacity of stated pools together: machines of several pools once, and of clusters that share theirs as much as one of them has."""
    by_cluster: dict[str, dict[str, int]] = {}
    counted = set[tuple[str, str]]()
    for part in parts:
        amounts = part.capacity if cards is None else cards.capacity(part.cluster, part.capacity)
        total = by_cluster.setdefault(part.cluster if shared else "", {})
        again = [twice for machines, twice in part.common.items() if (part.cluster, machines) in counted]
        counted |= {(part.cluster, machines) for machines in part.common}
        for resource, amount in amounts.items():
            more = max(0, amount - sum(twice.get(resource, 0) for twice in again))
            total[resource] = total.get(resource, 0) + more
    joined: dict[str, int] = {}
    for total in by_cluster.values():
        joined.update({name: max(amount, joined.get(name, 0)) for name, amount in total.items()})
    return dict(sorted(joined.items()))


def _quota(parts: Iterable[PoolState], cards: PoolCards | None, *, shared: bool) -> dict[str, int]:
    stated = _joined(parts, None, shared=shared)
    return stated if cards is None else with_open_cards(stated)


def _room(pool: PoolState, cards: PoolCards | None) -> FlavorRoom:
    return (pool.flavors or unflavored_room(pool.capacity)) if cards is None else cards.room(pool)
