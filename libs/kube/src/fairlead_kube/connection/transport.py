"""HTTP to one API server: bytes out, bytes in, errors typed; a long answer line by line."""

import asyncio
import contextlib
import socket
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

import aiohttp
from yarl import URL

from fairlead_kube.connection.credentials import CredentialSource, sign_in, tls_context
from fairlead_kube.connection.exec_plugin import ExecPlugin
from fairlead_kube.connection.kubeconfig import Access
from fairlead_kube.errors import TimedOutError, UnreachableError, error_of, read_status
from fairlead_kube.settings import KubeSettings

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_CONNECT_SECONDS = 10.0
_REFUSED = 400
_UNAUTHORIZED = 401
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""Socket options by which a server that vanished is noticed after half a minute, also on a quiet watch."""
_MOST_TURNS = 100
"""Turns of the loop for connections that were cut to be closed; it takes two or three."""


class Sessions:
    """The session with an API server; another one once the plugin that signs us in gave another certificate.

    An API server judges the certificate of a connection at each request, so connections that were made with one that
    has expired are of no use. They end by themselves: an idle one after some seconds, a watch when the server ends it. What
    is left of a session ends with the certificate after the next.
    """

    def __init__(self, access: Access, credentials: CredentialSource, *, user_agent: str) -> None:
        self._access = access
        self._plugin = credentials if isinstance(credentials, ExecPlugin) else None
        # Uncompressed: watches never are, and unpacking a list costs us and the server more than a local network does.
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._old: aiohttp.ClientSession | None = None
        self._made_for = self._certificates
        self._session = self._open()

    @property
    def _certificates(self) -> int:
        return 0 if self._plugin is None else self._plugin.certificates

    def _open(self) -> aiohttp.ClientSession:
        context = tls_context(self._access)
        if self._plugin is not None:
            self._plugin.load_into(context)
        connector = aiohttp.TCPConnector(ssl=context, socket_factory=self._connect)
        return aiohttp.ClientSession(connector=connector, headers=self._headers, read_bufsize=2**20)

    def _connect(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
        self._sockets.add(made)
        return made

    async def current(self) -> aiohttp.ClientSession:
        """Give the session of the newest certificate."""
        if self._made_for != self._certificates:
            self._made_for = self._certificates
            before, self._old, self._session = self._old, self._session, self._open()
            if before is not None:
                await before.close()
        return self._session

    async def close(self) -> None:
        """End all connections."""
        for session in (self._session, self._old):
            if session is not None:
                await session.close()
        await self._cut()

    async def _cut(self) -> None:
        """Cut what was left amid an answer, such as a watch: its server's farewell is waited for by nobody, for half a minute."""
        for one in self._sockets:
            with contextlib.suppress(OSError):  # it is closed, or its server was quicker
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_MOST_TURNS):
            if all(one.fileno() < 0 for one in self._sockets):
                return
            await asyncio.sleep(0)


class Transport:
    """A way to one API server, signed in."""

    def __init__(
        self,
        sessions: Sessions,
        access: Access,
        credentials: CredentialSource,
        *,
        request_seconds: float,
        silence_seconds: float,
    ) -> None:
        self._sessions = sessions
        self._credentials = credentials
        self.server = access.cluster.server.rstrip("/")
        """The URL of the API server."""
        self._server_name = access.cluster.tls_server_name
        self._proxy = access.cluster.proxy_url
        self._as = access.user.impersonate
        self._request_seconds = request_seconds
        self._silence_seconds = silence_seconds

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        impersonate: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the HTTP request: the server may have done it all the same
    ) -> bytes:
        """Send a request; returns the body of the answer.

        Args:
            path: path from the root of the server, with its parts percent-encoded.
            query: words behind the `?`.
            content_type: form of `body`; tells the three kinds of patch apart.
            accept: the form of the answer.
            impersonate: user to do it as, such as `system:serviceaccount:team-a:default`.
            timeout: seconds for the whole request; None for those of the settings.

        Raises:
            StatusError: the server refused; see `errors.error_of`.
            UnreachableError: no connection, or it broke.
            TimedOutError: no answer in time.
            CredentialsError: nothing to sign in with.
        """
        limits = aiohttp.ClientTimeout(total=timeout or self._request_seconds, sock_connect=_CONNECT_SECONDS)
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        async with self._answer(
            method, path, query=query, headers=headers, limits=limits, body=body, impersonate=impersonate
        ) as answer:
            return await answer.read()

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        accept: str = JSON,
        rest: Callable[[], float] = lambda: 0.0,
    ) -> AsyncGenerator[AsyncIterator[list[bytes]]]:
        """Read the lines of a long answer, as many at a time as arrived together.

        The iterator ends when the server ends the answer; a silence longer than the settings allow is a TimedOutError.

        Args:
            path: path from the root of the server, with its parts percent-encoded.
            query: words behind the `?`.
            accept: the form of the answer.
            rest: asked after each batch for the seconds in which nothing more is read.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=self._silence_seconds
        )
        async with self._answer(
            "GET", path, query=query, headers={"Accept": accept}, limits=limits
        ) as answer:
            yield _lines(answer, rest)

    @contextlib.asynccontextmanager
    async def octets(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Read the bytes of a long answer as they arrive; silence is no error: logs may be quiet for days."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=None)
        async with self._answer("GET", path, query=query, headers={"Accept": "*/*"}, limits=limits) as answer:
            yield _unbroken(answer)

    @contextlib.asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        headers: dict[str, str],
        limits: aiohttp.ClientTimeout,
        body: bytes | None = None,
        impersonate: str | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Give an answer below 400; sign in anew once where the server no longer takes our token."""
        if user := impersonate or self._as:
            headers["Impersonate-User"] = user
        asked = f"{method} {path}"
        url = URL(self.server + path, encoded=True).with_query(query)
        try:
            for renew in (False, True):
                if (value := await self._credentials.authorization(renew=renew)) is not None:
                    headers["Authorization"] = value
                session = await self._sessions.current()
                async with session.request(
                    method,
                    url,
                    headers=headers,
                    data=body,
                    timeout=limits,
                    proxy=self._proxy,
                    server_hostname=self._server_name,
                ) as answer:
                    if answer.status == _UNAUTHORIZED and not renew:
                        continue
                    if answer.status >= _REFUSED:
                        status = read_status(answer.status, await answer.read())
                        raise error_of(status, asked, answer.headers.get("Retry-After"))
                    yield answer
                    return
        except TimeoutError as error:
            raise TimedOutError(f"{asked}: no answer from {self.server} in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"{asked}: {self.server}: {str(error) or type(error).__name__}") from error


async def _lines(answer: aiohttp.ClientResponse, rest_now: Callable[[], float]) -> AsyncIterator[list[bytes]]:
    """Split an answer into lines; aiohttp's readline would wake once a line, and bounds a line's length."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
            if (seconds := rest_now()) > 0.0:
                await _leave_alone(answer, seconds)


async def _leave_alone(answer: aiohttp.ClientResponse, seconds: float) -> None:
    """Read nothing for some seconds: one record of TLS is then unpacked for as much as ten."""
    connection = answer.connection
    transport = None if connection is None else connection.transport
    if transport is None or transport.is_closing():
        return
    transport.pause_reading()
    try:
        await asyncio.sleep(seconds)
    finally:
        transport.resume_reading()


async def _unbroken(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Read the bytes that arrive until the server ends; an answer that breaks off raises like a request."""
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise UnreachableError(f"the answer broke off: {str(error) or type(error).__name__}") from error


@contextlib.asynccontextmanager
async def open_transport(
    access: Access, settings: KubeSettings, *, user_agent: str
) -> AsyncIterator[Transport]:
    """Open a way to the server until the block ends. A credential plugin is run; no connection is made yet.

    Raises:
        ConfigurationError: certificates, keys or tokens that cannot be used.
    """
    # In a thread: an auth provider imports a large library.
    credentials = await asyncio.to_thread(sign_in, access)
    if isinstance(credentials, ExecPlugin):
        await credentials.authorization(renew=False)
    sessions = Sessions(access, credentials, user_agent=user_agent)
    try:
        yield Transport(
            sessions,
            access,
            credentials,
            request_seconds=settings.request_timeout_seconds,
            silence_seconds=settings.watch_silence_seconds,
        )
    finally:
        await sessions.close()
