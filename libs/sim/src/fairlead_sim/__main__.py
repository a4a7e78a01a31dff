"""`python -m fairlead_sim`: a simulated cluster on NATS."""

from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_runtime.service import run_service
from fairlead_sim.app import main
from fairlead_sim.settings import SimSettings

if __name__ == "__main__":
    run_service(
        SimSettings,
        main,
        service="sim",
        description="A simulated cluster: nodes, queues and jobs that run.",
        foreseen=(ClosedError, ConnectFailedError, DeniedError, NotProvisionedError),
    )
