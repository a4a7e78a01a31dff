"""`python -m fairlead_admitter`."""

from fairlead_admitter.app import main
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_kube.errors import ConfigurationError
from fairlead_runtime.service import run_service

if __name__ == "__main__":
    run_service(
        AdmitterSettings,
        main,
        description="Makes one cluster follow the order with the fewest writes, and takes in submitted jobs.",
        foreseen=(ClosedError, ConnectFailedError, DeniedError, NotProvisionedError, ConfigurationError),
    )
