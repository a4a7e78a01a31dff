"""slurmrestd: the same port as Slurm's commands, by a typed client that finds out what the daemon can do."""
