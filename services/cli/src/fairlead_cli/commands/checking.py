"""`fairlead doctor`: is a cluster fit to be steered?"""

from fairlead_cli.kueue.doctor.flags import A_LOOK, DoctorFlags
from fairlead_cli.options import CURRENT, HERE, KubeCluster, Output, Reach


def doctor(
    *,
    flags: DoctorFlags = A_LOOK,
    output: Output = "table",
    where: KubeCluster = CURRENT,
    reach: Reach = HERE,
) -> int:
    """Look a Kubernetes cluster over before Fairlead writes to it: what is wrong, why it matters, what mends it.

    Reads, and one dry run; writes nothing to the cluster. Where Fairlead's NATS is reached, a cluster that passes gets
    leave: levels may be written to it from then on. It passes when no error is open. After --revoke, only --give-leave
    gives it again.

    Ends with 0 where nothing is open but what is good to know, 1 with warnings, 2 with errors, 3 where it could not look.

    Parameters
    ----------
    output:
        Words (wide: the same); json, yaml; name: the names of open findings, as --accept takes them.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.doctor.running import run_doctor

    if flags.revoke and flags.give_leave:
        raise InputError("--revoke takes leave back, and --give-leave gives it: state one of them")
    cluster = target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster)
    return run(run_doctor(cluster, flags, reach.nats, form=output))
