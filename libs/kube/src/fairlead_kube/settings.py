"""Settings of a cluster's client: the way there, and limits of what we ask of it."""

import msgspec


class KubeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a cluster's client: which cluster, as whom, and the limits that we keep."""

    kubeconfig: str | None = None
    """A path, or several joined by the path separator of the system (`:`).

    None: `$KUBECONFIG`, else the service account of the pod we run in, else `~/.kube/config`.
    """
    context: str | None = None
    """Name of the context in the kubeconfig; None for its current context."""
    write_qps: float = 20.0
    """Mutating calls a second, at most, dry runs included; each costs Kueue a webhook call."""
    write_burst: int = 40
    """Mutating calls at once, at most, after a rest."""
    request_timeout_seconds: float = 30.0
    watch_silence_seconds: float = 150.0
    """Longest silence of a watch, in seconds, before it is opened anew; servers send a bookmark about each
    minute."""
