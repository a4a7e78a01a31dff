"""What a second scorer's processor brings: the same pool re-scored by one process and by two, in turns."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np
from bench_lines import say
from bench_order import NOW, TENANTS, loaded, rules

JOBS = 100_000
SHARDS = 16
TURNS = 15
WINDOW = 10_000
PLAIN_NUMBERS = 400_000

type ShardWork = Callable[[int, Sequence[int]], None]
"""Does the work of some shards in a turn."""


async def scaling() -> None:
    """Re-scoring 100 k jobs on loaded mirrors, by one process and by two that share the shards.

    Beside it, in the same turns, plain work (`machine_times`): two processors of a host that others use, too, seldom do
    twice of what one does.
    """
    ends = [_replica() for _ in range(2)]
    turns = [{kind: _pair(ends, kind, number) for kind in _KINDS} for number in range(TURNS)]
    for end in ends:
        end.send(None)
    times, machine = ([turn[kind].times for turn in turns] for kind in _KINDS)
    say(
        "scaling",
        jobs=JOBS,
        turns=TURNS,
        one_ms=statistics.median(turn["rescoring"].one for turn in turns) * 1e3,
        two_ms=statistics.median(turn["rescoring"].two for turn in turns) * 1e3,
        times=statistics.median(times),
        least=min(times),
        most=max(times),
        machine_times=statistics.median(machine),
        machine_least=min(machine),
        machine_most=max(machine),
        of_machine=statistics.median(ours / plain for ours, plain in zip(times, machine, strict=True)),
        aim=1.7,
    )


def _rescoring() -> ShardWork:
    """The scorer's work when weights change: the heads of all its shards anew."""
    pool, _ = loaded(JOBS)
    lanes = [[f"team-{n}" for n in range(TENANTS) if n % SHARDS == shard] for shard in range(SHARDS)]

    def rescore(turn: int, shards: Sequence[int]) -> None:
        pool.set_rules(rules(turn))
        for shard in shards:
            pool.at(NOW).queue_heads(WINDOW, lanes[shard])

    return rescore


def _plain() -> ShardWork:
    """Sorts and sums, nothing of which two processes share."""
    numbers = np.arange(PLAIN_NUMBERS, dtype=np.int64) * 7919 % 1_000_003

    def work(turn: int, shards: Sequence[int]) -> None:
        for _ in shards:
            np.sort(numbers + turn)
            sum(number * number for number in range(100_000))

    return work


_KINDS: Mapping[str, Callable[[], ShardWork]] = {"rescoring": _rescoring, "plain": _plain}


class _Pair(NamedTuple):
    one: float
    two: float
    """Seconds for the same work by one process and by two."""

    @property
    def times(self) -> float:
        return self.one / self.two


def _pair(ends: Sequence[Connection], kind: str, number: int) -> _Pair:
    alone = [(ends[number % 2], range(SHARDS))]
    both = [(end, range(share, SHARDS, len(ends))) for share, end in enumerate(ends)]
    if number % 2:  # each turn the other way round: the host's swings harm both alike
        two = _seconds(kind, 2 * number + 1, both)
        return _Pair(_seconds(kind, 2 * number, alone), two)
    return _Pair(_seconds(kind, 2 * number, alone), _seconds(kind, 2 * number + 1, both))


def _seconds(kind: str, number: int, shares: Sequence[tuple[Connection, range]]) -> float:
    """Seconds until the last of the processes has done its share."""
    start = time.perf_counter()
    for end, shards in shares:
        end.send((kind, number, shards))
    for end, _ in shares:
        end.recv()
    return time.perf_counter() - start


def _replica() -> Connection:
    """The parent's end of a process that has loaded all it needs."""
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=_serve, args=(theirs,), daemon=True).start()
    ours.recv()
    return ours


def _serve(orders: Connection) -> None:
    works = {kind: made() for kind, made in _KINDS.items()}
    orders.send(None)
    for kind, number, shards in iter(orders.recv, None):
        works[kind](number + 1, shards)  # with other weights than those that it was loaded with
        orders.send(None)
