"""Slurm jobs as pods: the pod of a job, and how it is made, followed and taken away again."""
