"""Labs of either kind, Kubernetes or Slurm: their processes, their errors' root, and a lab that outlives its command."""


class LabError(Exception):
    """A lab did not do as it was told. Who catches what any lab raises need not know which."""
