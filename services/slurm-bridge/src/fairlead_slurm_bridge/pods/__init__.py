"""Slurm jobs as pods: what the pod of a job is, how it is made, followed and taken away again."""
