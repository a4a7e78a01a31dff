"""Room in Kubernetes now for Slurm jobs that run as pods, less what was promised since. Pure."""
