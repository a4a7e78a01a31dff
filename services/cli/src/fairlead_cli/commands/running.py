"""`fairlead up` and `fairlead demo`: whole instances on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from fairlead_cli.options import HERE, Reach


def up(
    *,
    nats: str | None = None,
    policy: Path | None = None,
    scorers: Annotated[int, Parameter(validator=Number(gte=1, lte=64))] = 2,
    kubeconfig: str | None = None,
    context: Annotated[Sequence[str], Parameter(negative="")] = (),
    slurm_conf: Path | None = None,
    slurm_users: Path | None = None,
    cluster: str | None = None,
    cluster_file: Path | None = None,
    lever: Literal["boost", "priority"] | None = None,
    gang_fit: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    store: Path | None = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=1, lte=65535))] = None,
) -> int:
    """Run Fairlead on this machine: NATS, scorers, an admitter and a simulated cluster. Ctrl-C ends all of it.

    With --kubeconfig or --context it steers Kueue on Kubernetes clusters in place of the simulated one, with --slurm-conf
    the jobs of a slurmctld; both may be given. Nothing is written to a cluster until it was found fit, which is looked at once
    at the start (for Kubernetes: `fairlead doctor`).

    Jobs, queue and policy are kept in the store: the next `up` goes on where this one ended.

    Parameters
    ----------
    nats:
        Use this NATS instead of an embedded one.
    policy:
        A policy file to put in force; unless given, the one that is stored, or three teams with weights 3, 2 and 1. With
        Kubernetes: or every namespace with weight 1.
    scorers:
        How many scorers share the work.
    kubeconfig:
        Path of the kubeconfig of the Kubernetes clusters to steer.
    context:
        Of the kubeconfig; may be given several times, for several clusters. Its current one unless given.
    slurm_conf:
        Path of the slurm.conf of a Slurm cluster to steer; it has the name that stands there as ClusterName.
    slurm_users:
        File of lines `ACCOUNT USER`: as which Unix user submissions of an account become batch jobs, where this runs as root;
        unless given, as the user of the account's name.
    cluster:
        Name of the simulated cluster, `sim` unless given; or of the only Kubernetes cluster, named after its context
        unless given.
    cluster_file:
        YAML with its nodes, queues and accounts; four nodes of eight GPUs unless given.
    lever:
        What Kueue obeys, where it cannot be asked: the boost annotation, or spec.priority.
    gang_fit:
        Answer Kueue's AdmissionCheck for gang fit, too, for the queues that name it (deploy/kustomize/gang-fit).
    dry_run:
        Say what would be written, and write nothing.
    store:
        Directory for all data; one under ~/.local/state/fairlead unless given.
    port:
        Port of the embedded NATS; a free one unless given.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.errors import InputError
    from fairlead_cli.kueue.clusters import targets
    from fairlead_cli.local.up import UpFlags, stay_up
    from fairlead_cli.slurm.clusters import target as slurm_target

    kubernetes = (
        targets(kubeconfig=kubeconfig, contexts=context, cluster=cluster)
        if kubeconfig is not None or context
        else []
    )
    if gang_fit and not kubernetes:
        raise InputError("--gang-fit is for Kubernetes clusters: name one with --kubeconfig or --context")
    slurm = [] if slurm_conf is None else [slurm_target(slurm_conf, slurm_users)]
    if {one.cluster for one in slurm} & {one.cluster for one in kubernetes}:
        raise InputError(
            f"two clusters would both be called {slurm[0].cluster}", hint="Name the other: --cluster NAME."
        )
    flags = UpFlags(
        nats=nats,
        policy=policy,
        scorers=scorers,
        cluster=None if kubernetes or slurm else cluster or "sim",
        cluster_file=cluster_file,
        kubernetes=kubernetes,
        slurm=slurm,
        lever=lever,
        gang_fit=gang_fit,
        dry_run=dry_run,
        store=store,
        port=port,
    )
    return run(stay_up(flags))


def demo(
    *,
    seconds: Annotated[float | None, Parameter(validator=Number(gte=1, lte=100))] = None,
    trace: Path | None = None,
    weights: str | None = None,
    scorers: Annotated[int, Parameter(validator=Number(gte=1, lte=16))] = 2,
    seed: int = 0,
    report: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """A GPU cluster, three times overloaded, ordered fairly before your eyes; a report within two minutes.

    Parameters
    ----------
    seconds:
        For how long jobs are submitted.
    trace:
        Another trace in the form of the one that ships (CSV, also gzipped: vc, job, submit_s, gpus, duration_s).
    weights:
        Tenants and weights, as `a=3,b=2`.
    scorers:
        How many scorers share the work.
    seed:
        Of everything that is drawn by chance.
    report:
        Where the report is written as one HTML page; fairlead-demo.html here, and nowhere with --json, unless given.
    json:
        Print the figures as JSON and nothing else.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.demo import DemoFlags, run_demo

    flags = DemoFlags(
        seconds=seconds, trace=trace, weights=weights, scorers=scorers, seed=seed, report=report, as_json=json
    )
    return run(run_demo(flags))


def feed(
    *,
    cluster: str = "sim",
    seconds: Annotated[float | None, Parameter(validator=Number(gte=5, lte=3600))] = None,
    reach: Reach = HERE,
) -> int:
    """Publish the demo's jobs on a running Fairlead, lap after lap, until Ctrl-C: something to see on a dashboard.

    The simulated cluster and the policy are to be the demo's, as `docker compose up` has them.

    Parameters
    ----------
    cluster:
        The simulated cluster that the jobs are for.
    seconds:
        For how long the jobs of a lap keep the pool busy; 240 unless given.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.demo import feed as keep_feeding

    return run(keep_feeding(reach.nats, cluster=cluster, seconds=seconds))
