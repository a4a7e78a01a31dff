"""Settings: one frozen struct a service, each field documented, secrets marked.

A service's struct extends `ServiceSettings`. The docstring under a field (or `description` in its msgspec.Meta) is
what `--help` says about it. `load_settings` in `sources` fills it; nothing else reads the environment.
"""

import os
import re
import secrets
from functools import cache
from typing import Annotated, Literal, TypeAliasType, get_args, get_origin, get_type_hints

import msgspec

from fairlead_contracts.base.field_docs import field_docs

PREFIX = "FAIRLEAD_"
HIDDEN = "(hidden)"


class SecretMark:
    """Marks a field whose value is never printed, logged, quoted in an error or taken from the command line."""


Secret = Annotated[str, SecretMark()]
"""A text that is a secret itself. A path to a file that holds one is a plain `str`."""

type LogLevel = Literal["debug", "info", "warning", "error"]


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that every service has. A service's own struct extends it."""

    nats_url: str = "nats://127.0.0.1:4222"
    """URL of NATS; several servers of one cluster separated by commas."""
    nats_user: str | None = None
    """User name for NATS."""
    nats_password: Secret | None = None
    """Password for NATS."""
    nats_token: Secret | None = None
    """Token for NATS, in place of user and password."""
    nats_creds: str | None = None
    """Path of a NATS credentials file (JWT and seed)."""
    nats_nkey_seed: str | None = None
    """Path of a file with the seed of an NKey."""
    nats_tls_ca: str | None = None
    """Path of the CA certificate that NATS is verified by; turns TLS on."""
    nats_tls_cert: str | None = None
    """Path of the client certificate for NATS."""
    nats_tls_key: str | None = None
    """Path of the client certificate's key."""
    nats_connect_timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Longest wait of a start for NATS, before the process gives up."""
    replica: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    """Name of this replica, unique among the living; by default host name, process id and a random part."""
    dry_run: bool = False
    """Decide, and say what would be written, but write nothing."""
    log_level: LogLevel = "info"
    """The least severe log line that is written: debug, info, warning or error."""
    health_host: str = "127.0.0.1"
    """Address that /healthz, /readyz and /metrics listen on; 0.0.0.0 in a container."""
    health_port: Annotated[int, msgspec.Meta(ge=-1, le=65535)] = 8080
    """Port of /healthz, /readyz and /metrics; 0 takes a free one and logs it, -1 opens none."""
    shutdown_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Longest time for a clean end, before the process ends anyway; keep it below the supervisor's own
    patience."""
    otel_endpoint: str | None = None
    """Base URL of an OTLP/HTTP collector; tracing is off without one. OTEL_EXPORTER_OTLP_HEADERS is
    honoured."""
    otel_sample_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02
    """The part of the jobs' traces that is kept, the same for all services; a sender's own choice is
    followed, and errors, refusals and takeovers are always kept."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a settings struct, as sources and `--help` need it."""

    name: str
    hint: object
    """Type of the field, with msgspec's constraints."""
    default: object
    """Default of the field; NODEFAULT where it must be given."""
    doc: str
    secret: bool

    @property
    def flag(self) -> str:
        """The setting's name on the command line."""
        return "--" + self.name.replace("_", "-")

    def variable(self) -> str:
        """The setting's name in the environment."""
        return PREFIX + self.name.upper()


@cache
def describe(kind: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """The fields of a settings struct, in its order."""
    hints = get_type_hints(kind, include_extras=True)
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):  # those of the class itself win
        docs |= field_docs(base) if base not in (object, msgspec.Struct) else {}
    return tuple(
        Setting(
            name=field.name,
            hint=hints[field.name],
            default=(
                field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            ),
            doc=docs.get(field.name) or _described(hints[field.name]),
            secret=_is_secret(hints[field.name]),
        )
        for field in msgspec.structs.fields(kind)
    )


_USER_INFO = re.compile(r"(?<=://)[^/@\s,]+@")


def redacted(settings: msgspec.Struct) -> dict[str, object]:
    """The settings for a log line: secrets hidden where they are set, and credentials inside URLs hidden always."""
    shown: dict[str, object] = {}
    for setting in describe(type(settings)):
        value = getattr(settings, setting.name)
        if setting.secret and value is not None:
            value = HIDDEN
        elif isinstance(value, str):
            value = hide_user_info(value)
        shown[setting.name] = value
    return shown


def hide_user_info(text: str) -> str:
    """The text with `user:password@` of each URL hidden."""
    return _USER_INFO.sub(HIDDEN + "@", text)


def new_replica(settings: ServiceSettings) -> str:
    """The replica's stated name, or a new one that no other process has: `<host>-<pid>-<random>`."""
    return settings.replica or f"{os.uname().nodename}-{os.getpid()}-{secrets.token_hex(4)}"


def _is_secret(hint: object) -> bool:
    if isinstance(hint, TypeAliasType):
        return _is_secret(hint.__value__)
    if get_origin(hint) is Annotated and any(isinstance(mark, SecretMark) for mark in get_args(hint)[1:]):
        return True
    return any(_is_secret(part) for part in get_args(hint) if get_origin(hint) is not Literal)


def _described(hint: object) -> str:
    for mark in get_args(hint):
        if isinstance(mark, msgspec.Meta) and mark.description:
            return mark.description
    return ""
