"""The assignment of shards to the live scorers: the same answer everywhere, without a word between them."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
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


@lru_cache(maxsize=1)
def shards_of(
    replica: str, shards: tuple[tuple[str, int], ...], replicas: tuple[str, ...]
) -> frozenset[ShardName]:
    """The shards that the assignment gives to one replica.

    The last answer is remembered: it is asked for in every pass and changes with pools and replicas alone.

    Args:
        replica: the replica whose shards are asked for.
        shards: the number of shards of each pool, sorted.
        replicas: the live ones, sorted.
    """
    items = [str(ShardName(pool, number)) for pool, count in shards for number in range(count)]
    return frozenset(
        ShardName.parse(item) for item, given in assign(items, replicas).items() if given == replica
    )
