"""Dry run: decides every shard and says what would be published; owns, publishes and answers nothing."""

import asyncio
from collections.abc import Callable

from fairlead_contracts.base.instants import Micros
from fairlead_runtime.waiting import wake_or_timeout
from fairlead_scorer.decide.decision import DecisionContent, decide, same
from fairlead_scorer.decide.shard_ownership import ShardDecision, ShardName
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.state.state_view import StateView


async def run_dry(
    state_view: StateView,
    record: ScorerRecord,
    *,
    wake: asyncio.Event,
    pace: float,
    now: Callable[[], Micros],
) -> None:
    """Observes, decides and logs, until cancelled: the scorer's loop without its effects.

    Args:
        state_view: the known state and policy.
        record: says what would be published.
        wake: set whenever something changed.
        pace: the shortest time between two passes, in seconds.
        now: the wall clock.
    """
    said: dict[ShardName, DecisionContent] = {}
    while True:
        await wake_or_timeout(wake, None)
        await state_view.observe()
        for name, pool in state_view.cache.pools.items():
            for number in sorted(pool.dirty) if state_view.is_current(name) else ():
                shard, content = ShardName(name, number), decide(pool, number, now())
                pool.mark_clean(number)
                if shard in said and same(said[shard], content):
                    continue
                said[shard] = content
                clusters = tuple(sorted(pool.shape.clusters))
                decided = ShardDecision(content=content, state_seq=state_view.seq, clusters=clusters)
                record.would_publish(shard, decided)
        await asyncio.sleep(pace)
