"""Kueue's quota: ClusterQueue, Cohort, LocalQueue and ResourceFlavor, v1beta2 and v1beta1 in one shape."""

from fairlead_contracts.frontend.observed import Taint
from fairlead_kube.kinds.objects import Amount, ApiObject, Condition, KubeStruct, LabelSelector, holds
from fairlead_kube.kinds.pods import PodToleration

MOST_COVERED = 16 * 64
"""Resources of which a ClusterQueue can have quota: its groups, and the resources of each. Kueue never admits a Workload
of which it counts more."""
UNCOUNTED = "its configuration leaves some of them out (resources.excludeResourcePrefixes)"
"""Condition under which Kueue counts fewer resources than a Workload asks for, in words that go after "unless"."""


class ResourceQuota(KubeStruct, frozen=True, kw_only=True):
    """The quota of one resource of one flavor."""

    name: str
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    """Largest amount to borrow from the cohort; None for all that the cohort has."""
    lending_limit: Amount | None = None
    """Largest amount to lend to the cohort; None for all of the quota."""


class FlavorQuotas(KubeStruct, frozen=True, kw_only=True):
    """The quotas of one flavor."""

    name: str
    resources: list[ResourceQuota] | None = None


class ResourceGroup(KubeStruct, frozen=True, kw_only=True):
    """Resources that take their flavors together."""

    flavors: list[FlavorQuotas] | None = None


class FairSharing(KubeStruct, frozen=True, kw_only=True):
    """Kueue's own weight of a queue or cohort."""

    weight: Amount | None = None


class FairSharingStatus(KubeStruct, frozen=True, kw_only=True):
    """Kueue's own share."""


class BorrowWithinCohort(KubeStruct, frozen=True, kw_only=True):
    """Preempting in order to borrow."""

    policy: str = "Never"
    """Policy: `Never` or `LowerPriority`."""


class Preemption(KubeStruct, frozen=True, kw_only=True):
    """The Workloads that those of a queue may preempt. Absent fields are the API's defaults."""

    within_cluster_queue: str = "Never"
    """Policy: `Never`, `LowerPriority` or `LowerOrNewerEqualPriority`."""
    reclaim_within_cohort: str = "Never"
    """Policy: `Never`, `LowerPriority` or `Any`."""
    borrow_within_cohort: BorrowWithinCohort | None = None

    def settings(self) -> dict[str, str]:
        """The policies, each by the name that Kueue's API has for it."""
        borrow = self.borrow_within_cohort
        return {
            "withinClusterQueue": self.within_cluster_queue,
            "reclaimWithinCohort": self.reclaim_within_cohort,
            "borrowWithinCohort": borrow.policy if borrow else "Never",
        }


class AdmissionScope(KubeStruct, frozen=True, kw_only=True):
    """Kueue's AdmissionFairSharing."""

    admission_mode: str = ""
    """Mode: with `UsageBasedAdmissionFairSharing` usage of LocalQueues goes before priority."""


class CheckRule(KubeStruct, frozen=True, kw_only=True):
    """An AdmissionCheck that a queue demands."""

    name: str


class ChecksStrategy(KubeStruct, frozen=True, kw_only=True):
    """The AdmissionChecks that a queue demands."""

    admission_checks: list[CheckRule] | None = None


class ClusterQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """Quota and rules of a ClusterQueue."""

    cohort_name: str = ""
    cohort: str = ""
    """Cohort in v1beta1; `parent` reads both versions."""
    resource_groups: list[ResourceGroup] | None = None
    preemption: Preemption = Preemption()
    queueing_strategy: str = "BestEffortFIFO"
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None
    namespace_selector: LabelSelector | None = None
    stop_policy: str | None = None
    """Stop policy: `None`, `Hold` or `HoldAndDrain`; absent means `None`."""
    admission_checks_strategy: ChecksStrategy | None = None
    admission_checks: list[str] | None = None
    """Checks in v1beta1."""

    @property
    def parent(self) -> str:
        """The cohort, in either version; empty for none."""
        return self.cohort_name or self.cohort

    @property
    def stopped(self) -> bool:
        """Whether it admits nothing."""
        return self.stop_policy not in (None, "None")


_ACTIVE, _INACTIVE = "Can admit new workloads", "Can't admit new workloads"
"""Kueue's message on a queue, and the beginning of the other one (`inactiveReason`, pkg/cache/scheduler/clusterqueue.go)."""


class ClusterQueueStatus(KubeStruct, frozen=True, kw_only=True):
    """Status that Kueue writes about once a second; a cross-check, not a source."""

    conditions: list[Condition] | None = None
    fair_sharing: FairSharingStatus | None = None


class ClusterQueue(ApiObject, frozen=True, kw_only=True):
    """A ClusterQueue, in which Workloads queue for quota."""

    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()

    @property
    def active(self) -> bool:
        """Whether Kueue says that it can admit."""
        return holds(self.status.conditions, "Active")

    @property
    def why_inactive(self) -> str:
        """Kueue's reason for which it cannot admit; empty where it can, or Kueue gives none, as for a Cohort that is above itself."""
        said = (one.message for one in self.status.conditions or () if one.type == "Active")
        reason = next(said, _ACTIVE)
        return "" if self.active or reason == _ACTIVE else reason.removeprefix(_INACTIVE).strip(":;. ")


class CohortSpec(KubeStruct, frozen=True, kw_only=True):
    """A node of the tree of cohorts; its own quota is shared by all below it."""

    parent_name: str = ""
    parent: str = ""
    """Parent cohort in v1alpha1; `above` reads both versions."""
    resource_groups: list[ResourceGroup] | None = None
    fair_sharing: FairSharing | None = None

    @property
    def above(self) -> str:
        """The parent cohort; empty for a root."""
        return self.parent_name or self.parent


class Cohort(ApiObject, frozen=True, kw_only=True):
    """A cohort. A ClusterQueue may name one for which there is no object."""

    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(KubeStruct, frozen=True, kw_only=True):
    """The ClusterQueue that a namespace's Workloads go to."""

    cluster_queue: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None

    @property
    def stopped(self) -> bool:
        """Whether it admits nothing."""
        return self.stop_policy not in (None, "None")


class LocalQueueStatus(KubeStruct, frozen=True, kw_only=True):
    """Status that Kueue writes about once a second."""

    conditions: list[Condition] | None = None


class LocalQueue(ApiObject, frozen=True, kw_only=True):
    """An entry of a namespace to a ClusterQueue."""

    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()


class ResourceFlavorSpec(KubeStruct, frozen=True, kw_only=True):
    """The nodes that a flavor stands for."""

    node_labels: dict[str, str] | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[PodToleration] | None = None
    topology_name: str | None = None
    """The Topology by which Kueue looks for room on its nodes; None for none."""


class ResourceFlavor(ApiObject, frozen=True, kw_only=True):
    """A kind of nodes with its own quota."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()
