"""Settings of a watcher."""

from typing import Annotated

import msgspec

from fairlead_runtime.settings import ServiceSettings


class WatcherSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one watcher: the cluster that it states, and how it reads it."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "kubernetes"
    """Name of the cluster; one watcher leads per cluster, the others stand by."""
    kubeconfig: str | None = None
    """Path of the kubeconfig; by default $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; by default its current one."""
    ended_stay_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 600.0
    """Seconds for which a job that ended stays stated, so that questions about it are answered. Jobs that ended
    earlier than that before a start are not stated at all."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Seconds without a word of the API server after which the watcher calls itself not ready. It goes on stating
    what it knows."""
    kube_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 15.0
    """Longest wait for the API server's reply, in seconds."""
    kube_silence_seconds: Annotated[float, msgspec.Meta(ge=5, le=3600)] = 150.0
    """A watch without a word for so long is opened anew; an API server speaks at least once a minute."""
    probe_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 15.0
    """Seconds between two questions for kinds that are not served yet, such as Cohort or PyTorchJob."""
