"""The few calls of the JetStream API that the pieces here are made of, with typed answers and errors.

nats-py's own JetStream layer is left alone on purpose: its ordered consumer resumes by sequence and misses deletes
whose tombstone expired, its pull loop spins on a closed connection, its `publish` writes into the caller's headers,
and its stream update drops settings that it does not know.
"""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.nats_connection import NatsConnection, says_nobody
from fairlead_bus.errors import (
    AnswerTimeoutError,
    ConnectionLostError,
    JetStreamNotFoundError,
    JetStreamRefusedError,
    NobodyAnswersError,
    NoStreamError,
    NotProvisionedError,
    PayloadTooLargeError,
    PublishUncertainError,
    UnavailableError,
    WrongLastSequenceError,
)
from fairlead_contracts.base.instants import Micros, from_datetime
from fairlead_contracts.topology import cluster_of

API_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 2.0
"""Trap: a clustered server without a leader for a stream is silent on it. Whoever reads asks again soon: the election
takes four seconds, and what waits out a long silence is ready that much later."""

EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
MSG_ID = "Nats-Msg-Id"
TTL = "Nats-TTL"
SUBJECT, SEQUENCE, TIME = "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"
_ADDED = (SUBJECT, SEQUENCE, TIME, "Nats-Stream", "Nats-Num-Pending", "Nats-Last-Sequence")
"""Headers that the server adds to a message that it gives from a stream."""

_WRONG_LAST = frozenset({10071, 10164})
_TOO_LARGE = 10054
_NO_MESSAGE = 10037
_NOT_FOUND = 404
_PASSING_CODES = frozenset({408, 409, 429, 503})
"""Trap: 409 is 10158, "duplicate message id is in process": a clustered stream is still storing another message with this
Msg-Id, which soon is a duplicate or was lost. 503 is also what a stream says that is full."""
_PASSING_ERRORS = frozenset(
    {
        10005,  # no suitable peers for placement: too few servers are up
        10007,  # JetStream cluster not assigned to this server
        10009,  # JetStream cluster can not handle request: the leader has just changed
        10012,  # the consumer could not be created, for a reason of the server's own
        10028,  # insufficient memory resources available
        10041,  # the word of the consensus group
        10047,  # insufficient storage resources available
        10051,  # the stream failed within
        10096,  # stream not valid: it is being closed or set up anew
        10104,  # the consumer's store could not be made
        10118,  # stream is offline
        10119,  # consumer is offline
        10194,  # as 10118, with a reason
        10195,  # as 10119, with a reason
    }
)
"""Errors that pass although they come with a code (400, 500) that also wrong configurations have.

Source: server/errors.json of nats-server 2.15."""


class Ack(msgspec.Struct, frozen=True):
    """Word of a stream that it has a message."""

    seq: int
    duplicate: bool = False
    """Whether the stream had a message with this Msg-Id and did not store this one."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A message as the stream has it."""

    subject: str
    payload: bytes
    headers: dict[str, str]
    seq: int
    at: Micros
    """The instant at which the server stored it."""


class _ApiError(msgspec.Struct):
    code: int
    err_code: int = 0
    description: str = ""


class _PubAnswer(msgspec.Struct):
    error: _ApiError | None = None
    seq: int = 0
    duplicate: bool = False


class _ApiAnswer(msgspec.Struct):
    error: _ApiError | None = None


class _RawMessage(msgspec.Struct):
    subject: str
    seq: int
    time: str
    data: str = ""
    hdrs: str = ""


class _RawAnswer(msgspec.Struct):
    message: _RawMessage


class ConsumerPosition(msgspec.Struct):
    """The position of a consumer in its stream."""

    stream_seq: int = 0


class ConsumerFacts(msgspec.Struct):
    """A consumer's information, as far as it is needed here."""

    name: str
    delivered: ConsumerPosition
    config: dict[str, object]


class _StreamEnd(msgspec.Struct):
    last_seq: int


class StreamFacts(msgspec.Struct):
    """A stream's information, as far as it is needed here."""

    created: str
    """The time at which it was made, as the server writes it: a stream made anew has another one."""
    state: _StreamEnd


_stream_facts = msgspec.json.Decoder(StreamFacts)
_pub_answer = msgspec.json.Decoder(_PubAnswer)
_api_answer = msgspec.json.Decoder(_ApiAnswer)
_raw_answer = msgspec.json.Decoder(_RawAnswer)
_consumer_facts = msgspec.json.Decoder(ConsumerFacts)


class JetStream:
    """Calls to JetStream over one connection."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        headers: Mapping[str, str] | None,
        timeout: float,  # noqa: ASYNC109 - becomes PublishUncertainError
    ) -> Ack:
        """Publishes and waits for the ack.

        Raises:
            PublishUncertainError: no ack came. Trap: that is not "not published".
            NoStreamError: no stream takes the subject.
            WrongLastSequenceError: the expected last sequence is another one.
            JetStreamRefusedError: the stream refused the message.
            DisconnectedError, ClosedError, DeniedError, PayloadTooLargeError, InvalidMessageError: nothing was stored.
        """
        try:
            message = await self._connection.ask(subject, payload, headers=headers, timeout=timeout)
        except (AnswerTimeoutError, ConnectionLostError) as error:
            raise PublishUncertainError(f"no ack for {subject}: {error}") from error
        except NobodyAnswersError as error:
            raise NoStreamError(f"no stream takes {subject}") from error
        return read_ack(message, len(payload))

    async def call(
        self,
        verb: str,
        body: object | None = None,
        *,
        timeout: float = API_TIMEOUT_SECONDS,  # noqa: ASYNC109 - becomes AnswerTimeoutError
    ) -> bytes:
        """Calls the API once, `$JS.API.<verb>`; returns the JSON of its answer.

        Raises:
            JetStreamNotFoundError, WrongLastSequenceError, JetStreamRefusedError: what the server said.
            UnavailableError: JetStream is off, starting or without a leader.
            AnswerTimeoutError, ConnectionLostError, DisconnectedError, ClosedError, DeniedError: as `NatsConnection.ask`.
        """
        payload = b"" if body is None else msgspec.json.encode(body)
        try:
            message = await self._connection.ask(f"$JS.API.{verb}", payload, timeout=timeout)
        except NobodyAnswersError as error:
            raise UnavailableError(
                "JetStream is starting, or off at this server or for our account"
            ) from error
        answer = _api_answer.decode(message.data)
        if answer.error is not None:
            raise _refusal(answer.error)
        return message.data

    async def _read(self, verb: str, body: object | None = None) -> bytes:
        return await self.call(verb, body, timeout=READ_TIMEOUT_SECONDS)

    async def last(self, stream: str, subject: str) -> Stored | None:
        """The last message of a subject or of a filter, from the stream's leader.

        Trap: a direct get may be served by a replica that lags; only the leader's word supports a compare-and-swap.
        """
        return await self._get(stream, {"last_by_subj": subject})

    async def next_of(self, stream: str, subject: str, seq: int) -> Stored | None:
        """The first message of a subject at or after `seq`."""
        return await self._get(stream, {"next_by_subj": subject, "seq": seq})

    async def next_several(
        self, stream: str, subject: str, seq: int, most: int, *, most_bytes: int
    ) -> list[Stored]:
        """The first messages of a subject at or after `seq`, in one call; none where there are none now.

        Any replica may answer, one that lags, too: what it gives may be gone, and what is new may be missing.

        Raises:
            UnavailableError: nobody answers.
            AnswerTimeoutError, ConnectionLostError, DisconnectedError, ClosedError, DeniedError: as `NatsConnection.ask`.
        """
        asked = {"next_by_subj": subject, "seq": seq, "batch": most, "max_bytes": most_bytes}
        try:
            found = await self._connection.ask_for_several(
                f"$JS.API.DIRECT.GET.{stream}",
                msgspec.json.encode(asked),
                is_last=_ends_a_batch,
                timeout=READ_TIMEOUT_SECONDS,
            )
        except NobodyAnswersError as error:
            raise UnavailableError(f"nobody gives messages of stream {stream}") from error
        return [_stored_of(message) for message in found]

    async def _get(self, stream: str, which: Mapping[str, object]) -> Stored | None:
        """Trap: a stream that is missing is not one that is empty. Taken for that, it would empty every mirror of it."""
        try:
            data = await self._read(f"STREAM.MSG.GET.{stream}", which)
        except JetStreamNotFoundError as error:
            if error.err_code != _NO_MESSAGE:
                raise NotProvisionedError(f"stream {stream}") from error
            return None
        return _stored(_raw_answer.decode(data).message)

    async def stream(self, stream: str) -> StreamFacts:
        """The stream, as its leader knows it."""
        return _stream_facts.decode(await self._read(f"STREAM.INFO.{stream}"))

    async def create_consumer(
        self,
        stream: str,
        config: Mapping[str, object],
        *,
        timeout: float = API_TIMEOUT_SECONDS,  # noqa: ASYNC109 - becomes AnswerTimeoutError
    ) -> ConsumerFacts:
        """Creates or updates a consumer; the name and the filter are part of the subject, so grants can tell them apart."""
        name, filtered = config["name"], config.get("filter_subject")
        verb = f"CONSUMER.CREATE.{stream}.{name}" + (f".{filtered}" if filtered else "")
        return _consumer_facts.decode(
            await self.call(verb, {"stream_name": stream, "config": config}, timeout=timeout)
        )

    async def consumer(self, stream: str, name: str) -> ConsumerFacts:
        """The position of a consumer, and its settings."""
        return _consumer_facts.decode(await self._read(f"CONSUMER.INFO.{stream}.{name}"))

    async def durable(self, stream: str, name: str) -> ConsumerFacts:
        """A consumer that was made before any service started.

        Raises:
            NotProvisionedError: nobody has made it.
        """
        try:
            return await self.consumer(stream, name)
        except JetStreamNotFoundError as error:
            raise NotProvisionedError(f"durable {stream}/{name}", cluster_of(name)) from error


def read_ack(message: Msg, size: int) -> Ack:
    """The ack in an answer to a publish.

    Raises:
        NoStreamError, WrongLastSequenceError, PayloadTooLargeError, UnavailableError, JetStreamRefusedError: the stream's word.
    """
    if says_nobody(message):
        raise NoStreamError("no stream takes the subject")
    answer = _pub_answer.decode(message.data)
    if answer.error is None:
        return Ack(answer.seq, answer.duplicate)
    if answer.error.err_code == _TOO_LARGE:
        raise PayloadTooLargeError(size, 0)
    raise _refusal(answer.error)


def _refusal(error: _ApiError) -> JetStreamRefusedError | UnavailableError:
    if error.err_code in _WRONG_LAST:
        return WrongLastSequenceError(error.code, error.err_code, error.description)
    if error.code == _NOT_FOUND:
        return JetStreamNotFoundError(error.code, error.err_code, error.description)
    if error.code in _PASSING_CODES or error.err_code in _PASSING_ERRORS:
        return UnavailableError(f"{error.description} (error {error.err_code})")
    return JetStreamRefusedError(error.code, error.err_code, error.description)


def _stored(raw: _RawMessage) -> Stored:
    block = base64.b64decode(raw.hdrs).decode("utf-8", "replace")
    lines = block.split("\r\n")[1:]  # the first says `NATS/1.0`
    pairs = (line.partition(":") for line in lines if line)
    return Stored(
        subject=raw.subject,
        payload=base64.b64decode(raw.data),
        headers={name.strip(): value.strip() for name, _, value in pairs},
        seq=raw.seq,
        at=_instant(raw.time),
    )


def _ends_a_batch(message: Msg) -> bool:
    """Whether this is the server's own word at the end of a batch, or that there is nothing.

    Trap: whoever published a message chose its headers, a `Status` among them. But to each that it gives the server adds a
    sequence of its own, behind all others: of two of one name the later counts.
    """
    return SEQUENCE not in (message.headers or {})


def _stored_of(message: Msg) -> Stored:
    headers = dict(message.headers or {})
    added = {name: headers.pop(name, "") for name in _ADDED}
    return Stored(
        subject=added[SUBJECT],
        payload=message.data,
        headers=headers,
        seq=int(added[SEQUENCE]),
        at=_instant(added[TIME]),
    )


def _instant(text: str) -> Micros:
    """The instant that the server wrote: nanoseconds without trailing zeros, where datetime takes six digits."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    moment = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    return from_datetime(moment) + int(fraction[:6].ljust(6, "0"))
