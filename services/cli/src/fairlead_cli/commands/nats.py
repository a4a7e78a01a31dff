"""`fairlead nats`: what Fairlead stands on in a NATS server of yours."""

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from fairlead_cli.commands.options import CHECK, HERE, Reach

nats = App(name="nats", help="Set up a NATS server for Fairlead.", group=CHECK)


@nats.command
def provision(
    cluster: str,
    /,
    *clusters: str,
    replicas: Annotated[int | None, Parameter(validator=Number(gte=1, lte=5))] = None,
    max_bytes: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    max_age: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    reach: Reach = HERE,
) -> int:
    """Make the streams, buckets and durables that Fairlead's services stand on, and say what was made.

    Again, it changes nothing. What clusters that are not named have stays: a new cluster is added by naming it alone.
    It needs a NATS user who may manage streams; no service does.

    Parameters
    ----------
    cluster:
        Name of a cluster, as its watcher and admitter are told it.
    clusters:
        Further ones.
    replicas:
        Copies of each stream and bucket in a cluster of NATS servers, 3 mostly; what stands, or 1, unless given.
    max_bytes:
        How much a stream or a bucket may hold, as `event=20Gi`; any number of them. What stands, or no limit, unless given.
    max_age:
        How long a stream keeps its messages, as `event=3d` (s, m, h, d): event, answer or dead.
    dry_run:
        Say what is missing and what differs, and change nothing; exit 1 where something does.
    """
    from fairlead_cli.connection import run
    from fairlead_cli.provisioning import Limits, provisioned

    limits = Limits.read(max_bytes or (), max_age or ())
    return run(
        provisioned(reach.nats, [cluster, *clusters], limits=limits, replicas=replicas, dry_run=dry_run)
    )
