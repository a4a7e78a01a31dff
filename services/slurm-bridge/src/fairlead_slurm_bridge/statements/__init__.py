"""Statements about a slurmctld: its nodes, partitions, accounts and jobs, translated. Pure."""
