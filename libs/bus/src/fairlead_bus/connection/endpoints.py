"""Answering questions: request-reply with errors in headers, as the NATS service API has them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from fairlead_bus.connection.nats_connection import NatsConnection
from fairlead_bus.errors import BusError, PayloadTooLargeError, Rejected

ERROR_TEXT = "Nats-Service-Error"
ERROR_CODE = "Nats-Service-Error-Code"
REPLY_SUBJECTS = re.compile(r"_R_\.|_INBOX(_[^.]*)?\.")
"""Beginnings of reply subjects: an account that imports the service asks on the first (nats-server's `replyPrefix`;
it lets no client name it itself), everybody else from an inbox of a client."""
TOO_LARGE = 413
INTERNAL_ERROR = 500


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question that came to an endpoint."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]


type Handler = Callable[[Asked], Awaitable[bytes]]


_AT_ONCE = 256
"""Questions of one subject that are answered at once; more wait."""


class Endpoint:
    """Handles the questions on one subject, several at once."""

    def __init__(self, connection: NatsConnection, handle: Handler) -> None:
        self._connection = connection
        self._handle = handle
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._busy: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None

    async def open(self, subject: str, queue: str | None) -> None:
        """Begins to listen."""
        self._subscription = await self._connection.listen(subject, self._on_message, queue=queue or "")

    async def close(self) -> None:
        """Stops listening and waits for the questions that are being answered."""
        if self._subscription is not None:
            await self._connection.unlisten(self._subscription)
        if self._busy:
            await asyncio.wait(self._busy)

    async def _on_message(self, message: Msg) -> None:
        """Trap: callbacks of a subscription run one after the other, so that one slow answer would hold up the rest.

        Waiting here for a free place leaves further questions in the subscription's queue. The tasks are held and
        awaited in `close`; a TaskGroup would have to outlive this callback.
        """
        await self._free.acquire()
        task = asyncio.get_running_loop().create_task(self._answer(message))
        self._busy.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        self._free.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._connection.observer.note("serve.failed", error=repr(error))

    async def _answer(self, message: Msg) -> None:
        if not message.reply:
            self._connection.observer.count("serve.unanswerable")
            return  # nobody would hear the answer, which is work all the same
        if not REPLY_SUBJECTS.match(message.reply):
            # Trap: the answer goes out with our rights. On a reply subject of the asker's choice it would be a write to
            # whatever the asker may not write to itself: a key of a bucket, a fact, a decision.
            self._connection.observer.note("serve.misdirected", subject=message.subject, reply=message.reply)
            return
        asked = Asked(subject=message.subject, payload=message.data, headers=message.headers or {})
        payload, headers = await self._outcome(asked)
        try:
            await self._send(message.reply, payload, headers)
        except BusError as error:
            self._connection.observer.note("serve.unsent", subject=asked.subject, error=str(error))

    async def _send(self, reply: str, payload: bytes, headers: Mapping[str, str] | None) -> None:
        try:
            await self._connection.send(reply, payload, headers=headers)
        except PayloadTooLargeError as error:
            # Without a word the asker would wait, and then believe that nobody is there.
            self._connection.observer.count("serve.too_large")
            await self._connection.send(
                reply, headers=_error(TOO_LARGE, f"the answer is too large: {error}; ask for less")
            )

    async def _outcome(self, asked: Asked) -> tuple[bytes, Mapping[str, str] | None]:
        try:
            return await self._handle(asked), None
        except Rejected as rejected:
            return rejected.payload, _error(rejected.code, rejected.text)
        except Exception as error:  # noqa: BLE001 - the asker must hear of whatever went wrong, and others be served
            self._connection.observer.note("serve.failed", subject=asked.subject, error=repr(error))
            return b"", _error(INTERNAL_ERROR, "internal error")


def _error(code: int, text: str) -> dict[str, str]:
    return {ERROR_TEXT: text, ERROR_CODE: str(code)}
