"""Whether a Slurm job that runs as a pod has room in Kubernetes now. Pure: what stands, and what was promised since."""
