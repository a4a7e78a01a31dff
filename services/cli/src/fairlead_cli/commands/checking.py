"""`fairlead doctor`: is a cluster fit to be steered?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead_cli.options import CURRENT, HERE, KubeCluster, Output, Reach


def doctor(
    *,
    accept: Annotated[Sequence[str], Parameter(negative="")] = (),
    lever: Literal["boost", "priority"] | None = None,
    service_accounts: str | None = None,
    policy: Path | None = None,
    by: str | None = None,
    revoke: Annotated[bool, Parameter(negative="")] = False,
    give_leave: Annotated[bool, Parameter(negative="")] = False,
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
    accept:
        Name of findings that shall not count, errors or warnings; may be given several times. Stays accepted until
        --revoke.
    lever:
        What Kueue obeys, where it cannot be asked: the boost annotation, or spec.priority.
    service_accounts:
        Namespace of the service accounts fairlead-watcher and fairlead-admitter: their rights are looked at in place
        of our own.
    policy:
        A policy file to measure by; the one in force unless given.
    by:
        Who says so; the user of this machine unless given.
    revoke:
        Take the leave back: every level is taken away, then nothing is written to the cluster any more.
    give_leave:
        Give leave again after --revoke, or before the cluster's services first start, if it passes. Else leave takes no
        flag.
    output:
        Words (wide: the same); json, yaml; name: the names of open findings, as --accept takes them.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.client.steering import this_user
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import target
    from fairlead_cli.kueue.doctor.running import DoctorFlags, run_doctor

    if revoke and give_leave:
        raise InputError("--revoke takes leave back, and --give-leave gives it: state one of them")
    flags = DoctorFlags(
        target=target(kubeconfig=where.kubeconfig, context=where.context, cluster=where.cluster),
        accept=accept,
        lever=lever,
        service_accounts=service_accounts,
        policy=policy,
        nats=reach.nats,
        by=by or this_user(),
        revoke=revoke,
        give_leave=give_leave,
        form=output,
    )
    return run(run_doctor(flags))
