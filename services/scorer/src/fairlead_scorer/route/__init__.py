"""Routing: a cluster for submissions that name none."""
