"""A message as a stream delivers it."""

from collections.abc import Mapping

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.jetstream import MSG_ID
from fairlead_contracts.base.instants import Micros

_ACKED_ON = "$JS.ACK."
_TOKENS = 9
_NANOS_PER_MICRO = 1000


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message and what the server says of it."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    stream_seq: int
    deliveries: int
    """Number of this delivery: 1 for the first time."""
    at: Micros
    """The instant at which the server stored it."""
    behind: int = 0
    """Number of messages that the server had not delivered yet when it delivered this one."""

    @property
    def msg_id(self) -> str | None:
        """The message's Nats-Msg-Id."""
        return self.headers.get(MSG_ID)

    @property
    def is_named_in_text(self) -> bool:
        r"""Whether the subject is valid UTF-8. The connection spells other bytes out, as `\xff`; no name is written with `\`."""
        return "\\" not in self.subject


def is_delivery(message: Msg) -> bool:
    """Whether a stream's message came, and not the server's own word on a consumer: a heartbeat, the end of a pull.

    Trap: both may have a `Status` header, as whoever publishes chooses the headers. Only what a stream delivers is
    acknowledged on `$JS.ACK`: the server writes that reply, whatever the publisher's was.
    """
    return bool(message.reply.startswith(_ACKED_ON))


def read_delivery(message: Msg) -> Delivery:
    """The delivery in a message of a consumer.

    Its reply subject is `$JS.ACK[.<domain>.<account>].<stream>.<consumer>.<deliveries>.<stream seq>.<consumer
    seq>.<nanoseconds>.<pending>[.<random>]`.
    """
    tokens = message.reply.split(".")
    first = 0 if len(tokens) == _TOKENS else 2
    deliveries, stream_seq, _, nanos, behind = tokens[4 + first : 9 + first]
    return Delivery(
        subject=message.subject,
        payload=message.data,
        headers=message.headers or {},
        stream_seq=int(stream_seq),
        deliveries=int(deliveries),
        at=int(nanos) // _NANOS_PER_MICRO,
        behind=int(behind),
    )
