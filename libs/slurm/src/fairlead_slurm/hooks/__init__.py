"""What Slurm runs on behalf of Fairlead: the client of the gate, and job_submit's part. Shipped as files, written by `install`."""
