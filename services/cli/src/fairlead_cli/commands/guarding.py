"""`fairlead watchdog`: for clusters with reserved queues or the check for gang fit, what happens while Fairlead is away."""

from collections.abc import Sequence

from fairlead_cli.kueue.watchdog.flags import AS_USUAL, WatchdogFlags
from fairlead_cli.options import CURRENT, HERE, KubeCluster, Reach


def watchdog(
    queues: Sequence[str] = (),
    /,
    *,
    flags: WatchdogFlags = AS_USUAL,
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
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.watchdog.running import run_watchdog

    if not queues and not flags.check:
        raise InputError("name at least one ClusterQueue, or a check: --check gang-fit")
    cluster = target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster)
    run(run_watchdog(cluster, queues, flags, reach.nats))
