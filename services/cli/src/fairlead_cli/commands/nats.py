"""`fairlead nats`: what Fairlead stands on in a NATS server of yours."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from fairlead_cli.nats.flags import ServerFlags, WhoFlags
from fairlead_cli.options import CHECK, Output, Reach, Underway

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
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Make the streams, buckets and durables that Fairlead's services stand on, and say what was made.

    Again, it changes nothing. What clusters that are not named have stays: a new cluster is added by naming it alone.
    It needs a NATS user who may manage streams; no service does.

    Args:
        cluster: Name of a cluster, as its watcher and admitter are told it.
        clusters: Further ones.
        replicas: Copies of each stream and bucket in a cluster of NATS servers, 3 mostly; what stands, or 1, unless
            given.
        max_bytes: How much a stream or a bucket may hold, as `event=20Gi`; `event=none` takes the limit away; any
            number of them. What stands, or no limit, unless given.
        max_age: How long a stream keeps its messages, as `event=3d` (s, m, h, d): event, answer or dead.
        dry_run: Say what is missing and what differs, and change nothing; exit 1 where something does.
        output: Words; json, yaml: see docs/output.md; name: what was made or changed, a sentence each.
    """
    from fairlead_cli.nats.provisioning import provisioned

    return provisioned(
        reach.nats,
        [cluster, *clusters],
        max_bytes=max_bytes or (),
        max_age=max_age or (),
        replicas=replicas,
        dry_run=dry_run,
        form=output,
    )


@nats.command
def retire(
    cluster: str,
    /,
    *,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Take away what a cluster that is gone for good has left on NATS: facts, submissions that nobody took in, leave.

    It refuses while a service of the cluster leads, or while the policy names the cluster. A cluster that comes back
    under this name begins anew, with `fairlead nats provision`. Run it again where a crash of NATS brought something back.
    It needs the NATS user of `fairlead nats provision`.

    Args:
        cluster: Name of the cluster, as its watcher and admitter were told it.
        dry_run: Say what is left, and change nothing; exit 1 where something is.
        output: Words; json, yaml: see docs/output.md; name: what is left, a line each.
    """
    from fairlead_cli.nats.retiring import retired

    return retired(reach.nats, cluster, dry_run=dry_run, form=output)


@nats.command
def config(
    directory: Path, /, *clusters: str, who: WhoFlags = WhoFlags(), server: ServerFlags = ServerFlags()
) -> None:
    """Write a NATS server's accounts and users: one for each service, operator and tenant, with a key of its own.

    Tenants get accounts of their own, from which they reach their own submissions, questions and answers alone. Run it
    again with more names to add them, and reload the server: `nats-server --signal reload`, twice where a tenant is new:
    it takes up a new account's imports at the second. Whoever is taken out of layout.json is out after the next run.

    Args:
        directory: Where to. Keys are made there, readable for their owner alone: `users/USER.nk`, and beside each
            `users/USER.env` with what is set for who connects so.
        clusters: Names of clusters, as their watchers and admitters are told them.
    """
    from fairlead_cli.nats.files import make_config

    make_config(directory, clusters, who, server)


@nats.command
def check(directory: Path, /, *, output: Output = "table", reach: Reach = Reach()) -> Underway:
    """Try on a running server what each user may do and what not; exit 1 where a grant is too wide or missing.

    Nothing is changed by it: what would reach a stream is refused by the stream, what asks for a change is malformed.

    Args:
        directory: As `fairlead nats config` wrote it, with everybody's keys.
        output: Words; json, yaml: see docs/output.md; name: each fault.
    """
    from fairlead_cli.nats.server import checked

    return checked(directory, reach.nats, form=output)


@nats.command
def push(directory: Path, /, *, reach: Reach = Reach()) -> Underway:
    """In operator mode, hand the accounts' tokens to a running server: new tenants and keys count at once.

    Args:
        directory: As `fairlead nats config --jwt` wrote it.
    """
    from fairlead_cli.nats.server import pushed

    return pushed(directory, reach.nats)
