"""The assignment: which shards are ours, by bounded rendezvous hashing over the live scorers."""

from collections.abc import Iterable, Mapping

from fairlead_bus.ownership.assignment import assign
from fairlead_scorer.decide.shard_ownership import ShardName


class ShardAssignment:
    """Remembers the last assignment: it is asked for in every pass and changes with pools and replicas alone.

    Args:
        replica: the replica whose shards are asked for.
    """

    def __init__(self, replica: str) -> None:
        self._replica = replica
        self._asked: tuple[tuple[tuple[str, int], ...], tuple[str, ...]] | None = None
        self._ours: frozenset[ShardName] = frozenset()

    def ours(self, shards: Mapping[str, int], live: Iterable[str]) -> frozenset[ShardName]:
        """The shards that the assignment gives to our replica.

        Args:
            shards: the number of shards of each pool.
            live: the live replicas.
        """
        asked = tuple(sorted(shards.items())), tuple(sorted(live))
        if asked != self._asked:
            items = [str(ShardName(pool, number)) for pool, count in asked[0] for number in range(count)]
            given = assign(items, asked[1])
            self._ours = frozenset(
                ShardName.parse(item) for item, replica in given.items() if replica == self._replica
            )
            self._asked = asked
        return self._ours
