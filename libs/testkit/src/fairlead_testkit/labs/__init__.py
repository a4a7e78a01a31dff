"""Labs of either kind, Kubernetes or Slurm: their processes, their errors' root, and a lab that outlives its command."""
