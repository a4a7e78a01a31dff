"""Reporting: metrics, log lines and traces of what was taken in and decided."""
