"""Which lever Kueue obeys just now: its webhook is asked by dry runs."""

from fairlead_admitter.apply.lever_probe import Obeyed
from fairlead_admitter.frontends.kueue.calls import telling
from fairlead_contracts.messages.clearance import Lever
from fairlead_kube import PROBED_NAMESPACES, KubeClient, LeverProbe, probe_lever
from fairlead_kube import Lever as Found

_LEVERS: dict[Found, Lever] = {Found.BOOST: "boost", Found.PRIORITY: "priority"}


class KueueLever:
    """Probes a cluster's Kueue; see LeverProbing.

    Args:
        client: of the cluster, with dry runs of its own to spend.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.outages = 0

    def doubt(self) -> None:
        """Kueue's webhook did not answer: what answers next may be another Kueue."""
        self.outages += 1

    async def probe(self) -> Obeyed:
        """Ask its webhook; see LeverProbing."""
        found: LeverProbe | None = None
        with telling("the probe of Kueue's lever"):
            for namespace in PROBED_NAMESPACES:
                found = await probe_lever(self._client, namespace)
                if found.lever in _LEVERS:
                    break
        assert found is not None  # noqa: S101 # there are namespaces to probe in
        return Obeyed(lever=_LEVERS.get(found.lever), evidence=found.evidence)
