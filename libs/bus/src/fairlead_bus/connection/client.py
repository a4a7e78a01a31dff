"""The nats-py client with the corrections that its public options cannot express.

Each override names the trap that it closes. They lean on private parts of nats-py 2.16; the tests of this library
run each of them against a real server, so an upgrade that moves them is noticed.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

from nats.aio.client import Client, Srv
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error
from nats.protocol import parser

type Sink = Callable[[Msg], Awaitable[None] | None]
"""Takes a message at once, in the task that reads the socket; may return what is left to await."""


# Trap: the server ends a subject at a blank or a tab, nats-py's parser at a vertical tab or a form feed, too. A subject
# that holds one is "unknown protocol" to it, and it disconnects. These are its expressions with the server's blanks.
parser.MSG_RE = re.compile(rb"\AMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)\r\n")
parser.HMSG_RE = re.compile(
    rb"\AHMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)[ \t]+(\d+)\r\n"
)


_OLDEST = (2, 11)
"""Release of NATS from which on messages have a time to live: the leases of leaders end by it."""
_PLAIN_HEADERS = b"NATS/1.0\r\n"
_is_name = re.compile(r"\S*").fullmatch


class UnbufferedClient(Client):
    """A client that sends now or not at all, and that notices when it is dead."""

    def __init__(self, on_down: Callable[[], None]) -> None:
        super().__init__()
        self._on_down = on_down
        self._sinks: dict[int, Sink] = {}

    @property
    def incarnation(self) -> str:
        """Name of the cluster that the server belongs to; of a standalone server its id, which is new at each start."""
        return str(self._server_info.get("cluster") or self._server_info.get("server_id", ""))

    @property
    def server_release(self) -> tuple[int, ...]:
        """Major and minor number of the server's version."""
        return _release_of(self._server_info)

    async def _attempt_reconnect(self) -> None:
        """Reconnects; what was not sent by now is dropped.

        Trap: commands that were queued but not written when the connection broke are flushed after the reconnect, so a
        publish that failed for its caller is stored later. New ones are refused by `pending_size=0`; the queued
        ones are dropped here. Subscriptions are not lost: they are sent again from the client's own table.

        Trap: closing a half-open socket waits until its buffer is written, which never happens. It is aborted.

        Trap: an exception of an unexpected type ends the task that reconnects, and nothing tells: the client would
        stay "reconnecting" for ever. It is closed instead, and `closed_cb` ends the process.
        """
        self._pending.clear()
        self._pending_data_size = 0
        self.abort()
        self._on_down()
        try:
            await super()._attempt_reconnect()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody else would hear of it
            await self._error_cb(error)
            await self.close()
        if self.is_closed and self._closed_cb is not None:
            await self._closed_cb()

    async def _connect_to_server(self, s: Srv) -> None:
        """Trap: the socket of an attempt that got no greeting is neither closed nor remembered by the next one."""
        self.abort()
        await super()._connect_to_server(s)

    def _connect_command(self) -> bytes:
        """The CONNECT command. Trap: an upgraded connection's reader is not told of TLS; asyncio warns at each end."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None and writer.get_extra_info("sslcontext") is not None:
            writer.transport.get_protocol()._over_ssl = True  # noqa: SLF001 - as `StreamWriter.start_tls` does
        command: bytes = super()._connect_command()
        return command

    async def _process_info(self, info: dict[str, object], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - nats-py's form
        """Trap: servers that the cluster told of stay in the list for ever, also those that have left it.

        A server that is moved leaves its old address behind, and each dead address may cost a reconnect two seconds.
        Those that we were told to connect to stay.

        Trap: a server that says nothing of TLS is spoken to in the clear, also where TLS is asked for. Its greeting is not
        secured yet: whoever stands between could say so and be taken for it. (Of `wss` all is secured before it.)

        A server that is too old for us is refused: it would make our streams, and pass over what it does not know of them.
        """
        if initial_connection and () < _release_of(info) < _OLDEST:
            raise Error(
                f"the server is NATS {info['version']}, and Fairlead needs {_OLDEST[0]}.{_OLDEST[1]} or newer"
            )
        server = self._current_server
        wants_tls = self.options.get("tls") is not None and not (server and server.uri.scheme == "wss")
        if initial_connection and wants_tls:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise Error("the server offers no TLS, and TLS is asked for: nothing was sent to it")
            info["tls_required"] = True  # of us, where the server would do without
        told = info.get("connect_urls")
        if isinstance(told, list) and told:
            self._server_pool = [
                server
                for server in self._server_pool
                if not server.discovered or server is self._current_server or server.uri.netloc in told
            ]
        await super()._process_info(info, initial_connection)

    async def _process_pong(self) -> None:
        """Trap: a pong whose waiter was cancelled or timed out raises in the read loop and ends it: a deaf client."""
        if self._pongs and self._pongs[0].done():
            self._pongs.pop(0)
            self._pongs_received += 1
            self._pings_outstanding = 0
            return
        await super()._process_pong()

    async def subscribe_sink(self, subject: str, sink: Sink) -> Subscription:
        """Subscribes without a queue and a task between the socket and `sink`: half the cost of a message.

        Trap: a full subscription queue drops messages. Without one, a slow reader slows down the sender instead.
        """
        subscription = await self.subscribe(subject)
        self._sinks[subscription._id] = sink  # noqa: SLF001 - the number that messages name their subscription by
        return subscription

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._sinks.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> None:
        subject, reply = _as_text(subject), _as_text(reply)
        sink = self._sinks.get(sid)
        if sink is None:
            await super()._process_msg(sid, subject, reply, data, headers)  # type: ignore[arg-type] # None is usual
            return
        parsed = None
        if headers:
            # Mostly the server says nothing of its own before them.
            plain = headers.startswith(_PLAIN_HEADERS)
            parsed = (
                self._parse_header_lines(headers[len(_PLAIN_HEADERS) :]) or None
                if plain
                else await self._process_headers(headers)
            )
        try:
            rest = sink(
                Msg(_client=self, subject=subject.decode(), reply=reply.decode(), data=data, headers=parsed)
            )
            if rest is not None:
                await rest
        except Exception as error:  # noqa: BLE001 - one that got out would end the task that reads the socket
            await self._error_cb(error)

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        """Trap: a status line that is no text raises in the read loop: whoever may publish could disconnect its readers."""
        try:
            found: dict[str, str] | None = await super()._process_headers(headers)
        except (UnicodeDecodeError, IndexError) as error:
            await self._error_cb(error)
            return None
        return found

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        """Parses headers as nats-py does, in half the time: it looks at each letter of a name by itself."""
        found: dict[str, str] = {}
        for line in raw.split(b"\r\n"):
            name, colon, value = line.partition(b":")
            if colon and (name := name.strip()).isascii() and _is_name(key := name.decode()):
                found[key] = value.strip().decode("utf-8", "replace")
        return found

    def abort(self) -> None:
        """Drops the socket without waiting for its buffer."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()

    async def close_within(self, seconds: float) -> None:
        """Closes; a server that does not read cannot hold us up."""
        try:
            async with asyncio.timeout(seconds):
                await self.close()
        except (TimeoutError, Error, OSError):
            self.abort()


def _as_text(subject: bytes) -> bytes:
    r"""The subject, with what is no UTF-8 in it spelled out (`\xff`).

    Trap: a server takes any bytes in a subject. Decoding them raises in the read loop, which ends it: a message on such a
    subject would disconnect its reader at each redelivery, for ever.
    """
    if subject.isascii():
        return subject
    return subject.decode(errors="backslashreplace").encode()


def _release_of(info: Mapping[str, object]) -> tuple[int, ...]:
    """Major and minor number of a server's version; empty where it says none."""
    found = re.match(r"(\d+)\.(\d+)", str(info.get("version", "")))
    return tuple(int(number) for number in found.groups()) if found else ()
