"""The doctor's visit when an instance starts: what it finds, and whether levels may be written."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from fairlead_bus import Bus, RetryableBusError
from fairlead_cli.client.steering_mode import this_user
from fairlead_cli.console import output, say, warn
from fairlead_cli.errors import CommandError
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_cli.local.stack import StackPlan
from fairlead_cli.slurm.clusters import SlurmTarget

_AGAIN_SECONDS = 5.0
"""Seconds from one look at a slurmctld that is away to the next."""


async def examined(plan: StackPlan, bus: Bus, flags: DoctorFlags, end: asyncio.Event) -> None:
    """Examine each cluster of Kubernetes and say what was found; one that passes gets leave, but not for a dry run.

    A cluster that cannot be reached just now is no reason to end: its watcher keeps trying, and nothing is written to it.
    """
    # The doctor's rules are only needed where there is a cluster.
    from fairlead_cli.kueue.doctor.doctor_run import OwnStart, look
    from fairlead_cli.kueue.doctor.verdict import view

    start = OwnStart(dry_run=plan.dry_run, checks_gangs=plan.gang_fit)
    for target in plan.kubernetes:
        if end.is_set():
            return
        try:
            found = await look(target, flags, bus, start)
        except CommandError as error:
            warn(f"{error}; read-only until `fairlead doctor` passes")
            continue
        output(stderr=True).print(view(found, quiet=True), crop=False)
        for line in found.said:
            say(line)


@contextlib.asynccontextmanager
async def examined_slurm(
    targets: Sequence[SlurmTarget], bus: Bus, *, dry_run: bool, end: asyncio.Event
) -> AsyncIterator[None]:
    """Looks at clusters of Slurm, like `examined` at those of Kubernetes; at one that is away again, for the time of the block."""
    async with asyncio.TaskGroup() as group:
        again = []
        for target in targets:
            if end.is_set():
                break
            try:
                await _look_at_slurm(target, bus, dry_run=dry_run)
            except CommandError as error:
                warn(f"{target.cluster}: {error}; no leave is given until it answers and is found fit")
                again.append(group.create_task(_look_until_it_answers(target, bus, dry_run=dry_run)))
        yield
        for task in again:
            task.cancel()


async def _look_until_it_answers(target: SlurmTarget, bus: Bus, *, dry_run: bool) -> None:
    while True:
        await asyncio.sleep(_AGAIN_SECONDS)
        with contextlib.suppress(CommandError, RetryableBusError):
            return await _look_at_slurm(target, bus, dry_run=dry_run)


async def _look_at_slurm(target: SlurmTarget, bus: Bus, *, dry_run: bool) -> None:
    """Look at a slurmctld, say what is found, and give leave where it is fit.

    Raises:
        ClusterError: it cannot be asked.
    """
    from fairlead_cli.client import leave
    from fairlead_cli.slurm.examining import give_leave, view, weigh
    from fairlead_cli.slurm.survey import take

    found = weigh(await take(target.conf))
    output(stderr=True).print(view(found, quiet=True), crop=False)
    if not found.passed:
        warn(f"{target.cluster}: read-only, nothing is written to it (`fairlead slurm check` says why)")
    elif taken := await leave.revoked(bus, target.cluster):
        warn(
            f"{target.cluster}: {taken}, and a start does not give it again. To give it: "
            f"`fairlead slurm check --cluster {target.cluster}`"
        )
    elif not dry_run:
        await give_leave(bus, target.cluster, this_user())
        say(f"{target.cluster}: levels may be written, as SiteFactor")
