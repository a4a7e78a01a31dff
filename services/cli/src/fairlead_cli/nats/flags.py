"""The flags of `fairlead nats config`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerFlags:
    """The flags on how the server listens and is reached; what was said before stays."""

    listen: str | None = None
    """Address that the server listens on; 127.0.0.1:4222 unless given."""
    url: str | None = None
    """URL by which the services find it, several servers separated by commas; nats://127.0.0.1:4222 unless given."""
    store: str | None = None
    """Directory of the server's streams; beside the configuration unless given."""
    tls_cert: str | None = None
    """Path of the server's certificate."""
    tls_key: str | None = None
    """Path of its key."""
    tls_ca: str | None = None
    """Path of the authority's certificate, as the services find it."""
    jwt: bool | None = None
    """Operator mode: accounts and users are tokens signed by a key of yours, and a running server is told of new ones by
    `fairlead nats push`."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WhoFlags:
    """The users to let in, beside the services; who was named before stays."""

    tenant: Annotated[Sequence[str], Parameter(negative="")] = ()
    """A tenant that submits on NATS, with an account for itself; may be given several times. Namespaces without one
    submit through Kubernetes only."""
    group: Annotated[Sequence[str], Parameter(negative="")] = ()
    """Tenants that have an account in common, as NAME=TENANT,TENANT; may be given several times."""
    tenant_connections: int | None = None
    """Most connections that each tenant may hold at once; 100 unless given."""
    operator: Annotated[Sequence[str], Parameter(negative="")] = ()
    """A person who steers with this command; may be given several times."""
    rotate: Annotated[Sequence[str], Parameter(negative="")] = ()
    """A user that gets a new key, as tenant.team-a or scorer; may be given several times."""
