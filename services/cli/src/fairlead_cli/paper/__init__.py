"""Snapshots on the command line: put in order (`running`) and taken from a running instance (`taking`).

The two are apart on purpose: an order needs no NATS, and does not load what talks to it.
"""
