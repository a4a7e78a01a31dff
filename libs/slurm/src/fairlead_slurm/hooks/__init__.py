"""Programs that Slurm runs for Fairlead: the gate's client and job_submit's part; `install` writes both."""
