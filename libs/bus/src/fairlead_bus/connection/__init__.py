"""The connection: nats-py mended, one connection to NATS, the JetStream calls, endpoints, and `Bus`, which users have."""
