"""Exact arithmetic of the order: floats where they cannot be wrong, integers and fractions elsewhere.

`scoring` gives start tags, `ranking` sorts by them, `terms` are those of a position that was told, `rounding` the floats
that people see, `flips` when time alone changes the order.
"""
