import math
import random
import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_scorer.decide.shard_assignment import assign

names = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=12)


@given(names, names, st.randoms())
@settings(max_examples=100, deadline=None)
def test_every_item_has_one_live_replica_and_none_has_too_many(
    items: list[str], replicas: list[str], rng: random.Random
) -> None:
    found = assign(items, replicas)
    if not replicas:
        assert found == {}
        return
    assert set(found) == set(items)
    assert set(found.values()) <= set(replicas)
    most = math.ceil(len(items) / len(replicas))
    assert all(list(found.values()).count(replica) <= most for replica in replicas)
    shuffled = rng.sample(items, len(items)), rng.sample(replicas, len(replicas))
    assert assign(*shuffled) == found


def test_a_replica_that_goes_moves_little_more_than_its_own_part() -> None:
    """64 shards, 4 replicas: 16 must move, 18 in the median (200 simulated trials of the source)."""
    items = [f"gpu.{shard}" for shard in range(64)]
    moved = []
    for trial in range(40):
        replicas = [f"scorer-{trial}-{i}" for i in range(4)]
        before, after = assign(items, replicas), assign(items, replicas[1:])
        moved.append(sum(before[item] != after[item] for item in items))
    assert statistics.median(moved) <= 24
    assert min(moved) >= 16


def test_the_assignment_is_pinned() -> None:
    """Replicas of two releases must agree: this changes only with a stated migration."""
    assert assign(["a", "b", "c", "d"], ["x", "y"]) == PINNED


PINNED = {"a": "y", "b": "x", "c": "x", "d": "y"}
