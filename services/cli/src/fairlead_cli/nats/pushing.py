"""`fairlead nats push`: a server in operator mode is handed the accounts' tokens.

Source: docs.nats.io, "NATS based resolver": `$SYS.REQ.CLAIMS.UPDATE` of the system account.
"""

from pathlib import Path

import msgspec

from fairlead_bus import connect
from fairlead_cli.console import warn, write_line
from fairlead_cli.errors import InputError
from fairlead_cli.nats.checking import as_user, reaching, stated_in
from fairlead_cli.nats.files import NatsDirectory

DONE, UNDONE = 0, 1


class _Refusal(msgspec.Struct):
    description: str = ""


class _PushAnswer(msgspec.Struct):
    error: _Refusal | None = None


async def pushed(directory: Path, nats: str | None) -> int:
    """Hand over each token and say so; the exit code.

    Raises:
        InputError: the directory is none of `fairlead nats config --jwt`.
    """
    stated, made = stated_in(directory), NatsDirectory(directory)
    if not stated.server.jwt:
        raise InputError("there are no tokens: the directory is for a plain configuration; reload the server")
    refused = 0
    async with connect(as_user(reaching(stated, nats), stated, made, "system"), name="push") as bus:
        for account, token in made.tokens(stated).items():
            reply = await bus.request("$SYS.REQ.CLAIMS.UPDATE", token.encode())
            error = msgspec.json.decode(reply, type=_PushAnswer).error
            if error is None:
                write_line(f"{account}: taken")
            else:
                refused += 1
                warn(f"{account}: refused by NATS: {error.description}")
    return UNDONE if refused else DONE
