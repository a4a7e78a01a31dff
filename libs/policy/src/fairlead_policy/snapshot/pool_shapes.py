"""Pools as clusters and the policy make them, jobs apart: the one fold for scorers, snapshots and simulations."""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.messages.state import NodeState, PoolState, QueueState, State
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_cards import PoolCards
from fairlead_policy.usage.saturation import FlavorRoom, PoolPart, whole_room


class PoolShape(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of the policy, as far as it is stated."""

    capacity: dict[str, int]
    """Capacity over the stated pools that it is made of, base units; sorted by resource."""
    rooms: dict[PoolPart, FlavorRoom]
    """Room of each of these stated pools by itself."""
    clusters: frozenset[str]
    """The clusters whose state it is decided from."""


def cards_by_pool(states: Iterable[State], rulebook: Rulebook) -> dict[str, PoolCards]:
    """The cards of the policy's pools; without those whose clusters register none."""
    nodes: dict[str, list[NodeState]] = {}
    pools = set[str]()
    for state in states:
        match state:
            case NodeState():
                nodes.setdefault(state.cluster, []).append(state)
            case QueueState():
                pools.add(rulebook.pool_of(state.cluster, state.pool))
            case PoolState():
                pools.add(rulebook.pool_of(state.cluster, state.name))
            case _:
                pass
    found: dict[str, PoolCards] = {}
    for pool in sorted(pools):
        clusters = sorted({cluster for cluster, _ in rulebook.members_of(pool)})
        cards = PoolCards.of(node for cluster in clusters for node in nodes.get(cluster, ()))
        if cards is not None:
            found[pool] = cards
    return found


def pool_shapes(
    states: Iterable[State], rulebook: Rulebook, cards: Mapping[str, PoolCards]
) -> dict[str, PoolShape]:
    """The policy's pools that some cluster states, or has a queue of, by name.

    Args:
        states: the states of all clusters.
        rulebook: the policy's rulebook.
        cards: the cards by pool, as `cards_by_pool` finds them.
    """
    parts: dict[str, list[PoolState]] = {}
    clusters: dict[str, set[str]] = {}
    for state in states:
        match state:
            case QueueState():
                name = rulebook.pool_of(state.cluster, state.pool)
                parts.setdefault(name, [])
            case PoolState():
                name = rulebook.pool_of(state.cluster, state.name)
                parts.setdefault(name, []).append(state)
            case _:
                continue
        clusters.setdefault(name, set()).add(state.cluster)
    return {
        name: PoolShape(
            capacity=_joined(found, cards.get(name), shared=rulebook.shares_hardware(name)),
            rooms={(part.cluster, part.name): _room(part, cards.get(name)) for part in found},
            # A member that no cluster states yet counts too: the pool is whole only with it.
            clusters=frozenset(clusters[name] | {cluster for cluster, _ in rulebook.members_of(name)}),
        )
        for name, found in sorted(parts.items())
    }


def _joined(parts: Iterable[PoolState], cards: PoolCards | None, *, shared: bool) -> dict[str, int]:
    """The capacity of stated pools together: of clusters that share their machines as much as one of them has."""
    by_cluster: dict[str, dict[str, int]] = {}
    for part in parts:
        amounts = part.capacity if cards is None else cards.capacity(part.cluster, part.capacity)
        total = by_cluster.setdefault(part.cluster if shared else "", {})
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    joined: dict[str, int] = {}
    for total in by_cluster.values():
        joined.update({name: max(amount, joined.get(name, 0)) for name, amount in total.items()})
    return dict(sorted(joined.items()))


def _room(pool: PoolState, cards: PoolCards | None) -> FlavorRoom:
    return (pool.flavors or whole_room(pool.capacity)) if cards is None else cards.room(pool)
