"""`fairlead slurm`: what an operator and a user of Slurm want to know beforehand."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, validators

from fairlead_cli.options import CHECK, HERE, Output, Reach

slurm = App(name="slurm", help="Check a Slurm cluster, and batch scripts.", group=CHECK)

SlurmConf = Annotated[Path | None, Parameter(env_var="SLURM_CONF")]
"""A slurm.conf; where Slurm's own commands look, unless given."""


@slurm.command
def check(
    *,
    slurm_conf: SlurmConf = None,
    user: str | None = None,
    cluster: str | None = None,
    by: str | None = None,
    slurmrestd: str | None = None,
    slurm_token: Path | None = None,
    revoke: Annotated[bool, Parameter(negative="")] = False,
    output: Output = "table",
    reach: Reach = HERE,
) -> int:
    """Look a Slurm cluster over before Fairlead writes to it: what is wrong, why it matters, what mends it.

    Asks the running slurmctld, and changes nothing there. `fairlead up --slurm-conf` looks at the same and writes nothing where
    there is an error. Where services were started one by one, --cluster gives the leave that `fairlead up` gives.

    Ends with 0 where nothing is open but what is good to know, 1 with warnings, 2 with errors, 3 where it could not look.

    Parameters
    ----------
    slurm_conf:
        Path of slurm.conf; where Slurm's own commands look, unless given.
    user:
        Who shall write levels; whoever runs this unless given.
    cluster:
        What Fairlead calls the cluster: where no error is open, levels may be written to it from now on.
    by:
        Who says so; the user of this machine unless given.
    slurmrestd:
        Where slurmrestd is that the bridge is to ask, as http://HOST:PORT or unix:/PATH; it is looked at, too.
    slurm_token:
        Path of a file with a token for it.
    revoke:
        Take the leave for --cluster back, without a look: nothing is written to it any more.
    output:
        Words (wide: the same); json, yaml; name: the names of open findings.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.client.steering import this_user
    from fairlead_cli.errors import InputError
    from fairlead_cli.slurm import leaving
    from fairlead_cli.slurm.examining import check
    from fairlead_cli.slurm.survey import RestTarget, effective_user

    rest = None if slurmrestd is None else RestTarget(address=slurmrestd, token=slurm_token)
    if cluster is None:
        if revoke:
            raise InputError("--revoke: of which cluster? Name it with --cluster")
        return run(check(slurm_conf, user or effective_user(), output, rest))
    request = leaving.LeaveRequest(cluster=cluster, by=by or this_user(), nats=reach.nats, rest=rest)
    if revoke:
        return run(leaving.revoke(request))
    return run(leaving.check_and_clear(request, slurm_conf, user or effective_user(), output))


@slurm.command
def validate(
    script: Path,
    /,
    *,
    slurm_conf: SlurmConf = None,
    user: str | None = None,
    pods_partition: str | None = None,
    images: Literal["off", "warn", "refuse", "strict"] = "refuse",
    registry_auth: Path | None = None,
    registry_seconds: Annotated[float, Parameter(validator=validators.Number(gt=0, lte=300))] = 5.0,
    plain_registry: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    output: Output = "table",
) -> int:
    """Say what Slurm would refuse a batch script for, or never start it for, before it is submitted.

    Looks at the script's form and its #SBATCH lines, and, where slurmctld answers, at partition, time limit, size, account and the
    limits of account, user and QOS. Where jobs run as pods it also looks at the words of the comment, at names that Kubernetes
    would not take, and asks the registry whether the image is there. What stands on sbatch's own command line is not looked at.

    Ends with 0 where nothing is found against it, 1 where it would be refused, 2 where a file cannot be read.

    Parameters
    ----------
    script:
        Path of the batch script.
    slurm_conf:
        Path of slurm.conf; where Slurm's own commands look, unless given.
    user:
        Whose job it would be; whoever runs this unless given.
    pods_partition:
        The partition whose jobs run as pods; what the installed hooks say, unless given.
    images:
        refuse: an image that is not there is refused, and a registry that cannot be asked is a warning. warn: both are
        warnings. strict: both are refused. off: no registry is asked.
    registry_auth:
        File with credentials for registries, in docker's form; where docker and podman keep theirs, unless given.
    registry_seconds:
        How long a registry may take.
    plain_registry:
        A registry that is spoken to without TLS, as HOST:PORT; may be given several times. This machine always is.
    output:
        Words (wide: the same); json, yaml; name: the lines that are refused, by number.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.slurm.survey import effective_user
    from fairlead_cli.slurm.validating import ScriptCheck, validate
    from fairlead_slurm.images.remarks import ImageRule

    request = ScriptCheck(
        script=script,
        conf=slurm_conf,
        user=user or effective_user(),
        pods_partition=pods_partition,
        images=ImageRule(images),
        registry_auth=registry_auth,
        registry_seconds=registry_seconds,
        plain_registries=plain_registry,
    )
    return run(validate(request, output))


@slurm.command
def install(
    folder: Path,
    /,
    *,
    partition: str = "pods",
    socket: Path = Path("/run/fairlead/slurm-gate.sock"),
    python: Path = Path("/usr/bin/python3"),
    away: Literal["requeue", "start"] = "requeue",
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    timeout: int = 300,
    tokens: str = "",
    endpoint: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    ca: Path | None = None,
    munge_socket: Path | None = None,
    slurm_conf: SlurmConf = None,
) -> int:
    """Write the hooks of a partition whose jobs run as pods of Kubernetes, and say which lines slurm.conf lacks for them.

    Writes into the folder and nowhere else. Written again, the files are replaced.

    Ends with 0, or with 1 where a slurm.conf was given that lacks lines, 2 where a path or name is one that Slurm could not read.

    Parameters
    ----------
    folder:
        Where the hooks will lie, on slurmctld's host and on every node of the partition: an absolute path without blanks.
    partition:
        Whose jobs run as pods.
    socket:
        Where slurm-bridge's gate listens (its setting hooks_socket).
    python:
        What runs the hooks: any Python from 3.9 on that every user may run.
    away:
        What becomes of a job whose prolog cannot reach the gate: it goes back into the queue, or it starts, and its body waits for the gate.
    check:
        Have job_submit ask the gate what `fairlead slurm validate` would say, and refuse a job for it; slurmctld waits for
        that, three seconds at most. A gate that does not answer refuses nothing.
    timeout:
        PrologEpilogTimeout, in seconds; a hook gives up 20 seconds earlier by itself.
    tokens:
        A licence of accounting's, NAME@SERVER, of which each job takes one for each of its GPUs; slurm-bridge keeps as many
        of them as Kubernetes has room for (its setting pods_tokens), so that few jobs are started in vain.
    endpoint:
        HOST:PORT where a bridge listens for hooks on other hosts (its setting hooks_listen), to be asked over TLS instead of
        the socket; given several times, each is asked in turn until one leads.
    ca:
        File of the authority that the bridges' certificates are of, on every host; the host's own authorities unless given.
    munge_socket:
        Where munged listens on every host, if not where munge's commands look.
    slurm_conf:
        An existing slurm.conf to look at; nothing is changed in it.
    """
    from fairlead_cli.errors import InputError
    from fairlead_cli.slurm.installing import install
    from fairlead_slurm.hooks.installing import HookSettings

    try:
        settings = HookSettings(
            folder=str(folder.absolute()),
            partition=partition,
            socket=str(socket),
            python=str(python),
            away=away,
            check=check,
            timeout=timeout,
            tokens=tokens,
            endpoints=endpoint,
            authority="" if ca is None else str(ca),
            munge_socket="" if munge_socket is None else str(munge_socket),
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    return install(settings, slurm_conf)
