"""A whole Fairlead as the processes of production, alone or beside a real Kueue, a real Slurm, or both."""
