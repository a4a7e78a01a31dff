"""The state of one cluster on NATS, held against what its owner knows to be true."""

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import JetStreamNotFoundError, NotProvisionedError, ReplayBrokenError
from fairlead_bus.streams.feed import Feed
from fairlead_bus.streams.mirror import is_deletion
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.state import STATE, State, is_stated_at

REPLAY_SECONDS = 300.0
UNSTAMPED = 0
"""Epoch or revision that an owner leaves to the announcer: always the epoch; the revision, too, where the owner keeps
none."""


class Comparison:
    """A replay of one cluster's subjects, each message judged as it comes: nothing that is right is kept twice.

    Args:
        truth: the owner's objects by subject. What changes in it during the replay is to be stated anew in any case.
        epoch: the owner's. A message of a later epoch is forged: mirrors would keep it for ever.
    """

    def __init__(self, bus: Bus, cluster: str, truth: Mapping[str, State], epoch: int) -> None:
        self._bus = bus
        self._cluster = cluster
        self._truth = truth
        self._epoch = epoch
        self._mark = subjects.mark(cluster)
        self.found: dict[str, State] = {}
        """State on NATS that can be read, by subject, but for the mark; the owner's own object where it says the
        same."""
        self.wrong: set[str] = set()
        """Subjects that differ from the truth as it was when they came by, that one of both lacks, or that cannot be
        read."""
        self.forged: set[str] = set()
        """Wrong subjects that no owner wrote: they are put right over whatever stamp stands there."""
        self.seq = 0
        """Stream sequence up to which the replay went."""

    async def run(self) -> None:
        """Looks at all that stands.

        Raises:
            ReplayBrokenError: not all was seen; what was found is worth nothing.
            NotProvisionedError: the stream is missing.
            RetryableBusError: NATS is away.
        """
        filtered = subjects.state_filter(self._cluster)
        feed = Feed(self._bus, stream=topology.STATE, subject=filtered, deliver=self._judge, sliced=True)
        try:
            async with feed, asyncio.timeout(REPLAY_SECONDS):
                await feed.catch_up()
        except TimeoutError as error:
            text = f"the state of {self._cluster} was not replayed in {REPLAY_SECONDS} s"
            raise ReplayBrokenError(text) from error
        except JetStreamNotFoundError as error:
            raise NotProvisionedError(f"stream {topology.STATE}") from error
        self.seq = feed.seq
        self.wrong |= self._truth.keys() - self.found.keys()

    def _judge(self, message: Msg, seq: int) -> None:
        del seq
        subject = message.subject
        if subject == self._mark:
            return
        self.wrong.discard(subject)
        self.forged.discard(subject)
        self.found.pop(subject, None)
        if message.headers is not None and is_deletion(message.headers):
            return
        state: State | None = None
        with contextlib.suppress(ContractError):
            state = STATE.decode(message.data)
        if state is None or not is_stated_at(subject, state) or state.epoch > self._epoch:
            self.forged.add(subject)
            self.wrong.add(subject)
            return
        truth = self._truth.get(subject)
        if truth is not None and says_the_same(state, truth):
            self.found[subject] = truth
        else:
            self.found[subject] = state
            self.wrong.add(subject)


def differing(found: Mapping[str, State], truth: Mapping[str, State]) -> set[str]:
    """Subjects that say something else than the truth, or that one of both lacks."""
    unknown = found.keys() - truth.keys()
    return unknown | {
        subject for subject, state in truth.items() if not says_the_same(found.get(subject), state)
    }


def says_the_same(found: State | None, truth: State) -> bool:
    """Whether both say the same, apart from the stamp that the announcer puts in."""
    if found is None:
        return False
    if found is truth:
        return True
    rev = UNSTAMPED if truth.rev == UNSTAMPED else found.rev
    return msgspec.structs.replace(found, epoch=UNSTAMPED, rev=rev) == truth
