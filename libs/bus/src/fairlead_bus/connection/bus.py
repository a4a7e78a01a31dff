"""A service's connection to NATS."""

import asyncio
import math
import os
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from fairlead_bus.connection import trace
from fairlead_bus.connection.client_import import enable_websockets
from fairlead_bus.connection.endpoints import ERROR_CODE, ERROR_TEXT, Asked, Endpoint, Handler
from fairlead_bus.connection.jetstream import EXPECTED_LAST, MSG_ID, TTL, Ack, JetStream, Stored
from fairlead_bus.connection.nats_connection import REFUSED, NatsConnection
from fairlead_bus.connection.settings import ConnectionSettings
from fairlead_bus.errors import ConnectFailedError, FatalBusError, RemoteError
from fairlead_contracts.base.observer import SILENT, LibraryObserver
from fairlead_contracts.base.tokens import encode_key
from fairlead_contracts.topology import TOMBSTONE_SECONDS

OPERATION = "Fairlead-Op"
DELETE = "DEL"
STAMP = "Fairlead-Stamp"
"""Header of a tombstone: `<epoch>.<rev>` of the object as it was deleted."""

RESTATED = "Fairlead-Restated"
"""Header of a value that its owner puts back over what somebody else wrote: mirrors take it whatever stamp stood
there."""

RECONNECT_SECONDS = 0.1
_NEVER_GIVE_UP = -1
_MISSED_PINGS = 2


class Bus:
    """Publish, ask and serve over one connection."""

    def __init__(self, connection: NatsConnection, name: str) -> None:
        self.connection = connection
        """The connection below, for the pieces of this library."""
        self.jetstream = JetStream(connection)
        """JetStream's API, for the pieces of this library."""
        self.name = name

    @property
    def observer(self) -> LibraryObserver:
        """The object that hears of reconnects, errors and lost messages."""
        return self.connection.observer

    @property
    def incarnation(self) -> str:
        """The id of a lone server, new at each of its starts; the cluster's name where servers are clustered.

        It changes only together with a reconnect being announced: capture it before what it shall vouch for.
        """
        return self.connection.incarnation

    @property
    def connected(self) -> bool:
        """Whether a message can be sent right now."""
        return self.connection.connected

    async def wait_closed(self) -> None:
        """Returns once the connection is closed for good: the process must exit then."""
        await self.connection.closed.wait()

    def on_connection(self, changed: Callable[[bool], None]) -> Callable[[], None]:
        """Calls `changed(False)` on a disconnect, `changed(True)` on a reconnect; returns how to stop that."""
        return self.connection.on_connection(changed)

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        msg_id: str | None = None,
        expect_last: int | None = None,
        ttl_seconds: float | None = None,
        timeout: float = 2.0,  # noqa: ASYNC109 - also decides what the error says: no ack is not "not published"
    ) -> Ack:
        """Publishes to a stream and waits for its ack.

        Args:
            headers: own headers; the active trace context is added.
            msg_id: lets the stream refuse a repeat for a while; no guarantee over a server's crash.
            expect_last: the last sequence of this very subject, 0 for none; anything else is refused.
            ttl_seconds: seconds for which the stream keeps the message; rounded up to whole ones.
            timeout: seconds to wait for the ack.

        Raises:
            PublishUncertainError: no ack came; the message may be stored all the same.
            WrongLastSequenceError: `expect_last` does not hold. It is checked before the Msg-Id: a repeat of a
                message that was stored gives this error, not `duplicate`.
            NoStreamError: no stream takes the subject.
            RefusedError, DeniedError, PayloadTooLargeError, InvalidMessageError: fatal.
            DisconnectedError, ClosedError: nothing was sent.
        """
        own = with_publish_headers(headers, msg_id=msg_id, expect_last=expect_last, ttl_seconds=ttl_seconds)
        return await self.jetstream.publish(subject, payload, headers=trace.inject(own), timeout=timeout)

    async def delete(self, subject: str, *, stamp: tuple[int, int] | None = None) -> Ack:
        """Leaves a tombstone: an empty message that stays for `TOMBSTONE_SECONDS`. Never a purge: mirrors hear nothing of one.

        Args:
            stamp: the object's epoch and rev, so that mirrors which never saw it know a late duplicate of it.
        """
        return await self.publish(
            subject, b"", headers=tombstone_headers(stamp), ttl_seconds=TOMBSTONE_SECONDS
        )

    async def last(self, stream: str, subject: str) -> Stored | None:
        """The last message of a subject, a tombstone too, from the stream's leader."""
        return await self.jetstream.last(stream, subject)

    async def request(
        self,
        subject: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 2.0,  # noqa: ASYNC109 - becomes AnswerTimeoutError, which callers retry
    ) -> bytes:
        """Asks a question and returns the answer.

        Raises:
            NobodyAnswersError: nobody serves the subject.
            AnswerTimeoutError: no answer within `timeout` seconds.
            RemoteError: the answer is an error.
            ConnectionLostError, DisconnectedError: retryable; DeniedError, PayloadTooLargeError, ClosedError: fatal.
        """
        message = await self.connection.ask(subject, payload, headers=trace.inject(headers), timeout=timeout)
        found = message.headers or {}
        if ERROR_CODE in found:
            code = found[ERROR_CODE]
            raise RemoteError(int(code) if code.isdecimal() else 500, found.get(ERROR_TEXT, ""), message.data)
        return message.data

    async def serve(self, subject: str, handle: Handler, *, queue: str | None = None) -> Endpoint:
        """Answers the questions on a subject until the endpoint is closed.

        Args:
            subject: pattern of the questions' subjects; may hold wildcards.
            handle: returns the answer; `Rejected` becomes the asker's `RemoteError`.
            queue: group of servers of which one gets each question; None gives it to all.
        """
        endpoint = Endpoint(self.connection, handle)
        await endpoint.open(subject, queue)
        return endpoint

    async def subscribe_core(
        self, subject: str, heard: Callable[[Asked], Awaitable[None]]
    ) -> Callable[[], Awaitable[None]]:
        """Calls `heard` with each message on a subject, one after the other; returns how to stop that."""

        async def listener(message: Msg) -> None:
            await heard(Asked(subject=message.subject, payload=message.data, headers=message.headers or {}))

        subscription = await self.connection.listen(subject, listener)
        return lambda: self.connection.unlisten(subscription)


def tombstone_headers(stamp: tuple[int, int] | None) -> Mapping[str, str]:
    """The headers that make an empty message a delete, with the stamp of the deleted object."""
    return {OPERATION: DELETE} if stamp is None else {OPERATION: DELETE, STAMP: f"{stamp[0]}.{stamp[1]}"}


def with_publish_headers(
    headers: Mapping[str, str] | None,
    *,
    msg_id: str | None = None,
    expect_last: int | None = None,
    ttl_seconds: float | None = None,
) -> Mapping[str, str] | None:
    """The caller's headers, untouched, with ours added.

    Trap: a TTL below a second is refused and nats-py cuts 1.9 to 1; here it is rounded up.
    """
    own: dict[str, str] = {}
    if msg_id is not None:
        own[MSG_ID] = msg_id
    if expect_last is not None:
        own[EXPECTED_LAST] = str(expect_last)
    if ttl_seconds is not None:
        own[TTL] = str(max(1, math.ceil(ttl_seconds)))
    return {**headers, **own} if headers else own or None


def _in_words(error: object) -> str:
    """The reason of a failure in words: the operating system's own, where asyncio has them around a number; empty for silence."""
    if REFUSED in str(error).lower():
        return (
            "the server does not know who we say we are, or asks and we say nothing: FAIRLEAD_NATS_* says it"
        )
    if not isinstance(error, OSError) or isinstance(error, ssl.SSLError) or error.errno is None:
        # What TLS has against a certificate stands in its text alone: its number is TLS's own.
        return str(error)
    # Resolvers count below zero, by a list of their own.
    return os.strerror(error.errno) if error.errno > 0 else error.strerror or str(error)


@asynccontextmanager
async def connect(
    settings: ConnectionSettings, *, name: str, observer: LibraryObserver = SILENT
) -> AsyncIterator[Bus]:
    """Connects, and stays connected: later losses are retried for ever.

    Args:
        name: the role's name. Our inboxes are named after the public key that we connect as, which no two users share, or
            after the role where we have none.

    Raises:
        ConnectFailedError: no server let us in within the settings' time; or a WebSocket's library is missing.
        InvalidCredentialsError: the seed or the credentials file is none.
    """
    enable_websockets(settings.servers())
    identity = settings.identity()
    connection = NatsConnection(observer, lambda: _has_other_key(settings, identity))
    try:
        # Trap: the first connect retries a dead port for ever, with or without reconnects allowed.
        async with asyncio.timeout(settings.connect_timeout_seconds):
            await connection.open(_options(settings, name, identity or name))
    except TimeoutError as error:
        await connection.close()
        raise ConnectFailedError(
            f"no connection to {settings.redacted()['url']}: {_in_words(connection.last_error or '') or 'no answer'}"
        ) from error
    try:
        yield Bus(connection, name)
    finally:
        await connection.close()


def _has_other_key(settings: ConnectionSettings, identity: str | None) -> bool:
    try:
        return settings.identity() != identity
    except FatalBusError:
        return False  # it is being written just now


def inbox_prefix(name: str) -> str:
    """The beginning of the inboxes of all who connect under this name, or with this public key."""
    return f"_INBOX_{encode_key(name)}"


def _options(settings: ConnectionSettings, name: str, inbox: str) -> dict[str, object]:
    return {
        "servers": settings.servers(),
        "name": name,
        "inbox_prefix": inbox_prefix(inbox),
        # Trap: the default gives up after 60 attempts a server.
        "max_reconnect_attempts": _NEVER_GIVE_UP,
        # Jittered, so that a fleet does not come back in step.
        "reconnect_time_wait": RECONNECT_SECONDS * random.uniform(0.5, 1.5),  # noqa: S311 - not a secret
        "connect_timeout": 2,
        "ping_interval": settings.ping_interval_seconds,
        "max_outstanding_pings": _MISSED_PINGS,
        # Refuses to publish while disconnected: see UnbufferedClient.
        "pending_size": 0,
        "user": settings.user,
        "password": settings.password,
        "token": settings.token,
        "user_credentials": settings.creds,
        "nkeys_seed_str": settings.seed(),
        "tls": settings.tls(),
    }
