"""The state view: what is known now of all clusters and of the policy, and whether it may be decided from."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from fairlead_bus import Bus
from fairlead_bus.facts.mirrors import decision_mirror, state_mirror
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import STATED_PAST_USE
from fairlead_policy.levels.operators import OperatorWords
from fairlead_policy.usage.past import tick_of
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.past import SETTLE_AFTER
from fairlead_scorer.state.policy_reader import PolicyObserver, PolicyReader
from fairlead_scorer.state.run_history import RunHistory


class StateObserver(PolicyObserver, Protocol):
    """Hears what is taken in."""

    def observed(self, changes: int) -> None:
        """Hears how many changes a pass took in."""

    def adopted(self, revision: int) -> None:
        """Hears that a policy document was taken on."""

    def clock_ahead(self, pool: str, shard: int, *, ours: bool) -> None:
        """Hears that a shard's past use is settled to an instant that is yet to come."""

    def heard(self, runs: int) -> None:
        """Hears of how many ended runs events told."""


class StateView:
    """Mirrors of state and policy, read into a cache.

    Args:
        bus: the connection.
        wake: set whenever there is something to observe.
        record: hears of policies.
        now: the clock.
    """

    def __init__(
        self, bus: Bus, wake: asyncio.Event, record: StateObserver, now: Callable[[], Micros]
    ) -> None:
        self._bus = bus
        self._record = record
        self._state = state_mirror(bus, wake=wake)
        self._policy = PolicyReader(bus, wake, record)
        self._now = now
        self._wake = wake
        self._heard = asyncio.Event()
        self._kept = decision_mirror(bus, STATED_PAST_USE, self._heard)
        self._history = RunHistory(bus, wake)
        self._past_counts = asyncio.Event()
        """Event, set once a policy has past use count: until then neither decisions nor events are read."""
        self._past_known = False
        self._adopted: int | None = None
        self._taking_in = False
        self.cache = ClusterCache()
        self.seq = 0
        """The state-stream sequence that the cluster cache has taken in."""

    async def run(self) -> None:
        """Follows state and policy until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._state.run(), name="state mirror")
            group.create_task(self._policy.run(), name="policy reader")
            await self._past_counts.wait()
            group.create_task(self._kept.run(), name="mirror of what is kept")
            group.create_task(self._wake_on_kept(), name="what is kept is known")
            group.create_task(self._history.run(), name="journal")

    async def observe(self, ours: Callable[[str, int], bool] = lambda _pool, _shard: False) -> None:
        """Takes in all that changed since the last time, several changes of an object as one.

        Args:
            ours: whether we own a shard of a pool: we need not hear our own statements on it.
        """
        changes = self._state.take()
        self._taking_in = True
        await _step_by_step(self.cache.learning(changes.changed))
        await self._follow_policy()
        self._follow_past(ours)
        self._taking_in = False
        self.seq = changes.seq
        self._record.observed(len(changes.changed))

    async def _follow_policy(self) -> None:
        policy = self._policy.current
        if policy is None and self._adopted is not None:
            self.cache.abandon()
            self._adopted = None
        elif policy is not None and policy.revision != self._adopted:
            await _step_by_step(self.cache.adopting(policy.document, policy.revision))
            self._adopted = policy.revision
            self._record.adopted(policy.revision)

    async def _wake_on_kept(self) -> None:
        """Wakes the scorer once all statements of past use are known: it needs them only when it takes a shard over."""
        known = False
        while True:
            await self._heard.wait()
            self._heard.clear()
            if self._kept.complete is not known:
                known = self._kept.complete
                self._wake.set()

    def _follow_past(self, ours: Callable[[str, int], bool]) -> None:
        rulebook = self.cache.rulebook
        if rulebook is None or rulebook.half_life is None:
            return
        self._past_counts.set()
        stated = self._kept.take().changed.values()
        told = (statement for statement in stated if statement is not None)
        for statement in self.cache.follow(told, ours, self._now()):
            self._record.clock_ahead(statement.pool, statement.shard, ours=False)
        if self._kept.complete and self._state.complete:
            horizon = self.cache.horizon(self._bus.incarnation)
            fresh = self._now() - SETTLE_AFTER - 2 * tick_of(rulebook.half_life)
            self._history.want(fresh if horizon is None else horizon)
        self._past_known = self._kept.complete and self._history.complete
        runs = self._history.take()
        self.cache.hear(runs)
        self._record.heard(len(runs))

    @property
    def words(self) -> OperatorWords:
        """The words of operators."""
        return self._policy.words

    @property
    def complete(self) -> bool:
        """Whether all state that stands is known and taken in."""
        return self._bus.connected and self._state.complete and not self._taking_in

    @property
    def known(self) -> bool:
        """Whether state and policy are known and taken in."""
        return self.complete and self.cache.rulebook is not None

    def unmarked(self, pool: str) -> list[str]:
        """The clusters whose word on their state a pool still lacks."""
        return self.cache.unmarked(pool, self._bus.incarnation)

    def is_current(self, pool: str) -> bool:
        """Whether the pool may be decided from what is known.

        A server that crashed can bring deleted objects back, so each of its clusters must have put its state right
        since this server started.
        """
        if not self.complete or pool not in self.cache.pools or self.unmarked(pool):
            return False
        past_known = self._past_known and self._kept.complete and self._history.complete
        return past_known or self.cache.pools[pool].past is None

    def why_no_state(self) -> str | None:
        """The reason for which the state keeps anything from being decided; None where it is known."""
        if not self._bus.connected:
            return "it is not connected to NATS"
        if not self._state.complete:
            return f"it still reads the state from NATS{self._state.setback}"
        return "it is taking in a large change" if self._taking_in else None

    def why_no_policy(self) -> str | None:
        """The reason for which the policy keeps anything from being decided; None where there is one."""
        return self._policy.why_not_ready()


async def _step_by_step(steps: Iterator[None]) -> None:
    """Runs the steps, and lets other tasks run in between: leases are renewed and questions answered meanwhile."""
    for _ in steps:
        await asyncio.sleep(0)
