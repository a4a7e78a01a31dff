"""The NATS accounts that Fairlead is shipped with: one for its services, one for each tenant or group of tenants.

Subjects of one account mean nothing in another. What crosses is stated as an export there and an import here: a tenant
calls `submit` and `ask` of its own name and hears its own answers. Buckets, facts, decisions and JetStream's API are
in the services' account alone. A reply subject that a tenant names is one of its own account, so neither an answer nor
the stream's acknowledgement can be aimed at anything outside of it.

Sources: docs.nats.io, "Multi Tenancy using Accounts" and "Accounts" under "Securing NATS".
"""

import json
from collections.abc import Mapping

import msgspec

from fairlead_bus.connection.bus import inbox_prefix
from fairlead_bus.server import permissions
from fairlead_bus.server.permissions import Grants, Share
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.tokens import encode_token

SERVICES = "FAIRLEAD"
SYSTEM = "SYS"
TENANT_CONNECTIONS = 100
SUBSCRIPTIONS_OF_A_CONNECTION = 1000
ANSWER_ONCE = {"max": 1, "expires": "30s"}
"""A question may be answered once, and not for ever."""


class NatsUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of NATS with a key of its own."""

    name: str
    grants: Grants
    tenant: str | None = None
    """The tenant whose jobs the user submits; None for a service or an operator."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account of NATS and its users."""

    name: str
    users: list[NatsUser]
    tenants: list[str] = []
    """The tenants that share the account; empty for the services' account."""
    connections: int | None = None
    """Number of connections that may be open at once; None for no limit but the server's."""

    @property
    def imports(self) -> list[Share]:
        """Services and streams that cross into the account from the services'."""
        return [share for tenant in self.tenants for share in permissions.shares(tenant)]


class AccountLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The accounts and users that shall be let in."""

    clusters: list[str]
    groups: dict[str, list[str]]
    """Tenants by the name of their group; a tenant alone is a group of its own name. Tenants of a group have an
    account in common: they are strangers to all others, and less so to each other."""
    operators: list[str]
    """People who steer, with the `fairlead` command."""
    tenant_connections: int = TENANT_CONNECTIONS
    """Number of connections that each tenant may hold at once: a server takes so many from all together (65,536
    unless it is told another number, or its own limit of open files), and who comes then is turned away."""

    def check(self) -> None:
        """Raises FieldError where a name is no name, or is there twice."""
        tenants = [tenant for members in self.groups.values() for tenant in members]
        for field, names in (
            ("clusters", self.clusters),
            ("tenants", tenants),
            ("operators", self.operators),
        ):
            for name in names:
                encode_token(name)
                if names.count(name) > 1:
                    raise FieldError(field, name, "is named twice")
        for group in self.groups:
            encode_token(group)
        if self.tenant_connections < 1:
            raise FieldError("tenant_connections", self.tenant_connections, "must be 1 or more")

    @property
    def accounts(self) -> list[Account]:
        """The accounts: the services' first, then one for each group."""
        return [
            Account(name=SERVICES, users=_service_users(self)),
            *(
                Account(
                    name=f"tenant.{encode_token(group)}",
                    users=[_submitter(tenant) for tenant in members],
                    tenants=members,
                    connections=self.tenant_connections * len(members),
                )
                for group, members in self.groups.items()
            ),
        ]


def heard_subjects(grants: Grants, key: str) -> list[str]:
    """The subjects that a user may subscribe to, its own inbox among them.

    Args:
        grants: grants of the user's role.
        key: the user's public key, which its inbox is named after.
    """
    return [f"{inbox_prefix(key)}.>", *grants.subscribe]


def plain_config(accounts: list[Account], keys: Mapping[str, str]) -> str:
    """The `accounts` block of a nats-server's configuration; reloading the server takes a changed one up.

    Args:
        accounts: the services' and the tenants'.
        keys: public NKeys by the users' names.
    """
    found: dict[str, object] = {account.name: _plain_account(account, accounts, keys) for account in accounts}
    found[SYSTEM] = {"users": []}
    return f"accounts: {json.dumps(found, indent=2)}\nsystem_account: {SYSTEM}\n"


def _plain_account(
    account: Account, all_accounts: list[Account], keys: Mapping[str, str]
) -> dict[str, object]:
    users = [_plain_user(user, keys[user.name]) for user in account.users]
    if account.name == SERVICES:
        exports = [
            {share.kind: share.subject, "accounts": [tenants.name]}
            for tenants in all_accounts
            for share in tenants.imports
        ]
        return {"jetstream": "enabled", "users": users, "exports": exports}
    imports = [{share.kind: {"account": SERVICES, "subject": share.subject}} for share in account.imports]
    limits = {
        "max_connections": account.connections,
        "max_subscriptions": SUBSCRIPTIONS_OF_A_CONNECTION,
    }
    return {"users": users, "imports": imports} | ({} if account.connections is None else {"limits": limits})


def _plain_user(user: NatsUser, key: str) -> dict[str, object]:
    allowed: dict[str, object] = {
        "publish": user.grants.publish,
        "subscribe": heard_subjects(user.grants, key),
    }
    if user.grants.answers:
        allowed["allow_responses"] = ANSWER_ONCE
    return {"nkey": key, "permissions": allowed}


def _service_users(layout: AccountLayout) -> list[NatsUser]:
    users = [
        NatsUser(name="provisioner", grants=permissions.provisioner(layout.clusters)),
        NatsUser(name="scorer", grants=permissions.scorer()),
        NatsUser(name="watchdog", grants=permissions.watchdog()),
    ]
    for cluster in layout.clusters:
        token = encode_token(cluster)
        users += [
            NatsUser(name=f"watcher.{token}", grants=permissions.watcher(cluster)),
            NatsUser(name=f"admitter.{token}", grants=permissions.admitter(cluster)),
            NatsUser(name=f"checker.{token}", grants=permissions.checker(cluster)),
        ]
    return users + [
        NatsUser(name=f"operator.{encode_token(name)}", grants=permissions.operator())
        for name in layout.operators
    ]


def _submitter(tenant: str) -> NatsUser:
    return NatsUser(
        name=f"tenant.{encode_token(tenant)}", grants=permissions.submitter(tenant), tenant=tenant
    )
