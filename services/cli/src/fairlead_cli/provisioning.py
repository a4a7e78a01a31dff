"""`fairlead nats provision`: NATS made as the services expect it, one change after the other."""

from collections.abc import Sequence

from fairlead_bus import Change, RefusedError, find_changes, make
from fairlead_cli.connection import connected
from fairlead_cli.console import say, warn, write_line
from fairlead_cli.errors import InputError
from fairlead_contracts.errors import FieldError
from fairlead_contracts.topology import Topology, topology

DONE, UNDONE = 0, 1


async def provisioned(
    nats: str | None, clusters: Sequence[str], *, replicas: int | None, dry_run: bool
) -> int:
    """Make what is missing, change what differs, and say so, a line each; the exit code.

    Raises:
        InputError: a cluster cannot be called so.
        NotRunningError: nobody is there.
    """
    wanted = _wanted(clusters)
    async with connected(nats) as bus:
        changes = await find_changes(bus, wanted, replicas=replicas)
        if not changes:
            say("nothing is missing, nothing differs")
            return DONE
        if dry_run:
            for change in changes:
                write_line(change.sentence("missing"))
            return UNDONE
        refused = 0
        for change in changes:
            try:
                await make(bus, change)
            except RefusedError as error:
                refused += 1
                warn(f"{_attempt(change)}: refused by NATS: {error.description}")
            else:
                write_line(change.sentence())
    if refused:
        say(f"{refused} of {len(changes)} are left as they were")
    return UNDONE if refused else DONE


def _wanted(clusters: Sequence[str]) -> Topology:
    try:
        return topology(list(clusters))
    except FieldError as error:
        raise InputError(str(error)) from error


def _attempt(change: Change) -> str:
    return change.sentence("cannot be made")
