"""The flags of `fairlead submit` that say something about a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead_cli.options import OfTenant


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobFlags:
    """The flags that describe a job; None where they say nothing."""

    tenant: OfTenant = None
    """Tenant of the job."""
    cpu: str | None = None
    """CPUs of the whole job: 4, 500m."""
    memory: str | None = None
    """Memory of the whole job: 64Gi."""
    gpus: str | None = None
    """Whole GPUs of the whole job (resource nvidia.com/gpu)."""
    demand: Annotated[Sequence[str], Parameter(negative="")] = ()
    """Any other resource, as NAME=QUANTITY; may be given several times."""
    job_class: Annotated[str | None, Parameter(name="--class")] = None
    """The class asked for: above the policy's last one only where it is granted."""
    pods: int | None = None
    """Gang size."""
    queue: str | None = None
    """Queue to stand in; the tenant's unless given."""
    run_seconds: float | None = None
    """Seconds that the job is expected to run; a simulated cluster runs it so long."""
    run_limit_seconds: float | None = None
    """Seconds after which the job must end."""
    image: str | None = None
    """Image of its pods; a Kubernetes cluster needs it."""
    command: str | None = None
    """Command in place of the image's entry point, in words as a shell takes them: 'python train.py --epochs 3'. Slurm needs it."""
    args: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """Arguments of the entry point, in words as a shell takes them."""
    env: Annotated[Sequence[str], Parameter(negative="")] = ()
    """A variable of its pods, as NAME=VALUE; may be given several times."""
    kind: Literal["job", "pod-group", "pytorch-job"] | None = None
    """Kind of object on Kubernetes; a Job unless given."""
    id: str | None = None
    """Names the job; the same id twice is one job. Made up unless given."""
    cluster: str = "any"
    """Cluster that gets the job; `any` lets Fairlead choose."""
    frontend: str | None = None
    """The queueing system that it is for, whichever cluster takes it: kueue, slurm, sim, or what another calls itself."""
