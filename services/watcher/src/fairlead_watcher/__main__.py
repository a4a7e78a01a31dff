"""`python -m fairlead_watcher`."""

from fairlead_bus import ClosedError, ConnectFailedError, DeniedError, NotProvisionedError
from fairlead_kube.errors import ConfigurationError
from fairlead_runtime.service import run_service
from fairlead_watcher.app import main
from fairlead_watcher.settings import WatcherSettings

if __name__ == "__main__":
    run_service(
        WatcherSettings,
        main,
        description="States on NATS what a Kubernetes cluster with Kueue has: facts, and no policy.",
        foreseen=(ClosedError, ConnectFailedError, DeniedError, NotProvisionedError, ConfigurationError),
    )
