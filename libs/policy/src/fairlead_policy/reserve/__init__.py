"""Promised starts: `easy` decides who is promised one and who may pass, by the `shadow`, in the words of `reservation`.

A *promise* is what Slurm and the papers on backfill call a reservation, a *pass* a grant to be backfilled; head and shadow are EASY's.
"""
