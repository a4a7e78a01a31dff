"""Counts of a worker's attempts at its messages, its own ones.

The server counts deliveries, and each hand-back is one: a message that waited out an outage has many, and never failed.
So failures are counted here. What the server's count is good for is the message that kills its worker, of which nobody
is left to count: so many deliveries that nothing here explains are too many.
"""

from collections import OrderedDict

import msgspec

from fairlead_bus.streams.delivery import Delivery

REMEMBERED = 65_536
"""Messages whose attempts are remembered; a forgotten one begins anew."""


class _Tries(msgspec.Struct):
    failures: int = 0
    explained: int = 0
    """Deliveries that ended in a failure or a hand-back of ours."""


class Attempts:
    """Failures and hand-backs by stream sequence."""

    def __init__(self) -> None:
        self._tries: OrderedDict[int, _Tries] = OrderedDict()

    def unfinished(self, delivery: Delivery) -> int:
        """Number of earlier deliveries of the message whose end is not known here."""
        tries = self._tries.get(delivery.stream_seq)
        return delivery.deliveries - 1 - (0 if tries is None else tries.explained)

    def failed(self, delivery: Delivery) -> int:
        """Notes a try that failed; returns how many have by now."""
        tries = self._tries_of(delivery)
        tries.failures += 1
        tries.explained += 1
        return tries.failures

    def handed_back(self, delivery: Delivery) -> int:
        """Notes that a message was given back for no fault of its own; returns how often it came back before."""
        tries = self._tries_of(delivery)
        tries.explained += 1
        return tries.explained - 1

    def over(self, delivery: Delivery) -> None:
        """Forgets a message that is settled for good."""
        self._tries.pop(delivery.stream_seq, None)

    def _tries_of(self, delivery: Delivery) -> _Tries:
        tries = self._tries.setdefault(delivery.stream_seq, _Tries())
        self._tries.move_to_end(delivery.stream_seq)
        if len(self._tries) > REMEMBERED:
            self._tries.popitem(last=False)
        return tries
