"""`python -m fairlead_scorer`."""

from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_runtime.service import run_service
from fairlead_scorer.app import main
from fairlead_scorer.settings import ScorerSettings

if __name__ == "__main__":
    run_service(
        ScorerSettings,
        main,
        description="Decides the order of each pool's waiting jobs; any number of replicas.",
        foreseen=(ClosedError, ConnectFailedError, DeniedError, NotProvisionedError),
    )
