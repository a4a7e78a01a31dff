"""`fairlead nats config`: a NATS server's accounts, a key for each user, and what each service is told, as files.

What stands in the directory stays: a run with more names adds them, and makes no key anew but those to be rotated.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from fairlead_bus.connection.identity import KeyKind, new_seed, public_key
from fairlead_bus.errors import InvalidCredentialsError
from fairlead_bus.server.accounts import Account, AccountLayout, NatsUser, plain_config
from fairlead_bus.server.claims import Signers, account_token, credentials, operator_config, system_account
from fairlead_cli.console import say, write_line
from fairlead_cli.errors import InputError, unreadable
from fairlead_cli.nats.flags import ServerFlags, WhoFlags
from fairlead_contracts.base.errors import FieldError, why_unread
from fairlead_contracts.topology import topology

LAYOUT_FILE = "layout.json"
SERVER_FILE = "nats-server.conf"
ACCOUNTS_FILE = "accounts.conf"
USERS, SIGNERS, TOKENS, RESOLVER = "users", "signers", "tokens", "resolver"
_NOBODY = AccountLayout(clusters=[], groups={}, operators=[])
_SECRET, _PRIVATE, _PUBLIC = 0o600, 0o700, 0o644


class ServerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and files of the server; paths as the server and the services will find them."""

    listen: str = "127.0.0.1:4222"
    url: str = "nats://127.0.0.1:4222"
    store: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    jwt: bool = False
    """Whether it is in operator mode: accounts and users are tokens that an operator's key signs."""


class DirectorySource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of the directory: all that it is made from, but the keys."""

    layout: AccountLayout
    server: ServerChoice
    revoked: dict[str, dict[str, int]] = {}
    """Public keys of users that are out, by account, each with the second of that; in operator mode alone."""


def read_stated(directory: Path) -> DirectorySource | None:
    """The source that the directory was made from; None where there is none yet.

    Raises:
        InputError: the file is not what was written.
    """
    path = directory / LAYOUT_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=DirectorySource)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not as it was written: {why_unread(error)}") from error


def grown(base: AccountLayout, more: AccountLayout) -> AccountLayout:
    """The base layout with the names that it lacks of the other; the base's number of connections stays.

    Raises:
        InputError: a name is none, or is asked for twice.
    """
    groups = {name: list(members) for name, members in base.groups.items()}
    for name, members in more.groups.items():
        groups[name] = _union(groups.get(name, []), members)
    whole = AccountLayout(
        clusters=_union(base.clusters, more.clusters),
        groups=groups,
        operators=_union(base.operators, more.operators),
        tenant_connections=base.tenant_connections,
    )
    try:
        whole.check()
        topology(whole.clusters)
    except FieldError as error:
        raise InputError(str(error)) from error
    return whole


class NatsDirectory:
    """The files of `fairlead nats config`. Seeds are for their owner's eyes alone; the directory of the users, too."""

    def __init__(self, path: Path, stated: DirectorySource) -> None:
        self.path = path.absolute()
        self.stated = stated

    @property
    def accounts(self) -> list[Account]:
        """The accounts; in operator mode the system's last, whose user hands new tokens to the server."""
        accounts = self.stated.layout.accounts
        return [*accounts, system_account()] if self.stated.server.jwt else accounts

    def write(self, *, rotate: Sequence[str]) -> list[str]:
        """Make the files; gives the names of the users whose key is new.

        Args:
            rotate: users whose key is made anew.

        Raises:
            InputError: somebody to be rotated is no user, or a file cannot be written or read.
        """
        users = [user for account in self.accounts for user in account.users]
        names = [user.name for user in users]
        unknown = sorted(set(rotate) - set(names))
        if unknown:
            known = ", ".join(names)
            raise InputError(f"--rotate {unknown[0]}: is not a user; users are {known}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / USERS).mkdir(mode=_PRIVATE, exist_ok=True)
            # Whoever is taken out of the layout is out.
            gone = [path for path in (self.path / USERS).iterdir() if path.stem not in names]
            self._revoke(rotate, [path.stem for path in gone if path.suffix == ".nk"])
            fresh = [user.name for user in users if self._give_seed(user, anew=user.name in rotate)]
            self._write_all()
            for path in gone:
                if path.suffix in {".nk", ".env", ".creds"}:
                    path.unlink()
        except OSError as error:
            raise InputError(f"{error.filename}: {error.strerror}") from error
        return fresh

    def seed_path(self, user: str) -> Path:
        """The path of a user's seed."""
        return self.path / USERS / f"{user}.nk"

    def key(self, user: str) -> str:
        """The public key of a user.

        Raises:
            InputError: its file holds no seed.
        """
        path = self.seed_path(user)
        try:
            return public_key(path.read_text(encoding="ascii").strip())
        except (InvalidCredentialsError, ValueError) as error:
            raise InputError(f"{path}: {error}") from error

    def _revoke(self, rotate: Sequence[str], gone: Sequence[str]) -> None:
        """Adds revocations to the source: in operator mode a token stays good until its account says otherwise.

        Nobody knows any more of which account somebody was who is gone: a key means nothing to the others.
        """
        revoked = {account: dict(keys) for account, keys in self.stated.revoked.items()}
        for account in self.accounts if self.stated.server.jwt else ():
            rotated = [user.name for user in account.users if user.name in rotate]
            for name in [*gone, *rotated]:
                if self.seed_path(name).exists():
                    revoked.setdefault(account.name, {})[self.key(name)] = int(time.time())
        self.stated = msgspec.structs.replace(self.stated, revoked=revoked)

    def _give_seed(self, user: NatsUser, *, anew: bool) -> bool:
        path = self.seed_path(user.name)
        if path.exists() and not anew:
            return False
        _write(path, new_seed(KeyKind.USER) + "\n", mode=_SECRET)
        return True

    def _write_all(self) -> None:
        users = [user for account in self.accounts for user in account.users]
        if self.stated.server.jwt:
            self._write_tokens()
        else:
            keys = {user.name: self.key(user.name) for user in users}
            _write(self.path / ACCOUNTS_FILE, plain_config(self.accounts, keys))
        _write(self.path / SERVER_FILE, self._server_config())
        for user in users:
            _write(self.path / USERS / f"{user.name}.env", self._environment(user), mode=_SECRET)
        # Last: a run that failed half way is made again from what stood before.
        source = msgspec.json.format(msgspec.json.encode(self.stated), indent=2).decode()
        _write(self.path / LAYOUT_FILE, f"{source}\n")

    def _write_tokens(self) -> None:
        signers = self._signers()
        tokens = {}
        # Where the server of another machine keeps its streams it may write; this machine's folder it may not have.
        resolver = str(Path(self.stated.server.store or self.path) / RESOLVER)
        (self.path / TOKENS).mkdir(exist_ok=True)
        for account in self.accounts:
            token = account_token(signers, account, revoked=self.stated.revoked.get(account.name, {}))
            tokens[signers.key(account.name)] = token
            _write(self.path / TOKENS / f"{account.name}.jwt", token + "\n")
            for user in account.users:
                seed = self.seed_path(user.name).read_text(encoding="ascii").strip()
                _write(
                    self.creds_path(user.name), credentials(signers, account, user.name, seed), mode=_SECRET
                )
        _write(self.path / ACCOUNTS_FILE, operator_config(signers, tokens, resolver))

    def _signers(self) -> Signers:
        folder = self.path / SIGNERS
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        known = {path.stem: path.read_text(encoding="ascii").strip() for path in folder.glob("*.nk")}
        signers = Signers.extended(known, self.accounts)
        for name, seed in signers.seeds.items():
            if name not in known:
                _write(folder / f"{name}.nk", seed + "\n", mode=_SECRET)
        return signers

    def creds_path(self, user: str) -> Path:
        """The path of a user's credentials file, in operator mode."""
        return self.path / USERS / f"{user}.creds"

    def tokens(self) -> dict[str, str]:
        """The accounts' tokens by their names, in operator mode."""
        paths = {account.name: self.path / TOKENS / f"{account.name}.jwt" for account in self.accounts}
        return {name: path.read_text(encoding="ascii").strip() for name, path in paths.items()}

    def _environment(self, user: NatsUser) -> str:
        server = self.stated.server
        variables = {
            "FAIRLEAD_NATS_URL": server.url,
            "FAIRLEAD_NATS_NKEY_SEED": None if server.jwt else str(self.seed_path(user.name)),
            "FAIRLEAD_NATS_CREDS": str(self.creds_path(user.name)) if server.jwt else None,
            "FAIRLEAD_NATS_TLS_CA": server.tls_ca,
            "FAIRLEAD_TENANT": user.tenant,
        }
        return "".join(f"{name}={value}\n" for name, value in variables.items() if value is not None)

    def _server_config(self) -> str:
        server = self.stated.server
        store = server.store or str(self.path / "jetstream")
        lines = [
            f"# What changes is in {ACCOUNTS_FILE}: include it in a configuration of your own instead of this one, if you like.",
            f"listen: {_quoted(server.listen)}",
            f"jetstream {{ store_dir: {_quoted(store)} }}",
        ]
        if server.tls_cert and server.tls_key:
            lines.append(
                f"tls {{ cert_file: {_quoted(server.tls_cert)}, key_file: {_quoted(server.tls_key)} }}"
            )
        return "\n".join([*lines, f"include {ACCOUNTS_FILE}", ""])


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _union(known: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*known, *more]))


def _write(path: Path, text: str, *, mode: int = _PUBLIC) -> None:
    """Writes a file whole or not at all, and never readable for others for an instant."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def make_config(directory: Path, clusters: Sequence[str], who: WhoFlags, server: ServerFlags) -> None:
    """Write the files and say whose keys are new.

    Raises:
        InputError: a name cannot be taken, or a file cannot be written.
    """
    known = read_stated(directory)
    alone = {tenant: [tenant] for tenant in who.tenant}
    more = AccountLayout(
        clusters=list(clusters), groups=alone | _groups(who.group), operators=list(who.operator)
    )
    base = known.layout if known else _NOBODY
    if who.tenant_connections is not None:
        base = msgspec.structs.replace(base, tenant_connections=who.tenant_connections)
    stated = DirectorySource(
        layout=grown(base, more),
        server=_choice(known.server if known else None, server),
        revoked=known.revoked if known else {},
    )
    if not stated.layout.clusters:
        raise InputError(
            "name the clusters that Fairlead serves", hint="As in `fairlead nats config nats prod`."
        )
    made = NatsDirectory(directory, stated)
    for name in made.write(rotate=who.rotate):
        write_line(f"{name}: new key")
    running = (
        f"a running one takes up what changed by `fairlead nats push {directory}`"
        if stated.server.jwt
        else "reload a running one, twice where a tenant is new"
    )
    say(f"{made.path / SERVER_FILE} is what nats-server is started with; {running}")


def _groups(texts: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, members = text.partition("=")
        if not (name and equals and members):
            raise InputError(f"--group {text!r}: must be NAME=TENANT,TENANT")
        found[name] = [*found.get(name, []), *members.split(",")]
    return found


def _choice(known: ServerChoice | None, flags: ServerFlags) -> ServerChoice:
    given = {name: value for name, value in asdict(flags).items() if value is not None}
    if known is not None and flags.jwt is not None and flags.jwt is not known.jwt:
        raise InputError("a directory stays in the mode in which it was made", hint="Make another one.")
    choice = msgspec.structs.replace(known or ServerChoice(), **given)
    if bool(choice.tls_cert) is not bool(choice.tls_key):
        raise InputError("--tls-cert and --tls-key belong together")
    return choice
