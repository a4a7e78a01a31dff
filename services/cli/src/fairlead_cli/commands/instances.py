"""`fairlead up` and `fairlead demo`: whole instances on this machine."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairlead_cli.demo.flags import DemoFlags
from fairlead_cli.local.flags import UpFlags
from fairlead_cli.options import Reach, Underway


def up(*, flags: UpFlags = UpFlags()) -> Underway:
    """Run Fairlead on this machine: NATS, scorers, an admitter and a simulated cluster. Ctrl-C ends all of it.

    With --kubeconfig or --context it steers Kueue on Kubernetes clusters in place of the simulated one, with --slurm-conf
    the jobs of a slurmctld; both may be given. Nothing is written to a cluster until it was found fit, which is looked at once
    at the start (for Kubernetes: `fairlead doctor`).

    Jobs, queue and policy are kept in the store: the next `up` goes on where this one ended.
    """
    from fairlead_cli.local.up import stay_up

    return stay_up(flags)


def demo(*, flags: DemoFlags = DemoFlags()) -> Underway:
    """A GPU cluster, three times overloaded, ordered fairly before your eyes; a report within two minutes."""
    from fairlead_cli.demo.demo_run import run_demo

    return run_demo(flags)


def feed(
    *,
    cluster: str = "sim",
    seconds: Annotated[float | None, Parameter(validator=Number(gte=5, lte=3600))] = None,
    reach: Reach = Reach(),
) -> Underway:
    """Publish the demo's jobs on a running Fairlead, lap after lap, until Ctrl-C: something to see on a dashboard.

    The simulated cluster and the policy are to be the demo's, as `docker compose up` has them.

    Args:
        cluster: The simulated cluster that the jobs are for.
        seconds: For how long the jobs of a lap keep the pool busy; 240 unless given.
    """
    from fairlead_cli.demo.feeding import feed as keep_feeding

    return keep_feeding(reach.nats, cluster=cluster, seconds=seconds)
