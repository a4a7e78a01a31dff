"""The scene: what is known now of all clusters and of the policy, and whether it may be decided from."""

import asyncio
from collections.abc import Iterator

from fairlead_bus import Bus, Mirror
from fairlead_contracts import subjects
from fairlead_contracts.state import STATE, State
from fairlead_contracts.topology import STATE as STATE_STREAM
from fairlead_policy import OperatorWords
from fairlead_scorer.ledger import Ledger
from fairlead_scorer.policy_reader import PolicyReader
from fairlead_scorer.record import Record


class Scene:
    """Mirrors of state and policy, read into a ledger.

    Args:
        bus: the connection.
        wake: set whenever there is something to observe.
        record: hears of policies.
    """

    def __init__(self, bus: Bus, wake: asyncio.Event, record: Record) -> None:
        self._bus = bus
        self._record = record
        self._state: Mirror[State] = Mirror(
            bus,
            stream=STATE_STREAM,
            filter=subjects.state_filter(),
            codec=STATE,
            wake=wake,
            stamp=lambda state: (state.epoch, state.rev),
        )
        self._policy = PolicyReader(bus, wake, record)
        self._adopted: int | None = None
        self._taking_in = False
        self.ledger = Ledger()
        self.seq = 0
        """The state-stream sequence that the ledger has taken in."""

    async def run(self) -> None:
        """Follows state and policy until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._state.run(), name="state mirror")
            group.create_task(self._policy.run(), name="policy reader")

    async def observe(self) -> None:
        """Takes in all that changed since the last time, several changes of an object as one."""
        changes = self._state.take()
        self._taking_in = True
        await _step_by_step(self.ledger.learning(changes.changed))
        await self._follow_policy()
        self._taking_in = False
        self.seq = changes.seq
        self._record.observed(len(changes.changed))

    async def _follow_policy(self) -> None:
        policy = self._policy.current
        if policy is None and self._adopted is not None:
            self.ledger.abandon()
            self._adopted = None
        elif policy is not None and policy.revision != self._adopted:
            await _step_by_step(self.ledger.adopting(policy.document, policy.revision))
            self._adopted = policy.revision
            self._record.adopted(policy.revision)

    @property
    def words(self) -> OperatorWords:
        """What operators said."""
        return self._policy.words

    @property
    def complete(self) -> bool:
        """Whether all state that stands is known and taken in."""
        return self._bus.connected and self._state.complete and not self._taking_in

    @property
    def known(self) -> bool:
        """Whether state and policy are known and taken in."""
        return self.complete and self.ledger.rulebook is not None

    def unmarked(self, pool: str) -> list[str]:
        """The clusters whose word on their state a pool still lacks."""
        return self.ledger.unmarked(pool, self._bus.incarnation)

    def is_current(self, pool: str) -> bool:
        """Whether the pool may be decided from what is known.

        A server that crashed can bring deleted objects back, so each of its clusters must have put its state right
        since this server started.
        """
        return self.complete and pool in self.ledger.pools and not self.unmarked(pool)

    def why_no_state(self) -> str | None:
        """Why nothing can be decided: the state is not known yet."""
        if not self._bus.connected:
            return "not connected to NATS"
        if not self._state.complete:
            return "the replay of the state is not complete yet"
        return "a large change is being taken in" if self._taking_in else None

    def why_no_policy(self) -> str | None:
        """Why nothing can be decided: there is no policy."""
        return self._policy.why_not_ready()


async def _step_by_step(steps: Iterator[None]) -> None:
    """Lets others run between the steps: leases are renewed and questions answered meanwhile."""
    for _ in steps:
        await asyncio.sleep(0)
