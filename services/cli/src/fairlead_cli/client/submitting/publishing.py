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
    RetryableBusError,
)
from fairlead_cli.client.submitting.reading import Draft
from fairlead_contracts import subjects
from fairlead_contracts.messages.submissions import peek_id

_ATTEMPTS = 3
_PAUSE_SECONDS = 0.5
_RANDOM_BYTES = 8


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A message ready to be published."""

    cluster: str
    tenant: str
    id: str
    """Submission id under which its answers arrive."""
    subject: str
    payload: bytes
    msg_id: str


class PublishOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one publish."""

    parcel: Parcel
    problem: str = ""
    """Reason for which it is not stored; empty where it is."""


def pack(draft: Draft) -> Parcel:
    """The message of a draft.

    The message id says where the answer to an id that cannot be read is heard, and nothing else. Nobody can guess it: a
    server may drop what comes under an id that another tenant has used a moment ago.
    """
    payload = draft.payload()
    msg_id = f"cli-{secrets.token_hex(_RANDOM_BYTES)}"
    return Parcel(
        cluster=draft.cluster,
        tenant=draft.tenant,
        id=peek_id(payload) or msg_id,
        subject=subjects.submit(draft.cluster, draft.tenant),
        payload=payload,
        msg_id=msg_id,
    )


async def publish_all(
    bus: Bus, parcels: Sequence[Parcel], *, told: Callable[[PublishOutcome], None]
) -> list[PublishOutcome]:
    """Publish every parcel; those whose ack did not come are sent again, and so are those for which there is no room.

    Args:
        bus: the connection.
        parcels: messages to publish, in this order.
        told: hears of each that could not be stored.
    """
    found: list[PublishOutcome] = []
    left = list(parcels)
    attempts = 0
    while left:
        attempts += 1
        last = attempts == _ATTEMPTS
        again = []
        for sent, error in await _publish_once(bus, left):
            if isinstance(error, RetryableBusError) and not isinstance(error, NoStreamError) and not last:
                again.append(sent.parcel)
                continue
            found.append(sent)
            if sent.problem:
                told(sent)
        if len(again) < len(left):
            attempts = 0  # as long as some are stored, there will be room for the others
        left = again
        if left:
            await asyncio.sleep(_PAUSE_SECONDS)
    return found


async def _publish_once(bus: Bus, parcels: Sequence[Parcel]) -> list[tuple[PublishOutcome, BusError | None]]:
    acks: list[tuple[Parcel, asyncio.Future[Ack] | BusError]] = []
    publisher = Publisher(bus)
    for parcel in parcels:
        try:
            future = await publisher.put(parcel.subject, parcel.payload, msg_id=parcel.msg_id)
        except BusError as error:
            acks.append((parcel, error))
        else:
            acks.append((parcel, future))
    with contextlib.suppress(PublishFailedError):  # each future tells its own failure below
        await publisher.flush()
    return [await _outcome(parcel, ack) for parcel, ack in acks]


async def _outcome(
    parcel: Parcel, ack: "asyncio.Future[Ack] | BusError"
) -> tuple[PublishOutcome, BusError | None]:
    if isinstance(ack, BusError):
        return PublishOutcome(parcel=parcel, problem=_problem(parcel, ack)), ack
    try:
        await ack
    except BusError as error:
        return PublishOutcome(parcel=parcel, problem=_problem(parcel, error)), error
    return PublishOutcome(parcel=parcel), None


def _problem(parcel: Parcel, error: BusError) -> str:
    if isinstance(error, NoStreamError):
        return f"no cluster {parcel.cluster!r} is known here"
    if isinstance(error, PayloadTooLargeError):
        return f"the body is too large: {error}"
    return f"could not be stored: {error}"
