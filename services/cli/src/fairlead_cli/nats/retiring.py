"""`fairlead nats retire`: what a cluster that is gone for good has left on NATS, taken away."""

from fairlead_bus import Bus
from fairlead_bus.facts.retirement import find_leftovers, leading_roles
from fairlead_cli.client.connection import connected
from fairlead_cli.client.phrases import listed
from fairlead_cli.console import say, write_line
from fairlead_cli.errors import CommandError, InputError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import DONE, UNDONE, ClusterRetired
from fairlead_cli.policy.store import stored_policy
from fairlead_cli.printing import is_for_people, print_outcome
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.topology import topology


async def retired(nats: str | None, cluster: str, *, dry_run: bool, form: Format = "table") -> int:
    """Take away what the cluster left, and say so, a line each; the exit code.

    Raises:
        InputError: a cluster cannot be called so; `any` is the way of all submissions that name none.
        CommandError: the cluster lives: a service leads for it, or the policy names it.
        NotRunningError: nobody is there.
    """
    try:
        topology([cluster])
    except FieldError as error:
        raise InputError(str(error)) from error
    told: list[str] = []
    async with connected(nats) as bus:
        await _refuse_living(bus, cluster)
        for leftover in await find_leftovers(bus, cluster):
            if not dry_run:
                await leftover.remove()
            told.append(leftover.what)
            if is_for_people(form):
                write_line(f"{leftover.what}: {'stands' if dry_run else 'removed'}")
    if not told:
        say(f"nothing is left of {cluster}")
    print_outcome(ClusterRetired(cluster=cluster, dry_run=dry_run, leftovers=told), told, form)
    return UNDONE if dry_run and told else DONE


async def _refuse_living(bus: Bus, cluster: str) -> None:
    if roles := await leading_roles(bus, cluster):
        raise CommandError(
            f"services of {cluster} still lead: {listed(roles)}",
            hint="End its services first; a lease lasts three seconds longer than who was killed.",
        )
    stored = await stored_policy(bus)
    named = (
        []
        if stored is None
        else [
            f"{member} in pool {pool.name}"
            for pool in stored[0].pools
            for member in pool.members
            if member.partition("/")[0] == cluster
        ]
    )
    if named:
        raise CommandError(
            f"the policy names {listed(named)}: without its facts the pool would have no order",
            hint="Take it out first: `fairlead policy show`, `fairlead policy apply`.",
        )
