"""Slurm for Fairlead: reads and steers one slurmctld. Alone runs Slurm's commands, and asks slurmrestd.

`Controller` is the port, `CommandController` the implementation by squeue, scontrol and scancel, `RestController` that by
slurmrestd. No text of a user's ever reaches a shell, or can be taken for another job's line.

From the ground up: `queue`, `cluster` and `limits` are what slurmctld prints, `updates` what it is told; `commands` runs its
programs, `controller` is the port over them. On these stand the rooms:

- `rest`: the same port by slurmrestd
- `batch`: scripts, read as sbatch reads them, and held against the cluster
- `images`: container images that scripts name, and their registries
- `hooks`: programs that Slurm runs for Fairlead
- `submitting`: sbatch as the user, behind a socket

Named here is what others read of the modules that run commands, which they do not import.
"""

from fairlead_slurm.queue import QueueReading, SlurmJob, whole_job
from fairlead_slurm.updates import is_gone

__all__ = ["QueueReading", "SlurmJob", "is_gone", "whole_job"]
