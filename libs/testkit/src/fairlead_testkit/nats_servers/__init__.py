"""Real nats-servers: one, a cluster, one in a container, one with accounts; and a network between them that fails."""
