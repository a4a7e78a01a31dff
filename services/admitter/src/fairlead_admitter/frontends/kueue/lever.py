"""The lever that Kueue obeys just now: its webhook is asked by dry runs."""

from fairlead_admitter.apply.lever_probe import ObeyedLevers
from fairlead_admitter.frontends.kueue.calls import telling
from fairlead_contracts.messages.leave import LeverName
from fairlead_kube.client import KubeClient
from fairlead_kube.discovery import pick_version
from fairlead_kube.kinds.resources import WORKLOADS, Resource
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.lever import PROBED_NAMESPACES, LeverProbe, probe_lever, refuses_bad_boost
from fairlead_kube.lever import Lever as Found

_LEVERS: dict[Found, LeverName] = {Found.BOOST: "boost", Found.PRIORITY: "priority"}


class KueueLever:
    """Probes a cluster's Kueue; see LeverProber.

    Args:
        client: the cluster's client, with dry runs of its own to spend.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._asked_in = ""
        """The namespace in which the last probe had an answer."""
        self._workloads: Resource[Workload] | None = None
        """Workloads in the version that is served, asked for once a probe: that costs more requests than a glance."""
        self.outages = 0

    def doubt(self) -> None:
        """Notes that Kueue's webhook did not answer: what answers next may be another Kueue."""
        self.outages += 1

    async def probe(self) -> ObeyedLevers:
        """Ask Kueue's webhook; see LeverProber."""
        found: LeverProbe | None = None
        self._workloads = None
        with telling("a dry run of a Workload"):
            for namespace in PROBED_NAMESPACES:
                found = await probe_lever(self._client, namespace)
                if found.lever in _LEVERS:
                    self._asked_in = namespace
                    break
        assert found is not None  # noqa: S101 # there are namespaces to probe in
        return ObeyedLevers(lever=_LEVERS.get(found.lever), evidence=found.evidence)

    async def glance(self) -> LeverName | None:
        """Looks by the one dry run of a probe that tells the two levers apart; see LeverProber."""
        if not self._asked_in:
            return None
        with telling("a dry run of a Workload"):
            self._workloads = self._workloads or await pick_version(self._client, WORKLOADS)
            if self._workloads is None:
                return None
            read = await refuses_bad_boost(self._client, self._workloads, self._asked_in)
        return "boost" if read else "priority"
