"""What the tests of Fairlead stand on: builders, an exact oracle, a real nats-server, and service processes.

Never shipped: import-linter keeps it out of every other member. The builders are in `fairlead_testkit.builders`.
"""

from fairlead_testkit.awaiting import NeverHappenedError, eventually
from fairlead_testkit.nats_server import NatsServer, NatsServerError
from fairlead_testkit.oracle import OracleJob, OraclePlace, OracleRules, fill
from fairlead_testkit.process import ServiceDiedError, ServiceProcess, running

__all__ = [
    "NatsServer",
    "NatsServerError",
    "NeverHappenedError",
    "OracleJob",
    "OraclePlace",
    "OracleRules",
    "ServiceDiedError",
    "ServiceProcess",
    "eventually",
    "fill",
    "running",
]
