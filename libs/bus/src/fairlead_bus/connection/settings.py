"""Settings of a connection: how to reach NATS, and who we are there."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import urlsplit

import msgspec

from fairlead_bus.errors import InvalidCredentialsError, MisconfiguredError

_SECRETS = frozenset({"password", "token"})
_SCHEMES = frozenset({"nats", "tls", "ws", "wss"})


@contextlib.contextmanager
def _readable(what: str, path: str | None) -> Iterator[None]:
    """Names the file that cannot be read: the errors of ssl and of the client do not say which it was."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise MisconfiguredError(f"{what} in {path} cannot be read: its text must be in ASCII") from error
    except (OSError, ValueError, InvalidCredentialsError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MisconfiguredError(f"{what} in {path} cannot be read: {reason}") from error


class NatsSettings(Protocol):
    """The settings of a service, as far as they say how to reach NATS."""

    @property
    def nats_url(self) -> str: ...  # noqa: D102 - each as in ConnectionSettings
    @property
    def nats_user(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_password(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_token(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_creds(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_nkey_seed(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_tls_ca(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_tls_cert(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_tls_key(self) -> str | None: ...  # noqa: D102 - as above
    @property
    def nats_connect_timeout_seconds(self) -> float: ...  # noqa: D102 - as above


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Servers and credentials. `repr` shows no secret, so it may be logged."""

    url: str = "nats://127.0.0.1:4222"
    """Address of a server, or of several, separated by commas."""
    user: str | None = None
    password: str | None = None
    token: str | None = None
    creds: str | None = None
    """Path of a credentials file (user JWT and seed)."""
    nkey_seed: str | None = None
    """Path of a file with an NKey seed."""
    tls_ca: str | None = None
    """Path of the authority's certificate; the system's authorities are trusted where TLS is on without it."""
    tls_cert: str | None = None
    """Path of our own certificate, for servers that verify clients."""
    tls_key: str | None = None
    connect_timeout_seconds: float = 10.0
    """Seconds of trying until the first connection stands. Later ones are tried for ever."""
    ping_interval_seconds: float = 2.0
    """A server that misses two pings counts as gone: the client's own default takes six minutes to notice."""

    @classmethod
    def of(cls, settings: NatsSettings) -> Self:
        """The `nats_*` settings of a service."""
        return cls(
            url=settings.nats_url,
            user=settings.nats_user,
            password=settings.nats_password,
            token=settings.nats_token,
            creds=settings.nats_creds,
            nkey_seed=settings.nats_nkey_seed,
            tls_ca=settings.nats_tls_ca,
            tls_cert=settings.nats_tls_cert,
            tls_key=settings.nats_tls_key,
            connect_timeout_seconds=settings.nats_connect_timeout_seconds,
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.redacted().items())
        return f"ConnectionSettings({shown})"

    def redacted(self) -> dict[str, object]:
        """The settings that are set, for logs."""
        return {
            name: _shown(name, value)
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }

    def servers(self) -> list[str]:
        """The servers one by one.

        Raises:
            MisconfiguredError: some URL is no address; the client would fail with an error of its own.
        """
        found = [part.strip() for part in self.url.split(",") if part.strip()] or [""]
        for number, server in enumerate(found, start=1):
            if not _is_address(server):
                # It may hold a password: told by its place alone.
                raise MisconfiguredError(
                    f"address {number} of {len(found)} is not of the form nats://host:port"
                )
        return found

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context where one is asked for. One URL that asks for it does so for all: the client has one context.

        Raises:
            MisconfiguredError: a certificate or key cannot be read.
        """
        schemes = {server.partition("://")[0].lower() for server in self.servers()}
        if not (self.tls_ca or self.tls_cert or schemes & {"tls", "wss"}):
            return None
        with _readable("the CA certificates", self.tls_ca):
            context = ssl.create_default_context(cafile=self.tls_ca)
        if self.tls_cert:
            both = self.tls_cert + (f" and {self.tls_key}" if self.tls_key else "")
            with _readable("certificate and key", both):
                context.load_cert_chain(self.tls_cert, self.tls_key)
        return context

    def seed(self) -> str | None:
        """The NKey seed where one is set.

        Raises:
            MisconfiguredError: the file cannot be read, or holds no seed.
        """
        if not self.nkey_seed:
            return None
        from fairlead_bus.connection.identity import public_key  # its cryptography is for who has a key

        with _readable("the NKey seed", self.nkey_seed):
            seed = Path(self.nkey_seed).read_text(encoding="ascii").strip()
            public_key(seed)
        return seed

    def identity(self) -> str | None:
        """The public NKey that we connect as; None without an NKey or a credentials file.

        Raises:
            MisconfiguredError: the file cannot be read, or holds neither.
        """
        if self.creds:
            from fairlead_bus.connection.identity import user_of_creds  # as above

            with _readable("the credentials", self.creds):
                return user_of_creds(Path(self.creds).read_text(encoding="ascii"))
        seed = self.seed()
        if not seed:
            return None
        from fairlead_bus.connection.identity import public_key  # as above

        return public_key(seed)


def _is_address(server: str) -> bool:
    """Whether the client knows it for an address: without a scheme of its own it looks up `http://host` as a name."""
    try:
        parts = urlsplit(server if "://" in server else f"nats://{server}")
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.hostname)


def _shown(name: str, value: object) -> object:
    """A setting without secrets: of a URL all but the password or token that it may carry before its `@`."""
    if name != "url":
        return "***" if name in _SECRETS else value
    return ",".join(
        f"{urlsplit(part).scheme}://***@{part.rpartition('@')[2]}" if "@" in part else part
        for part in str(value).split(",")
    )
