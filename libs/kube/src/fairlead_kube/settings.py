"""How to reach a cluster, and how hard to press it."""

import msgspec


class KubeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a cluster's client: which cluster, as whom, and the limits that we keep."""

    kubeconfig: str | None = None
    """A path, or several joined by the path separator of the system (`:`).

    None: `$KUBECONFIG`, else the service account of the pod we run in, else `~/.kube/config`.
    """
    context: str | None = None
    """Of the kubeconfig; None: its current context."""
    write_qps: float = 20.0
    """Mutating calls a second, dry runs included; each costs Kueue a webhook call."""
    write_burst: int = 40
    """Mutating calls at once after a rest."""
    request_timeout_seconds: float = 30.0
    watch_silence_seconds: float = 150.0
    """A watch that says nothing for so long is opened anew; servers send a bookmark about each minute."""
