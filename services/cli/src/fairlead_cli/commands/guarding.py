"""`fairlead watchdog`: for clusters with reserved queues or the check for gang fit, what happens while Fairlead is away."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairlead_cli.options import CURRENT, HERE, KubeCluster, Reach


def watchdog(
    queues: Sequence[str] = (),
    /,
    *,
    check: Annotated[Sequence[str], Parameter(negative=())] = (),
    overdue: Annotated[float, Parameter(validator=Number(gte=1))] = 60.0,
    after: Annotated[float, Parameter(validator=Number(gte=1))] = 600.0,
    back_after: Annotated[float, Parameter(validator=Number(gte=0))] = 30.0,
    every: Annotated[float, Parameter(validator=Number(gte=0.2, lte=60))] = 5.0,
    where: KubeCluster = CURRENT,
    reach: Reach = HERE,
) -> None:
    """Let go of what waits for Fairlead while it is away: strict ClusterQueues that are reserved, and open checks.

    Make strict ClusterQueues fill their gaps while no admitter leads, and strict again when one does: in reserve mode
    a StrictFIFO queue needs Fairlead to let small jobs pass; without it they wait behind the first
    that does not fit. Promises hold meanwhile, and end with this: give the longest run that is promised around
    time enough. It is a process of its own, with rights to these queues alone (deploy/kustomize/rbac/watchdog.yaml).

    Let through what waits for an admission check that nobody answers: it needs no NATS, and an account of its own
    (deploy/kustomize/gang-fit/watchdog.yaml).

    Parameters
    ----------
    queues:
        Names of ClusterQueues. One that somebody else made BestEffortFIFO is left as it is.
    check:
        Names of AdmissionChecks, each with a flag of its own; Fairlead's is `gang-fit`.
    overdue:
        Seconds that a Workload may hold quota and wait for the check until it is let through.
    after:
        Seconds without a leader, or without NATS, until they become BestEffortFIFO.
    back_after:
        Seconds with one and the same leader until they become StrictFIFO again.
    every:
        Seconds between two looks.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.watchdog.running import WatchdogFlags, run_watchdog

    if not queues and not check:
        raise InputError("name at least one ClusterQueue, or a check: --check gang-fit")
    flags = WatchdogFlags(
        target=target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster),
        queues=queues,
        nats=reach.nats,
        after=after,
        back_after=back_after,
        every=every,
        checks=check,
        overdue=overdue,
    )
    run(run_watchdog(flags))
