"""A running Fairlead asked, told and heard over NATS; how its answers look on a terminal."""
