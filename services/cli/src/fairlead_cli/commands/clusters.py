"""`fairlead doctor` and `fairlead watchdog`: a Kubernetes cluster looked over, and what happens there while Fairlead is away."""

from collections.abc import Sequence

from fairlead_cli.kueue.flags import DoctorFlags, WatchdogFlags
from fairlead_cli.options import KubeCluster, Output, Reach, Underway


def doctor(
    *,
    flags: DoctorFlags = DoctorFlags(),
    output: Output = "table",
    where: KubeCluster = KubeCluster(),
    reach: Reach = Reach(),
) -> Underway:
    """Look a Kubernetes cluster over before Fairlead writes to it: what is wrong, why it matters, what mends it.

    Reads, and one dry run; writes nothing to the cluster. Where Fairlead's NATS is reached, a cluster that passes gets
    leave: levels may be written to it from then on. It passes when no error is open. After --revoke, only --give-leave
    gives it again.

    Ends with 0 where nothing is open but what is good to know, 1 with warnings, 2 with errors, 3 where it could not look.

    Args:
        output: Words (wide: the same); json, yaml; name: the names of open findings, as --accept takes them.
    """
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.doctor.doctor_run import run_doctor

    if flags.revoke and flags.give_leave:
        raise InputError("--revoke takes leave back, and --give-leave gives it: state one of them")
    cluster = target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster)
    return run_doctor(cluster, flags, reach.nats, form=output)


def watchdog(
    queues: Sequence[str] = (),
    /,
    *,
    flags: WatchdogFlags = WatchdogFlags(),
    where: KubeCluster = KubeCluster(),
    reach: Reach = Reach(),
) -> Underway:
    """Let go of what waits for Fairlead while it is away: strict ClusterQueues that are reserved, and open checks.

    Make strict ClusterQueues fill their gaps while no admitter leads, and strict again when one does: in reserve mode
    a StrictFIFO queue needs Fairlead to let small jobs pass; without it they wait behind the first
    that does not fit. Promises hold meanwhile, and end with this: give the longest run that is promised around
    time enough. It is a process of its own, with rights to these queues alone (deploy/kustomize/rbac/watchdog.yaml).

    Let through what waits for an admission check that nobody answers: it needs no NATS, and an account of its own
    (deploy/kustomize/gang-fit/watchdog.yaml).

    Args:
        queues: Names of ClusterQueues. One that somebody else made BestEffortFIFO is left as it is.
    """
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.watchdog.watchdog_run import run_watchdog

    if not queues and not flags.check:
        raise InputError("name at least one ClusterQueue, or a check: --check gang-fit")
    cluster = target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster)
    return run_watchdog(cluster, queues, flags, reach.nats)
