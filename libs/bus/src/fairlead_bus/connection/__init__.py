"""The connection: nats-py mended, one wire, the JetStream calls, endpoints, and `Bus`, which users have."""
