"""Intake: submissions read, checked and made jobs, and the consumers that only the leader runs."""
