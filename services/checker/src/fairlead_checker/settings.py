"""The settings of a checker."""

from typing import Annotated, Literal

import msgspec

from fairlead_runtime.settings import ServiceSettings


class CheckerSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one checker: the cluster whose checks it answers, and how."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "kubernetes"
    """Name of the cluster; one checker leads per cluster, the others stand by."""
    kubeconfig: str | None = None
    """Path of the kubeconfig; by default $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; by default its current one."""
    controller_name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "fairlead.dev/gang-fit"
    """The `spec.controllerName` of the AdmissionChecks that are answered."""
    strategy: Literal["binpack", "spread"] = "binpack"
    """Rule to choose among places that all fit: where room is kept for a gang until its pods are seen on
    nodes, and which zone it gets where it asks for one."""
    hold_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    """Time for which room is kept for the pods of a gang that was let through and that are not seen on nodes
    yet."""
    retry_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 15
    """Time for which a gang that does not fit is kept out of its queue at first; each time in a row twice as
    long. It is let in earlier as soon as it fits."""
    retry_longest_seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300
    """The longest of these times."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Longest silence of the API server, before the checker calls itself not ready and answers nothing."""
    kube_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 15.0
    """Longest wait for the API server's reply."""
    kube_silence_seconds: Annotated[float, msgspec.Meta(ge=5, le=3600)] = 150.0
    """A watch without a word for so long is opened anew; an API server speaks at least once a minute."""
    write_qps: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 50.0
    """Writes a second to the API server, in the long run; each costs Kueue a webhook call."""
