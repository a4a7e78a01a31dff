"""A real nats-server with the accounts and grants that Fairlead is shipped with, and a key for each of its users."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairlead_bus import ConnectionSettings
from fairlead_bus.accounts import Account, Layout, User, plain_config
from fairlead_bus.identity import KeyKind, new_seed, public_key
from fairlead_bus.permissions import Grants
from fairlead_testkit.nats_server import NatsServer

ROOT = "root"
"""A user of the services' account who may do everything: the test itself, which no deployment has."""
FREE = "free"
"""`free.<account>`: a user of a tenant's account who may do everything in it, which no deployment has either."""
_EVERYTHING = Grants(publish=[">"], subscribe=[">"])


class IssuedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A key for each user, in a file, and the configuration of a server that knows them."""

    config: str
    seeds: dict[str, Path]
    """Of each user, by its name."""


class GuardedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The server, and how each of its users connects."""

    server: NatsServer
    seeds: dict[str, Path]
    """Of each user, by its name."""

    def settings(self, user: str) -> ConnectionSettings:
        """How this user connects."""
        return ConnectionSettings(url=self.server.url, nkey_seed=str(self.seeds[user]))

    @property
    def root(self) -> ConnectionSettings:
        """How the test itself connects."""
        return self.settings(ROOT)


def issue_keys(directory: Path, layout: Layout) -> IssuedKeys:
    """New keys, their files in this directory."""
    services, *tenants = layout.accounts
    accounts = [_with_user(services, ROOT), *(_with_user(one, f"{FREE}.{one.name}") for one in tenants)]
    seeds: dict[str, Path] = {}
    keys: dict[str, str] = {}
    for user in [user for account in accounts for user in account.users]:
        seed = new_seed(KeyKind.USER)
        seeds[user.name] = directory / f"{user.name}.nk"
        seeds[user.name].write_text(seed)
        keys[user.name] = public_key(seed)
    return IssuedKeys(config=plain_config(accounts, keys), seeds=seeds)


def guarded(directory: Path, layout: Layout) -> GuardedServer:
    """The server, not started yet."""
    keys = issue_keys(directory, layout)
    return GuardedServer(server=NatsServer(directory / "nats", config=keys.config), seeds=keys.seeds)


@contextmanager
def guarded_server(directory: Path, layout: Layout) -> Iterator[GuardedServer]:
    """Started for the time of the block."""
    made = guarded(directory, layout)
    with made.server:
        yield made


def _with_user(account: Account, name: str) -> Account:
    return msgspec.structs.replace(account, users=[*account.users, User(name=name, grants=_EVERYTHING)])
