"""The tree of tenants: who counts towards whom, and where. Checked here for the document and for snapshots alike."""

from collections.abc import Collection, Iterator, Mapping

DEEPEST = 16
"""Tenants on the way from a leaf to the top: each level is one more merge, and one more term of every
place."""


def check_tree(parents: Mapping[str, str | None], others: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Finds faults in the parents of tenants: the tenant, and the reason.

    A cycle is told once, at the first of its tenants by name.

    Args:
        parents: the parent of each known tenant, by its name; None at the top.
        others: names that may be parents beside them.
    """
    told: set[str] = set()
    for name, parent in sorted(parents.items()):
        if parent is None:
            continue
        if parent not in parents:
            if parent not in others:
                yield name, "names a tenant that is not in tenants"
            continue
        way = _way_up(name, parents)
        if way[-1] == name:
            if not told & set(way):
                yield name, f"makes a cycle: {' under '.join(way)}"
            told.update(way)
        elif len(way) > DEEPEST:
            yield name, f"stands {len(way)} deep: a tree may be {DEEPEST} deep"


def check_pools_of_tree(
    parents: Mapping[str, str | None], pools: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Problems of tenants whose pool differs from that of a tenant above them: the tenant's name, and the reason.

    A share is one of a pool: what a tenant has in one pool can count towards no share in another.

    Args:
        parents: the parent of each known tenant, by its name; None at the top.
        pools: the pool that each tenant names; None or left out where it takes that of those above, or any.
    """
    for name, parent in sorted(parents.items()):
        own = pools.get(name)
        if own is None or parent is None:
            continue
        stated = ((above, pools.get(above)) for above in _way_up(name, parents)[1:])
        above, theirs = next(((above, pool) for above, pool in stated if pool is not None), (name, own))
        if theirs != own:
            yield (
                name,
                f"is not the pool of {above}, which is {theirs}: a tenant counts in the pool of those above it",
            )


def _way_up(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """The tenants from this one to the top, or to the first that comes again; the name itself ends its own cycle."""
    way, seen = [name], {name}
    parent = parents.get(name)
    while parent is not None:
        way.append(parent)
        if parent in seen:
            break
        seen.add(parent)
        parent = parents.get(parent)
    return way


def inner_nodes(parents: Mapping[str, str | None]) -> set[str]:
    """The tenants that have children."""
    return {parent for parent in parents.values() if parent is not None}
