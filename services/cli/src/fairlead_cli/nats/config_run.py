"""The flags of `fairlead nats config` made into the directory."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from fairlead_bus.server.accounts import AccountLayout
from fairlead_cli.console import say, write_line
from fairlead_cli.errors import InputError
from fairlead_cli.nats.files import (
    SERVER_FILE,
    DirectorySource,
    NatsDirectory,
    ServerChoice,
    grown,
    read_stated,
)
from fairlead_cli.nats.flags import ServerFlags, WhoFlags

_NOBODY = AccountLayout(clusters=[], groups={}, operators=[])


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
    )
    if not stated.layout.clusters:
        raise InputError(
            "name the clusters that Fairlead serves", hint="As in `fairlead nats config nats prod`."
        )
    made = NatsDirectory(directory)
    for name in made.write(stated, rotate=who.rotate):
        write_line(f"{name}: new key")
    say(
        f"{made.path / SERVER_FILE} is what nats-server is started with; reload a running one, twice where a tenant is new"
    )


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
