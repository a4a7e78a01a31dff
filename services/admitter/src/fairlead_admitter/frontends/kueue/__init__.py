"""The adapter of Kueue: Workloads, the tenants' jobs, and what its API server refuses."""
