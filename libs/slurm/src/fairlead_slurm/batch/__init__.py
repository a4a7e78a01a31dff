"""Batch scripts: how sbatch reads them, what they ask for, and whether the cluster would ever start them."""
