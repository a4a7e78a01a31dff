"""A running server, reached as the users of a directory of `fairlead nats config`.

`fairlead nats check` tries what it lets each of them do, against what it shall; `fairlead nats push` hands it the accounts'
tokens in operator mode (docs.nats.io, "NATS based resolver": `$SYS.REQ.CLAIMS.UPDATE` of the system account).
"""

import asyncio
import contextlib
import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.server.accounts import NatsUser
from fairlead_bus.server.probing import find_faults, logins
from fairlead_cli.client.connection import connection_settings
from fairlead_cli.client.phrases import counted
from fairlead_cli.console import warn, write_line
from fairlead_cli.errors import InputError, NotRunningError
from fairlead_cli.nats.files import LAYOUT_FILE, NatsDirectory, read_stated
from fairlead_cli.options import Format
from fairlead_cli.outcomes import DONE, UNDONE, NatsChecked
from fairlead_cli.printing import is_for_people, print_outcome, print_sentence

_CONNECT_SECONDS = 5.0
_PORT = 4222


class _Refusal(msgspec.Struct):
    description: str = ""


class _PushAnswer(msgspec.Struct):
    error: _Refusal | None = None


async def checked(directory: Path, nats: str | None, *, form: Format = "table") -> int:
    """Say each fault on a line of its own; the exit code.

    Raises:
        InputError: the directory is none of `fairlead nats config`.
        NotRunningError: nobody is there.
    """
    made = _made_in(directory)
    plain = _reaching(made, nats)

    def how(user: NatsUser) -> tuple[str, ConnectionSettings]:
        return made.key(user.name), _as_user(plain, made, user.name)

    everybody = logins(made.stated.layout.accounts, how)
    await _reach(plain)
    faults = await find_faults(everybody)
    if is_for_people(form):
        for fault in faults:
            write_line(fault)
    sound = f"{len(everybody)} users may do what they need, and nothing else"
    print_sentence(counted(len(faults), "fault") if faults else sound, form)
    print_outcome(NatsChecked(users=len(everybody), faults=faults), faults, form)
    return UNDONE if faults else DONE


async def pushed(directory: Path, nats: str | None) -> int:
    """Hand over each token and say so; the exit code.

    Raises:
        InputError: the directory is none of `fairlead nats config --jwt`.
    """
    made = _made_in(directory)
    if not made.stated.server.jwt:
        raise InputError("there are no tokens: the directory is for a plain configuration; reload the server")
    refused = 0
    async with connect(_as_user(_reaching(made, nats), made, "system"), name="push") as bus:
        for account, token in made.tokens().items():
            reply = await bus.request("$SYS.REQ.CLAIMS.UPDATE", token.encode())
            error = msgspec.json.decode(reply, type=_PushAnswer).error
            if error is None:
                write_line(f"{account}: taken")
            else:
                refused += 1
                warn(f"{account}: refused by NATS: {error.description}")
    return UNDONE if refused else DONE


def _made_in(directory: Path) -> NatsDirectory:
    """The directory, with the source that it was made from.

    Raises:
        InputError: the directory is none of `fairlead nats config`.
    """
    stated = read_stated(directory)
    if stated is None:
        raise InputError(f"{directory / LAYOUT_FILE}: there is none", hint="`fairlead nats config` makes it.")
    return NatsDirectory(directory, stated)


def _reaching(made: NatsDirectory, nats: str | None) -> ConnectionSettings:
    """The settings to reach the server, as nobody yet."""
    plain = connection_settings(nats or made.stated.server.url, {})
    authority = os.environ.get("FAIRLEAD_NATS_TLS_CA") or made.stated.server.tls_ca
    return msgspec.structs.replace(plain, tls_ca=authority, connect_timeout_seconds=_CONNECT_SECONDS)


def _as_user(plain: ConnectionSettings, made: NatsDirectory, user: str) -> ConnectionSettings:
    """The settings with which one of the directory's users connects."""
    if made.stated.server.jwt:
        return msgspec.structs.replace(plain, creds=str(made.creds_path(user)))
    return msgspec.structs.replace(plain, nkey_seed=str(made.seed_path(user)))


async def _reach(settings: ConnectionSettings) -> None:
    """Tells a server that is not there from one that lets nobody in."""
    for server in settings.servers():
        address = urlsplit(server if "://" in server else f"nats://{server}")
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(address.hostname, address.port or _PORT)
            writer.close()
            return
    raise NotRunningError(f"no NATS server answers at {settings.redacted()['url']}")
