"""Chaos: load under kills, pauses and hostile tenants, and what became of each job."""
