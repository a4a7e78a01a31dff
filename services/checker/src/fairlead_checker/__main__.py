"""`python -m fairlead_checker`."""

from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_checker.app import main
from fairlead_checker.settings import CheckerSettings
from fairlead_kube.errors import FatalKubeError
from fairlead_runtime.service import run_service

if __name__ == "__main__":
    run_service(
        CheckerSettings,
        main,
        description="Answers Kueue's AdmissionCheck for gang fit: starts what all its pods have room for now.",
        foreseen=(ClosedError, ConnectFailedError, DeniedError, NotProvisionedError, FatalKubeError),
    )
