"""The gate that Slurm's hooks and the bodies of jobs ask: a socket on slurmctld's host, and its words."""
