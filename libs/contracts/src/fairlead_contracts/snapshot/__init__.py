"""Snapshots: all that an order is made from, as one document."""
