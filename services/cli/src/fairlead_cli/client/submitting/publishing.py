"""Publishing through JetStream, pipelined. A message whose ack was lost is sent again: its job is known by its id."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence

import msgspec

from fairlead_bus import (
    Ack,
    Bus,
    BusError,
    NoStreamError,
    PayloadTooLargeError,
    Publisher,
    PublishFailedError,
    PublishUncertainError,
    RetryableBusError,
)
from fairlead_bus.errors import NO_ACK_HINT
from fairlead_cli.client.submitting.following import SubmissionName
from fairlead_cli.client.submitting.reading import Draft
from fairlead_cli.console import say
from fairlead_contracts import subjects
from fairlead_contracts.messages.submissions import peek_id

_ATTEMPTS = 3
_PAUSE_SECONDS = 0.5
_RANDOM_BYTES = 8


class SubmissionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A submission as the message to be published."""

    cluster: str
    name: SubmissionName
    """Tenant and submission id under which its answers arrive."""
    payload: bytes
    msg_id: str

    @property
    def subject(self) -> str:
        """The subject to publish it on."""
        return subjects.submit(self.cluster, self.name[0])


def pack(draft: Draft) -> SubmissionMessage:
    """The message of a draft.

    The message id says where the answer to an id that cannot be read is heard, and nothing else. Nobody can guess it: a
    server may drop what comes under an id that another tenant has used a moment ago.
    """
    payload = msgspec.json.encode(draft.body)
    msg_id = f"cli-{secrets.token_hex(_RANDOM_BYTES)}"
    name = draft.tenant, peek_id(payload) or msg_id
    return SubmissionMessage(cluster=draft.cluster, name=name, payload=payload, msg_id=msg_id)


async def publish_all(
    bus: Bus, messages: Sequence[SubmissionMessage], *, failed: Callable[[SubmissionName, str], None]
) -> list[SubmissionName]:
    """Publish every message; those whose ack did not come are sent again, and so are those for which there is no room.

    Args:
        messages: messages to publish, in this order.
        failed: hears of each that could not be stored, and why.

    Returns:
        The submissions that are stored.
    """
    stored: list[SubmissionName] = []
    left = list(messages)
    attempts, unacked = 0, False
    while left:
        attempts += 1
        last = attempts == _ATTEMPTS
        again = []
        for message, error in await _publish_once(bus, left):
            if isinstance(error, RetryableBusError) and not isinstance(error, NoStreamError) and not last:
                again.append(message)
            elif error is not None:
                unacked = unacked or isinstance(error, PublishUncertainError)
                failed(message.name, _problem(message, error))
            else:
                stored.append(message.name)
        if len(again) < len(left):
            attempts = 0  # as long as some are stored, there will be room for the others
        left = again
        if left:
            await asyncio.sleep(_PAUSE_SECONDS)
    if unacked:
        say(NO_ACK_HINT)
    return stored


async def _publish_once(
    bus: Bus, messages: Sequence[SubmissionMessage]
) -> list[tuple[SubmissionMessage, BusError | None]]:
    """Publishes each once; gives why it is not stored, or None."""
    acks: list[asyncio.Future[Ack] | BusError] = []
    publisher = Publisher(bus)
    for message in messages:
        try:
            acks.append(await publisher.put(message.subject, message.payload, msg_id=message.msg_id))
        except BusError as error:
            acks.append(error)
    with contextlib.suppress(PublishFailedError):  # each future tells its own failure below
        await publisher.flush()
    return [(message, await _failure(ack)) for message, ack in zip(messages, acks, strict=True)]


async def _failure(ack: "asyncio.Future[Ack] | BusError") -> BusError | None:
    if isinstance(ack, BusError):
        return ack
    try:
        await ack
    except BusError as error:
        return error
    return None


def _problem(message: SubmissionMessage, error: BusError) -> str:
    match error:
        case NoStreamError():
            return f"no cluster {message.cluster!r} is known here"
        case PayloadTooLargeError():
            return f"the body is too large: {error}"
        case _:
            return f"could not be stored: {error}"
