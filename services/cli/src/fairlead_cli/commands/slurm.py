"""`fairlead slurm`: what an operator and a user of Slurm want to know beforehand."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead_cli.options import CHECK, HERE, Output, Reach
from fairlead_cli.slurm.flags import A_LOOK, AS_SUBMITTED, ScriptFlags, SlurmCheckFlags, SlurmConf

slurm = App(name="slurm", help="Check a Slurm cluster, and batch scripts.", group=CHECK)


@slurm.command
def check(*, flags: SlurmCheckFlags = A_LOOK, output: Output = "table", reach: Reach = HERE) -> int:
    """Look a Slurm cluster over before Fairlead writes to it: what is wrong, why it matters, what mends it.

    Asks the running slurmctld, and changes nothing there. `fairlead up --slurm-conf` looks at the same and writes nothing where
    there is an error. Where services were started one by one, --cluster gives the leave that `fairlead up` gives.

    Ends with 0 where nothing is open but what is good to know, 1 with warnings, 2 with errors, 3 where it could not look.

    Parameters
    ----------
    output:
        Words (wide: the same); json, yaml; name: the names of open findings.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.errors import InputError
    from fairlead_cli.slurm.examining import check, revoke

    if not flags.revoke:
        return run(check(flags, reach.nats, output))
    if flags.cluster is None:
        raise InputError("--revoke: of which cluster? Name it with --cluster")
    return run(revoke(flags.cluster, flags.by, reach.nats))


@slurm.command
def validate(script: Path, /, *, flags: ScriptFlags = AS_SUBMITTED, output: Output = "table") -> int:
    """Say what Slurm would refuse a batch script for, or never start it for, before it is submitted.

    Looks at the script's form and its #SBATCH lines, and, where slurmctld answers, at partition, time limit, size, account and the
    limits of account, user and QOS. Where jobs run as pods it also looks at the words of the comment, at names that Kubernetes
    would not take, and asks the registry whether the image is there. What stands on sbatch's own command line is not looked at.

    Ends with 0 where nothing is found against it, 1 where it would be refused, 2 where a file cannot be read.

    Parameters
    ----------
    script:
        Path of the batch script.
    output:
        Words (wide: the same); json, yaml; name: the lines that are refused, by number.
    """
    from fairlead_cli.client.connection import run
    from fairlead_cli.slurm.validating import validate

    return run(validate(script, flags, output))


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
