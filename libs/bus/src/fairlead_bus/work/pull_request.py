"""A worker's request for the next messages of its durable. One is open at a time."""

import time

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from fairlead_bus.connection.client import Sink
from fairlead_bus.connection.nats_connection import NatsConnection
from fairlead_bus.streams.delivery import Delivery, is_delivery, read_delivery

PULL_SECONDS = 10.0
HEARTBEAT_SECONDS = 1.0
SILENCE_SECONDS = 2.2
_NANO = 1_000_000_000


class PullRequest:
    """Asks for messages, and knows how many of them may come yet."""

    def __init__(self, connection: NatsConnection, *, stream: str, durable: str) -> None:
        self._connection = connection
        self._verb = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._outstanding = 0
        self._heard = 0.0
        """Monotonic seconds at which the server was last heard on the inbox."""
        self.behind = 0
        """Number of messages that stood behind the last one when it was delivered."""

    @property
    def is_over(self) -> bool:
        """Whether no more messages come."""
        return self._outstanding == 0

    @property
    def is_silent(self) -> bool:
        """Whether the request is open and the server sent no heartbeat: its messages may never come."""
        return not self.is_over and time.monotonic() - self._heard > SILENCE_SECONDS

    async def send(self, batch: int, sink: Sink) -> None:
        """Asks for so many messages. The inbox is fresh after each doubt: an old request whose inbox is gone gets nothing.

        Raises:
            RetryableBusError: the connection is lost just now.
        """
        if self._subscription is None:
            self._inbox = self._connection.new_inbox()
            self._subscription = await self._connection.listen_inline(self._inbox, sink)
        request = {
            "batch": batch,
            "expires": int(PULL_SECONDS * _NANO),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * _NANO),
        }
        await self._connection.send(self._verb, msgspec.json.encode(request), reply=self._inbox)
        self._outstanding = batch
        self._heard = time.monotonic()

    def take_in(self, message: Msg) -> Delivery | None:
        """Notes what came on the inbox; returns the durable's message, None where the server says something else."""
        self._heard = time.monotonic()
        if not is_delivery(message):
            if (message.headers or {}).get("Status") != "100":  # 404, 408, 409, 503: this request is over
                self._outstanding = 0
            return None
        self._outstanding = max(0, self._outstanding - 1)
        delivery = read_delivery(message)
        self.behind = delivery.behind
        return delivery

    def forget(self) -> Subscription | None:
        """Forgets an open request; returns the subscription that is left to be ended."""
        self._outstanding = 0
        subscription, self._subscription = self._subscription, None
        return subscription
