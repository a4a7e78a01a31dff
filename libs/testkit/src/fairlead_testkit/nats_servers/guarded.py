"""A real nats-server with the accounts and grants that Fairlead is shipped with, and a key for each of its users."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairlead_bus import ConnectionSettings
from fairlead_bus.connection.identity import KeyKind, new_seed, public_key
from fairlead_bus.server.accounts import Account, NatsUser, plain_config
from fairlead_bus.server.claims import Signers, account_token, credentials, operator_config, system_account
from fairlead_bus.server.permissions import Grants
from fairlead_testkit.nats_servers.nats_server import NatsServer

ROOT = "root"
"""A user of the services' account who may do everything: the test itself, which no deployment has."""
FREE = "free"
"""`free.<account>`: a user of a tenant's account who may do everything in it, which no deployment has either."""
_EVERYTHING = Grants(publish=[">"], subscribe=[">"])


class IssuedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A key for each user, in a file, and the configuration of a server that knows them."""

    config: str
    seeds: dict[str, Path]
    """Files of the users' seeds, by the user's name."""
    creds: dict[str, Path] = {}
    """Files of the users' credentials, by the user's name; only in operator mode."""


class GuardedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The server, and how each of its users connects."""

    server: NatsServer
    keys: IssuedKeys

    def settings(self, user: str) -> ConnectionSettings:
        """Settings with which this user connects."""
        if self.keys.creds:
            return ConnectionSettings(url=self.server.url, creds=str(self.keys.creds[user]))
        return ConnectionSettings(url=self.server.url, nkey_seed=str(self.keys.seeds[user]))

    @property
    def root(self) -> ConnectionSettings:
        """Settings with which the test itself connects."""
        return self.settings(ROOT)


def issue_keys(directory: Path, accounts: Sequence[Account], *, operator_mode: bool = False) -> IssuedKeys:
    """Makes new keys for the users of accounts, the services' first, with their files in this directory."""
    services, *tenants = accounts
    accounts = [_with_user(services, ROOT), *(_with_user(one, f"{FREE}.{one.name}") for one in tenants)]
    seeds: dict[str, Path] = {}
    for user in [user for account in accounts for user in account.users]:
        seeds[user.name] = directory / f"{user.name}.nk"
        seeds[user.name].write_text(new_seed(KeyKind.USER))
    if operator_mode:
        return _signed(directory, accounts, seeds)
    keys = {name: public_key(path.read_text()) for name, path in seeds.items()}
    return IssuedKeys(config=plain_config(accounts, keys), seeds=seeds)


def _signed(directory: Path, accounts: list[Account], seeds: dict[str, Path]) -> IssuedKeys:
    whole = [*accounts, system_account()]
    signers = Signers.extended({}, whole)
    tokens = {signers.key(account.name): account_token(signers, account, revoked={}) for account in whole}
    creds: dict[str, Path] = {}
    for account in accounts:
        for user in account.users:
            creds[user.name] = directory / f"{user.name}.creds"
            creds[user.name].write_text(
                credentials(signers, account, user.name, seeds[user.name].read_text())
            )
    config = operator_config(signers, tokens, str(directory / "resolver"))
    return IssuedKeys(config=config, seeds=seeds, creds=creds)


@contextmanager
def guarded_server(
    directory: Path, accounts: Sequence[Account], *, operator_mode: bool = False
) -> Iterator[GuardedServer]:
    """The server, started for the time of the block."""
    keys = issue_keys(directory, accounts, operator_mode=operator_mode)
    with NatsServer(directory / "nats", config=keys.config) as server:
        yield GuardedServer(server=server, keys=keys)


def _with_user(account: Account, name: str) -> Account:
    return msgspec.structs.replace(account, users=[*account.users, NatsUser(name=name, grants=_EVERYTHING)])
