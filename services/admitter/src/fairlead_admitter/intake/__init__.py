"""Intake: submissions read, checked and made jobs, and the lanes that only the leader runs."""
