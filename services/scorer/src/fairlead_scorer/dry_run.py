"""Dry run: decides every shard and says what would be published; owns, publishes and answers nothing."""

import asyncio
from collections.abc import Callable

from fairlead_contracts.base.instants import Micros
from fairlead_runtime.waiting import wake_or_timeout
from fairlead_scorer.decide.decision import Content, decide, same
from fairlead_scorer.decide.shard_ownership import Decided, ShardName
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.state.state_view import StateView


class DryRun:
    """The scorer's loop without its effects.

    Args:
        state_view: the known state and policy.
        record: says what would be published.
        wake: set whenever something changed.
        pace: the shortest time between two passes, in seconds.
        now: the wall clock.
    """

    def __init__(
        self,
        state_view: StateView,
        record: ScorerRecord,
        *,
        wake: asyncio.Event,
        pace: float,
        now: Callable[[], Micros],
    ) -> None:
        self._state_view = state_view
        self._record = record
        self._wake = wake
        self._pace = pace
        self._now = now
        self._said: dict[ShardName, Content] = {}

    async def run(self) -> None:
        """Observes, decides and logs, until cancelled."""
        while True:
            await wake_or_timeout(self._wake, None)
            await self._state_view.observe()
            for name, pool in self._state_view.cache.pools.items():
                if self._state_view.is_current(name):
                    for number in sorted(pool.dirty):
                        self._say(ShardName(name, number))
                        pool.mark_clean(number)
            await asyncio.sleep(self._pace)

    def _say(self, shard: ShardName) -> None:
        pool = self._state_view.cache.pools[shard.pool]
        content = decide(pool, shard.number, self._now())
        said = self._said.get(shard)
        if said is None or not same(said, content):
            self._said[shard] = content
            clusters = tuple(sorted(pool.shape.clusters))
            decided = Decided(content=content, state_seq=self._state_view.seq, clusters=clusters)
            self._record.would_publish(shard, decided)
