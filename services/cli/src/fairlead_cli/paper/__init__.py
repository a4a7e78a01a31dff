"""Snapshots on the command line: put in order (`order_run`) and taken from a running instance (`snapshot_taking`).

The two are apart on purpose: an order needs no NATS, and does not load what talks to it.
"""
