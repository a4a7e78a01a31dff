"""Start of a slurm-bridge: `python -m fairlead_slurm_bridge`."""

from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_kube.errors import ConfigurationError
from fairlead_runtime.service import run_service
from fairlead_slurm.errors import ProgramMissingError
from fairlead_slurm_bridge.app import main
from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.settings import SlurmBridgeSettings

if __name__ == "__main__":
    run_service(
        SlurmBridgeSettings,
        main,
        service="slurm-bridge",
        description="States on NATS what a slurmctld has, and gives its jobs the levels that it is told to.",
        foreseen=(
            ClosedError,
            ConnectFailedError,
            DeniedError,
            NotProvisionedError,
            ProgramMissingError,
            ConfigurationError,
            BridgeError,
        ),
    )
