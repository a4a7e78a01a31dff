"""Messages over one connection: send, listen, ask; typed errors; nothing buffered while disconnected."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from nats import errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from fairlead_bus.connection.client import Sink, UnbufferedClient
from fairlead_bus.connection.replies import AnswerHandler, Replies
from fairlead_bus.errors import (
    AnswerTimeoutError,
    BusError,
    ClosedError,
    DisconnectedError,
    InvalidMessageError,
    NobodyAnswersError,
    PayloadTooLargeError,
)
from fairlead_contracts.base.observer import LibraryObserver

type Listener = Callable[[Msg], Awaitable[None]]
type ConnectionListener = Callable[[bool], None]

NO_RESPONDERS = "503"
REFUSED = "authorization violation"
NEW_KEY = "NATS refuses our key, and its file holds another one by now: start again to use that"
_MOST_NOTED = 100
"""Different errors told between two connects; the rest are counted only."""
_HEADER_LINE = len(b"NATS/1.0\r\n") + len(b"\r\n")
_HEADER_PUNCTUATION = len(b": \r\n")


class NatsConnection:
    """The connection to NATS, for the rest of this library: sends, listens and asks."""

    def __init__(self, observer: LibraryObserver, has_new_key: Callable[[], bool] = lambda: False) -> None:
        """Makes a connection that is not opened yet.

        Args:
            has_new_key: whether there is another key now than the one that `open` is given. Our inbox is named after the
                key, so only a new connection can take it: where the server refuses ours, this one ends.
        """
        self.observer = observer
        self._has_new_key = has_new_key
        self._ending: asyncio.Task[None] | None = None
        self._why_closed = "the connection is closed"
        self.incarnation = ""
        self.connected = False
        self.closed = asyncio.Event()
        self._up = asyncio.Event()
        self._client = UnbufferedClient(self._went_down)
        self._replies: Replies | None = None
        self._listeners: list[ConnectionListener] = []
        self._noted: set[str] = set()

    # --- the connection

    async def open(self, options: Mapping[str, object]) -> None:
        """Connects and opens the inbox of answers; retries until cancelled."""
        await self._client.connect(
            **options,  # type: ignore[arg-type] # the option names and types are nats-py's, checked there
            error_cb=self._on_error,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
        )
        self._replies = Replies(self._client.new_inbox())
        await self._client.subscribe_sink(self._replies.subject, self._replies.take)
        self._came_up()

    async def close(self) -> None:
        """Closes for good; a server that does not read cannot hold us up."""
        self._went_down()
        await self._client.close_within(2.0)
        await self._on_closed()

    def on_connection(self, changed: ConnectionListener) -> Callable[[], None]:
        """Calls `changed(True)` on a reconnect, `changed(False)` on a disconnect and at the end."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed) if changed in self._listeners else None

    async def until_connected(self) -> None:
        """Returns as soon as the connection stands.

        Raises:
            ClosedError: the connection never will stand again.
        """
        await self._up.wait()
        self.check_open()

    def _came_up(self) -> None:
        # The incarnation moves together with `connected`, never before: who captured it, reconciled and then publishes
        # a mark either still has the same connection or is refused.
        self.incarnation = self._client.incarnation
        self.connected = True
        self._noted.clear()
        self._up.set()
        self._tell(up=True)

    def _went_down(self) -> None:
        was_up, self.connected = self.connected, False
        if not self.closed.is_set():
            self._up.clear()
        if self._replies is not None:
            self._replies.fail_all()
        if was_up:
            self.observer.count("bus.disconnects")
            self.observer.note("bus.disconnected")
            self._tell(up=False)

    def _tell(self, *, up: bool) -> None:
        for listener in list(self._listeners):
            listener(up)

    async def _on_reconnected(self) -> None:
        self.observer.count("bus.reconnects")
        self._came_up()
        self.observer.note("bus.reconnected", incarnation=self.incarnation)

    async def _on_closed(self) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        self._went_down()
        self._up.set()  # wakes whoever waits for a connection, to learn that none will come
        self._tell(up=False)
        self.observer.note("bus.closed", why=self._why_closed, last_error=str(self.last_error or ""))

    async def _on_error(self, error: Exception) -> None:
        """Denied subjects, slow consumers and failed callbacks are told here and nowhere else."""
        kind = type(error).__name__
        self.observer.count(f"bus.error.{kind}")
        text = str(error)
        denied = self._replies is not None and self._replies.deny(text)
        if denied:
            self.observer.count("bus.denied")
        # A server that is away gives the same error ten times a second: say it once a connection.
        if text not in self._noted and len(self._noted) < _MOST_NOTED:
            self._noted.add(text)
            self.observer.note("bus.error", kind=kind, error=text)
        if REFUSED in text.lower() and self._ending is None and self._has_new_key():
            # A task of its own: closing ends the one that reconnects, which is where we are.
            self._why_closed = NEW_KEY
            self._ending = asyncio.create_task(self.close())

    # --- messages

    async def send(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends now or raises; at most once.

        Raises:
            DisconnectedError: there is no connection.
            ClosedError: there will be no connection any more.
            PayloadTooLargeError: the server would close the connection over it.
            InvalidMessageError: the subject or a header cannot be sent.
        """
        self._check_size(payload, headers)
        if not self.connected:
            raise ClosedError(self._why_closed) if self.closed.is_set() else DisconnectedError
        try:
            # nats-py's header type is a plain dict; ours is never written to.
            await self._client.publish(subject, payload, reply, dict(headers) if headers else None)
        except errors.OutboundBufferLimitError as error:
            raise DisconnectedError from error
        except (errors.ConnectionClosedError, errors.ConnectionDrainingError) as error:
            raise ClosedError(self._why_closed) from error
        except (errors.BadSubjectError, errors.BadHeaderError) as error:
            raise InvalidMessageError(f"{subject!r}: {error}") from error

    def _check_size(self, payload: bytes, headers: Mapping[str, str] | None) -> None:
        # Trap: the client checks the payload alone; the server counts the headers too, and closes the connection.
        size = len(payload)
        if headers:
            size += _HEADER_LINE + sum(
                len(name) + len(value.encode()) + _HEADER_PUNCTUATION for name, value in headers.items()
            )
        if size > self._client.max_payload:
            raise PayloadTooLargeError(size, self._client.max_payload)

    async def listen(self, subject: str, listener: Listener, *, queue: str = "") -> Subscription:
        """Calls `listener` with each message, one after the other.

        Raises:
            ClosedError: the connection is closed.
            InvalidMessageError: the subject is malformed.
        """
        try:
            return await self._client.subscribe(subject, queue, cb=listener)
        except (errors.ConnectionClosedError, errors.ConnectionDrainingError) as error:
            raise ClosedError(self._why_closed) from error
        except errors.BadSubjectError as error:
            raise InvalidMessageError(f"{subject!r}: {error}") from error

    async def listen_inline(self, subject: str, sink: Sink) -> Subscription:
        """Does as `listen`, but calls `sink` in the task that reads the socket: for the hot paths.

        Raises:
            ClosedError: the connection is closed.
        """
        try:
            return await self._client.subscribe_sink(subject, sink)
        except (errors.ConnectionClosedError, errors.ConnectionDrainingError) as error:
            raise ClosedError(self._why_closed) from error

    async def unlisten(self, subscription: Subscription) -> None:
        """Ends a `listen`; what the connection's end has ended already is no error."""
        try:
            await subscription.unsubscribe()
        except errors.Error:
            return

    def new_inbox(self) -> str:
        """A subject that nobody else uses."""
        return self._client.new_inbox()

    @property
    def replies(self) -> Replies:
        """The inbox of answers."""
        if self._replies is None:
            raise DisconnectedError
        return self._replies

    async def ask(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float,  # noqa: ASYNC109 - becomes AnswerTimeoutError
    ) -> Msg:
        """Sends and waits for one answer.

        Raises:
            AnswerTimeoutError: no answer came within `timeout` seconds.
            ConnectionLostError: no answer can come any more.
            NobodyAnswersError: nobody listens on the subject.
            DeniedError: our user may not send to it.
            DisconnectedError, ClosedError, PayloadTooLargeError, InvalidMessageError: nothing was sent.
        """
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

        def on_answer(found: Msg | BusError) -> None:
            if answer.done():
                return
            if isinstance(found, BusError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        with self._expecting(subject, on_answer, timeout) as reply:
            await self.send(subject, payload, reply=reply, headers=headers)
            message = await answer
        if says_nobody(message):
            raise NobodyAnswersError(f"nobody listens on {subject}")
        return message

    async def ask_for_several(
        self,
        subject: str,
        payload: bytes,
        *,
        is_last: Callable[[Msg], bool],
        timeout: float,  # noqa: ASYNC109 - becomes AnswerTimeoutError
    ) -> list[Msg]:
        """Sends and waits for answers, up to the one that says that it is the last; that one is not among them.

        Raises:
            as `ask`.
        """
        answers: list[Msg] = []
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_answer(found: Msg | BusError) -> bool:
            if over.done():
                return False
            if isinstance(found, BusError):
                over.set_exception(found)
            elif not is_last(found):
                answers.append(found)
            elif says_nobody(found):
                over.set_exception(NobodyAnswersError(f"nobody listens on {subject}"))
            else:
                over.set_result(None)
            return not over.done()

        with self._expecting(subject, on_answer, timeout) as reply:
            await self.send(subject, payload, reply=reply)
            await over
        return answers

    @contextmanager
    def _expecting(self, subject: str, on_answer: AnswerHandler, seconds: float) -> Iterator[str]:
        """The reply subject under which `on_answer` hears the answer, or after so many seconds that none came."""

        def give_up() -> None:
            on_answer(AnswerTimeoutError(f"no answer from {subject} within {seconds} s"))

        reply = self.replies.expect(subject, on_answer)
        # A bare timer: `asyncio.timeout` cancels the task, which costs more than all else that is done here.
        timer = asyncio.get_running_loop().call_later(seconds, give_up)
        try:
            yield reply
        finally:
            timer.cancel()
            self.replies.forget(reply)

    @property
    def server_release(self) -> tuple[int, ...]:
        """Major and minor number of the server's version; empty where it tells none."""
        return self._client.server_release

    @property
    def last_error(self) -> Exception | None:
        """The last error of the connection."""
        return self._client.last_error

    def check_open(self) -> None:
        """Raises ClosedError once the connection is closed: a loop that goes on then would never yield."""
        if self.closed.is_set():
            raise ClosedError(self._why_closed)


def says_nobody(message: Msg) -> bool:
    """Whether the server says that nobody listens. Trap: absent headers are None, not an empty dict."""
    return message.headers is not None and message.headers.get("Status") == NO_RESPONDERS and not message.data
