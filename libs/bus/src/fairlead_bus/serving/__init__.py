"""Serving: verbs of a frontend, and being found by the service tools."""
