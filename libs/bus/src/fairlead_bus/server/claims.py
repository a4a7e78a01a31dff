"""The accounts of NATS in operator mode: an operator signs accounts, accounts sign users, as JSON Web Tokens of NATS.

A server trusts the operator's key alone, so that tenants, keys and grants change by handing it a new token, without a
file of its being changed. Exports are private: an import carries an activation that the services' account signed for
this one account and this one subject.

Source of the format: github.com/nats-io/jwt, version 2 (header `ed25519-nkey`, signature over header and body).
"""

import base64
import hashlib
import json
import textwrap
import time
from collections.abc import Mapping, Sequence

import msgspec

from fairlead_bus.connection.identity import KeyKind, new_seed, public_key, sign
from fairlead_bus.server.accounts import (
    SERVICES,
    SUBSCRIPTIONS_OF_A_CONNECTION,
    SYSTEM,
    Account,
    NatsUser,
    heard_subjects,
)
from fairlead_bus.server.permissions import SHARES_OF_ALL, Grants, Share

OPERATOR = "OPERATOR"
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_NANO = 1_000_000_000
_UNLIMITED = -1
_ANSWER_SECONDS = 30
_LIMITED = ("subs", "data", "payload", "imports", "exports", "conn", "leaf")
_STORED = ("mem_storage", "disk_storage", "streams", "consumer")


class Signers(msgspec.Struct, frozen=True, kw_only=True):
    """The seeds of those who sign: the operator, the system's account and every other, by name."""

    seeds: Mapping[str, str]

    @classmethod
    def extended(cls, known: Mapping[str, str], accounts: Sequence[Account]) -> "Signers":
        """Signers with the known seeds, and new seeds for those who have none."""
        kinds = {OPERATOR: KeyKind.OPERATOR, SYSTEM: KeyKind.ACCOUNT} | {
            account.name: KeyKind.ACCOUNT for account in accounts
        }
        return cls(seeds={name: known.get(name) or new_seed(kind) for name, kind in kinds.items()})

    def key(self, name: str) -> str:
        """The public key of the signer of this name."""
        return public_key(self.seeds[name])


def system_account() -> Account:
    """The system account, with the one user that hands tokens to a server."""
    grants = Grants(publish=["$SYS.REQ.CLAIMS.UPDATE"], subscribe=[])
    return Account(name=SYSTEM, users=[NatsUser(name="system", grants=grants)])


def account_token(signers: Signers, account: Account, *, revoked: Mapping[str, int]) -> str:
    """The token of an account, signed by the operator.

    Args:
        account: the services', a tenant's or the system's.
        revoked: public keys of users who are out, with the second until which their tokens were issued.
    """
    is_services = account.name == SERVICES
    limits: dict[str, object] = {**dict.fromkeys(_LIMITED, _UNLIMITED), "wildcards": True}
    if is_services:
        limits |= dict.fromkeys(_STORED, _UNLIMITED)
    if account.connections is not None:
        limits |= {"conn": account.connections, "subs": SUBSCRIPTIONS_OF_A_CONNECTION}
    body: dict[str, object] = {"type": "account", "version": 2, "limits": limits, "default_permissions": {}}
    if revoked:
        body["revocations"] = dict(revoked)
    if is_services:
        body["exports"] = [
            {"name": share.name, "subject": share.subject, "type": share.kind, "token_req": True}
            for share in SHARES_OF_ALL
        ]
    elif account.tenants:
        body["imports"] = [_import(signers, account, share) for share in account.imports]
    return _signed(signers.seeds[OPERATOR], signers.key(account.name), account.name, body)


def credentials(signers: Signers, account: Account, name: str, user_seed: str) -> str:
    """The text of a user's credentials file: its token and its seed.

    Raises:
        ValueError: the account has no such user.
    """
    key = public_key(user_seed)
    [grants] = [user.grants for user in account.users if user.name == name]
    body: dict[str, object] = {
        "type": "user",
        "version": 2,
        "pub": {"allow": grants.publish},
        "sub": {"allow": heard_subjects(grants, key)},
        "subs": _UNLIMITED,
        "data": _UNLIMITED,
        "payload": _UNLIMITED,
    }
    if grants.answers:
        body["resp"] = {"max": 1, "ttl": _ANSWER_SECONDS * _NANO}
    return _credentials_file(_signed(signers.seeds[account.name], key, name, body), user_seed)


def operator_config(signers: Signers, tokens: Mapping[str, str], store: str) -> str:
    """The part of a nats-server's configuration that trusts the operator and knows these accounts.

    Args:
        tokens: the accounts' tokens, by their public keys.
        store: the directory in which the server keeps the tokens that it is handed.
    """
    body = {"type": "operator", "version": 2, "system_account": signers.key(SYSTEM)}
    operator = _signed(signers.seeds[OPERATOR], signers.key(OPERATOR), "fairlead", body)
    preload = json.dumps(dict(tokens), indent=2)
    return (
        f"operator: {operator}\n"
        f"system_account: {signers.key(SYSTEM)}\n"
        f"resolver: {{ type: full, dir: {json.dumps(store)}, allow_delete: true }}\n"
        f"resolver_preload: {preload}\n"
    )


def _import(signers: Signers, account: Account, share: Share) -> dict[str, object]:
    body = {"type": "activation", "version": 2, "kind": share.kind, "subject": share.subject}
    activation = _signed(signers.seeds[SERVICES], signers.key(account.name), share.subject, body)
    return {
        "name": share.subject,
        "subject": share.subject,
        "account": signers.key(SERVICES),
        "type": share.kind,
        "token": activation,
    }


def _signed(seed: str, subject: str, name: str, body: Mapping[str, object]) -> str:
    claims: dict[str, object] = {
        "iat": int(time.time()),
        "iss": public_key(seed),
        "name": name,
        "sub": subject,
        "nats": body,
    }
    digest = hashlib.new("sha512_256", json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    content = f"{_encoded(json.dumps(_HEADER).encode())}.{_encoded(json.dumps(claims).encode())}"
    return f"{content}.{_encoded(sign(seed, content.encode()))}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _credentials_file(token: str, seed: str) -> str:
    return textwrap.dedent("""\
        -----BEGIN NATS USER JWT-----
        {token}
        ------END NATS USER JWT------

        ************************* IMPORTANT *************************
        NKEY Seed printed below can be used to sign and prove identity.
        NKEYs are sensitive and should be treated as secrets.

        -----BEGIN USER NKEY SEED-----
        {seed}
        ------END USER NKEY SEED------

        *************************************************************
        """).format(token=token, seed=seed)
