"""Reporting: metrics, log lines, events, traces and answers about what was seen, decided and done."""
