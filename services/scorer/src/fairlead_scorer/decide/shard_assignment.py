"""The assignment of shards to the live scorers: the same answer everywhere, without a word between them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from fairlead_scorer.decide.shard_ownership import ShardName


def assign(items: Sequence[str], replicas: Iterable[str]) -> dict[str, str]:
    """Bounded rendezvous hashing: item to replica, at most ceil(n / m) items a replica.

    All pairs are taken in descending order of their hash; a pair holds unless its item is taken or its replica is full.
    Hence the sequence of `items` and `replicas` does not matter, and a replica that comes or goes moves little more
    than its own part (64 items, 4 replicas, one lost: 18 in the median, 16 at least). Plain rendezvous gives up to 26 of 64
    items to one replica; the bound gives 16.

    Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; the bound after Mirrokni,
    Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2018.
    """
    live = sorted(set(replicas))
    if not live:
        return {}
    wanted = sorted(set(items))
    most = math.ceil(len(wanted) / len(live))
    pairs = sorted(
        (
            # A zero byte between them: ("ab", "c") and ("a", "bc") are different pairs.
            (blake2b(f"{item}\0{replica}".encode(), digest_size=8).digest(), item, replica)
            for item in wanted
            for replica in live
        ),
        reverse=True,
    )
    taken: dict[str, str] = {}
    load = dict.fromkeys(live, 0)
    for _, item, replica in pairs:
        if item not in taken and load[replica] < most:
            taken[item] = replica
            load[replica] += 1
    return taken


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
