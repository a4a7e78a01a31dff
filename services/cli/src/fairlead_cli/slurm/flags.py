"""The flags of `fairlead slurm check` and `fairlead slurm validate`."""

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
    """Path of a file with a token for it."""
    revoke: Annotated[bool, Parameter(negative="")] = False
    """Take the leave for --cluster back, without a look: nothing is written to it any more."""


A_LOOK = SlurmCheckFlags()
"""No flag at all."""


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


AS_SUBMITTED = ScriptFlags()
"""No flag at all."""
