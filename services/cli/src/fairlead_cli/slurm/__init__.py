"""Clusters of Slurm, from a person's seat."""
