"""A pool's merged heads, as deep as they are needed, and its window in this cluster, which is taken from them.

Each shard publishes the first positions of each queue; together they are many times the window. The parts are in order
already, so a prefix of each is enough: the merge of the prefixes is the beginning of the whole merge up to the first
position that is the last of a prefix that was cut. What lies behind is merged only if the window reaches that far.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from fairlead_admitter.observe.decision_gate import DecisionOrigin, PoolHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.window import Candidate, Window, WindowSize, take_window
from fairlead_policy.order.merging import merge_positions
from fairlead_policy.rules.pool_rules import PoolRules

_DEEPER = 4


class MergedHeads(msgspec.Struct, frozen=True):
    """The first of a pool's merged heads, exact."""

    positions: list[Position]
    origins: dict[str, DecisionOrigin]
    whole: bool
    """Whether these are all of them."""


class MergedOrder:
    """The merge of one pool's heads at one instant: one value, of which no more is worked out than was asked for.

    What is worked out is a cache, and it only grows: each beginning is a prefix of the whole merge. So a window that closes
    by its own rule is the same from any beginning that reaches so far, and who asks does not show in what others get.

    Args:
        heads: the decisions, of one basis.
        now: the instant at which all keys are compared.
        size: number of positions of a queue that are its heads: a first guess at the depth.
    """

    def __init__(self, heads: PoolHeads, rules: PoolRules, now: Micros, size: int) -> None:
        self.heads = heads
        self._rules = rules
        self._now = now
        self._size = size
        self._parts = heads.parts()
        submitted = (position.submitted for _, positions in self._parts for position in positions)
        self._oldest = None if rules.cap is None else min(submitted, default=None)
        deepest = max((len(positions) for _, positions in self._parts), default=1)
        self.much = deepest > size
        """Whether heads go beyond the policy's `window`, as much came free at once."""
        # Past the aging cap positions move against each other by time alone: a part's own order is of its own instant.
        self._depth = deepest if self.moves_at(now) else 2 * size // max(1, len(self._parts)) + 8
        self.beginning = self._merge()

    def deepen(self) -> MergedHeads:
        """The beginning, worked out further than before."""
        self._depth *= _DEEPER
        self.beginning = self._merge()
        return self.beginning

    def known(self) -> MergedHeads:
        """The beginning to go by without a window: all of it where much is free."""
        while self.much and not self.beginning.whole:
            self.deepen()
        return self.beginning

    def moves_at(self, now: Micros) -> bool:
        """Whether time alone may have moved its positions at that instant: one of them waits for longer than the cap."""
        cap = self._rules.cap
        return cap is not None and self._oldest is not None and self._oldest < now - cap

    def _merge(self) -> MergedHeads:
        merged = merge_positions(
            [positions[: self._depth] for _, positions in self._parts], self._rules, self._now
        )
        cut = {part[: self._depth][-1].uid for origin, part in self._parts if self._goes_on(origin, part)}
        if cut:
            end = next(number for number, position in enumerate(merged) if position.uid in cut)
            merged = merged[: end + 1]
        origins = {
            position.uid: origin for origin, positions in self._parts for position in positions[: self._depth]
        }
        return MergedHeads(merged, origins, all(len(part) <= self._depth for _, part in self._parts))

    def _goes_on(self, origin: DecisionOrigin, part: list[Position]) -> bool:
        """Whether others of a part may stand before what is merged behind its last one here.

        They are not worked out; or not even known, as parts are of different depths where much is free.
        """
        heads = origin.heads
        unknown = self.much and heads.waiting > len(part) >= self._size and not heads.flavorless
        return unknown or len(part) > self._depth


class Ranked(msgspec.Struct, frozen=True):
    """A position among the merged heads whose job waits in this cluster."""

    rank: int
    position: Position | None
    """The job's position; None where the job keeps it although the order does not show it."""
    job: JobState


def take_heads(
    beginning: MergedHeads,
    waiting: Mapping[str, int],
    facts: ClusterFacts,
    window_size: WindowSize,
    *,
    left_alone: Callable[[JobState], bool] = lambda _: False,
) -> Window[Ranked]:
    """The positions among a pool's heads that are labelled in this cluster: see `take_window`.

    Args:
        beginning: beginning of the pool's merged heads, of all clusters.
        waiting: number of jobs that wait in each of this cluster's queues, as the decisions say.
        window_size: tells how far the window goes.
        left_alone: whether nothing is written to a job now: it does not count, as one that no flavor takes.
    """
    window = take_window(_candidates(beginning, facts, left_alone), waiting, window_size)
    return window if window.closed else Window(window.jobs, closed=beginning.whole)


def _candidates(
    beginning: MergedHeads, facts: ClusterFacts, left_alone: Callable[[JobState], bool]
) -> Iterator[Candidate[Ranked, str]]:
    taken: set[str] = set()
    for rank, position in enumerate(beginning.positions):
        heads = beginning.origins[position.uid].heads
        if heads.cluster != facts.cluster:
            continue
        job = facts.job(position.uid)
        # A job whose tenant changed is among two shards' heads until the old one's owner has decided, too.
        if job is None or job.phase is not Phase.WAITING or job.uid in taken:
            yield Candidate(heads.queue, None, apart=bool(heads.flavorless))
        else:
            taken.add(job.uid)
            yield Candidate(
                heads.queue,
                Ranked(rank, position, job),
                job.demand,
                counts=not (job.passed_by or left_alone(job)),
                apart=bool(heads.flavorless),
            )
