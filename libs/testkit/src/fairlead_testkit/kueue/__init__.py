"""A real Kueue in tests: namespaces and queues of one test, and what was admitted in which order."""
