"""Kubernetes Events: what a person finds with `kubectl describe`."""

from fairlead_kube.client import KubeClient
from fairlead_kube.objects import ObjectMeta
from fairlead_kube.observer import SILENT, KubeObserver
from fairlead_kube.resources import Resource


class EventRecorder:
    """Writes Events; never blocks whoever records."""

    def __init__(
        self, client: KubeClient, *, component: str, observer: KubeObserver = SILENT, capacity: int = 1000
    ) -> None:
        raise NotImplementedError

    def record[T](
        self,
        resource: Resource[T],
        metadata: ObjectMeta,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        action: str = "",
    ) -> None:
        """Notes an Event about the object."""
        raise NotImplementedError

    async def run(self) -> None:
        """Writes what was recorded until cancelled."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Returns when everything recorded so far is written or given up."""
        raise NotImplementedError
