"""The gate that Slurm's hooks and jobs' processes ask: a socket on slurmctld's host, and its messages."""
