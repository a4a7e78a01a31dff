"""The adapter of frontends that live behind the bus."""
