"""Partitions as pools: those that share nodes and PriorityTier compete, so they are one pool. Pure.

Slurm looks at jobs of a higher tier first, whatever their priority, so no level can order across tiers.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_slurm.cluster import SlurmNode, SlurmPartition


class PartitionPool(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions that compete for the same nodes.

    Attributes:
        name: name of the default partition where it is among them, else of the first in slurm.conf.
        partitions: names of the partitions, in the order of slurm.conf.
        capacity: amounts of all nodes of theirs on which jobs may start.
        common: amounts of those nodes that are of other pools as well, by the names of all these pools.
    """

    name: str
    partitions: tuple[str, ...]
    capacity: dict[str, int] = {}
    common: dict[str, dict[str, int]] = {}


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """Fairlead's names for Slurm's resources; resources without a name are left out."""

    by_tres: dict[str, str]

    @classmethod
    def of(cls, gres_gpu: str) -> "Naming":
        """The names of CPU, memory, and GPUs of any type."""
        return cls(by_tres={"cpu": "cpu", "mem": "memory", "gres/gpu": gres_gpu})

    def amounts(self, resources: Mapping[str, int]) -> dict[str, int]:
        """The amounts under Fairlead's names. Slurm counts GPUs of a type a second time under that type."""
        return {name: resources[tres] for tres, name in self.by_tres.items() if tres in resources}


def partition_pools(
    partitions: Sequence[SlurmPartition], nodes: Iterable[SlurmNode], naming: Naming
) -> list[PartitionPool]:
    """The pools of a cluster, sorted by name."""
    by_name = {partition.name: partition for partition in partitions}
    group_of = {name: name for name in by_name}

    def root(name: str) -> str:
        while group_of[name] != name:
            name = group_of[name]
        return name

    listed = list(nodes)
    for node in listed:
        by_tier: dict[int, str] = {}
        for name in (name for name in node.partitions if name in by_name):
            first = by_tier.setdefault(by_name[name].tier, name)
            group_of[root(name)] = root(first)
    members: dict[str, list[SlurmPartition]] = {}
    for name, partition in by_name.items():
        members.setdefault(root(name), []).append(partition)
    pools = sorted(map(_partition_pool, members.values()), key=lambda pool: pool.name)
    pool_of = {name: pool for pool in pools for name in pool.partitions}
    for node in listed:
        if node.usable:
            its = {pool_of[name].name: pool_of[name] for name in node.partitions if name in pool_of}
            _count(its, naming.amounts(node.resources))
    return pools


def _partition_pool(members: Sequence[SlurmPartition]) -> PartitionPool:
    named = next((partition for partition in members if partition.is_default), members[0])
    return PartitionPool(name=named.name, partitions=tuple(partition.name for partition in members))


def _count(pools: Mapping[str, PartitionPool], amounts: Mapping[str, int]) -> None:
    """Counts a node into its pools; where these are several, also into what they have in common."""
    together = "+".join(sorted(pools))
    for pool in pools.values():
        for into in (pool.capacity, *([pool.common.setdefault(together, {})] if len(pools) > 1 else [])):
            for resource, amount in amounts.items():
                into[resource] = into.get(resource, 0) + amount
