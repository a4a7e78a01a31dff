"""What the tests of Fairlead stand on: builders, an exact oracle, a real nats-server, and service processes.

Never shipped: import-linter keeps it out of every other member.
"""

from fairlead_testkit.nats_server import NatsServer, NatsServerError

__all__ = ["NatsServer", "NatsServerError"]
