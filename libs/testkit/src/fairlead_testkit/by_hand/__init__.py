"""Parts of the system that a test plays by hand, for tests of one service."""
