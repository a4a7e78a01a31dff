"""Leave to write levels to a Slurm cluster, where its services were started one by one: `fairlead slurm check --cluster`."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fairlead_cli.client import leave
from fairlead_cli.client.connection import connected
from fairlead_cli.console import say, warn
from fairlead_cli.options import Format
from fairlead_cli.policy.members import other_clusters
from fairlead_cli.slurm.examining import look, print_report
from fairlead_cli.slurm.survey import RestTarget
from fairlead_contracts.messages.leave import Leave


class LeaveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster whose leave it is, and who says so."""

    cluster: str
    """Name that Fairlead has for the cluster."""
    by: str
    nats: str | None
    rest: RestTarget | None = None
    """The slurmrestd that its bridge asks."""


async def check_and_clear(request: LeaveRequest, conf: Path | None, user: str, form: Format) -> int:
    """Look, print what is found, and give leave where no error is open; the exit code is the look's.

    Raises:
        ClusterError: slurmctld cannot be asked.
        NotRunningError: nobody is there on NATS.
    """
    found = await look(conf, user, request.rest)
    print_report(found, form)
    if not found.passed:
        warn(f"{request.cluster}: no leave was given. Mend what is said above")
        return found.exit_code
    now = datetime.now(UTC)
    async with connected(request.nats) as bus:
        if others := await other_clusters(bus, request.cluster):
            warn(
                f"no service of Fairlead has told of a cluster {request.cluster} yet. Known are {', '.join(others)}: if it is "
                f"one of these, take this leave back (--cluster {request.cluster} --revoke) and name that one"
            )
        await leave.give(bus, Leave(cluster=request.cluster, lever="site-factor", at=now, by=request.by))
    say(f"{request.cluster}: levels may be written from now on, as SiteFactor (--revoke takes it back)")
    return found.exit_code


async def revoke(request: LeaveRequest) -> int:
    """Take the leave back; whoever writes there takes the levels that stand away first.

    Raises:
        NotRunningError: nobody is there on NATS.
    """
    async with connected(request.nats) as bus:
        there = await leave.take_back(bus, request.cluster, by=request.by)
    said = "leave is taken back. Its admitter takes away the levels that stand, then writes no more"
    say(f"{request.cluster}: {said if there else 'there was no leave to write'}")
    return 0
