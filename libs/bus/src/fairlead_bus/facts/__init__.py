"""Facts: NATS made equal to what a cluster has, and kept so."""
