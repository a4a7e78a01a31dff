"""The flags of `fairlead slurm check`, `validate` and `install`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

SlurmConf = Annotated[Path | None, Parameter(env_var="SLURM_CONF")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SlurmCheckFlags:
    """The flags on the cluster to look over, and on leave to write to it."""

    slurm_conf: SlurmConf = None
    """Path of slurm.conf; where Slurm's own commands look, unless given."""
    user: Annotated[str | None, Parameter(help="Who shall write levels; whoever runs this unless given.")] = (
        None
    )
    cluster: Annotated[
        str | None,
        Parameter(
            help="What Fairlead calls the cluster: where no error is open, levels may be written to it from now on."
        ),
    ] = None
    by: Annotated[str | None, Parameter(help="Who says so; the user of this machine unless given.")] = None
    slurmrestd: Annotated[
        str | None,
        Parameter(
            help="Where slurmrestd is that the bridge is to ask, as http://HOST:PORT or unix:/PATH; it is looked at, too."
        ),
    ] = None
    slurm_token: Path | None = None
    """Path of a file with a token for slurmctld, where no munge runs, and for slurmrestd over TCP."""
    revoke: Annotated[bool, Parameter(negative="")] = False
    """Take the leave for --cluster back, without a look: nothing is written to it any more."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScriptFlags:
    """The flags on whose job a batch script would be, and how its images are looked for."""

    slurm_conf: SlurmConf = None
    """Path of slurm.conf; where Slurm's own commands look, unless given."""
    user: Annotated[str | None, Parameter(help="Whose job it would be; whoever runs this unless given.")] = (
        None
    )
    pods_partition: str | None = None
    """The partition whose jobs run as pods; what the installed hooks say, unless given."""
    images: Literal["off", "warn", "refuse", "strict"] = "refuse"
    """refuse: an image that is not there is refused, and a registry that cannot be asked is a warning. warn: both are
    warnings. strict: both are refused. off: no registry is asked."""
    registry_auth: Path | None = None
    """File with credentials for registries, in docker's form; where docker and podman keep theirs, unless given."""
    registry_seconds: Annotated[
        float, Parameter(validator=Number(gt=0, lte=300), help="How long a registry may take.")
    ] = 5.0
    plain_registry: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """A registry that is spoken to without TLS, as HOST:PORT; may be given several times. This machine always is."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HookFlags:
    """The flags on the hooks of a partition whose jobs run as pods."""

    partition: Annotated[str, Parameter(help="Whose jobs run as pods.")] = "pods"
    socket: Annotated[
        Path, Parameter(help="Where slurm-bridge's gate listens (its setting hooks_socket).")
    ] = Path("/run/fairlead/slurm-gate.sock")
    python: Annotated[
        Path, Parameter(help="What runs the hooks: any Python from 3.9 on that every user may run.")
    ] = Path("/usr/bin/python3")
    away: Annotated[
        Literal["requeue", "start"],
        Parameter(
            help="What becomes of a job whose prolog cannot reach the gate: it goes back into the queue, or it starts, "
            "and its body waits for the gate."
        ),
    ] = "requeue"
    check: Annotated[bool, Parameter(negative="--no-check")] = True
    """Have job_submit ask the gate what `fairlead slurm validate` would say, and refuse a job for it; slurmctld waits for
    that, three seconds at most. A gate that does not answer refuses nothing."""
    timeout: int = 300
    """PrologEpilogTimeout, in seconds; a hook gives up 20 seconds earlier by itself."""
    tokens: str = ""
    """A licence of accounting's, NAME@SERVER, of which each job takes one for each of its GPUs; slurm-bridge keeps as many
    of them as Kubernetes has room for (its setting pods_tokens), so that few jobs are started in vain."""
    endpoint: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """HOST:PORT where a bridge listens for hooks on other hosts (its setting hooks_listen), to be asked over TLS instead of
    the socket; given several times, each is asked in turn until one leads."""
    ca: Path | None = None
    """File of the authority that the bridges' certificates are of, on every host; the host's own authorities unless given."""
    munge_socket: Annotated[
        Path | None, Parameter(help="Where munged listens on every host, if not where munge's commands look.")
    ] = None
    slurm_conf: SlurmConf = None
    """An existing slurm.conf to look at; nothing is changed in it."""
