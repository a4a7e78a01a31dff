"""Namespaces and queues of one test on a lab that others use, too; all of it gone at the end.

Names carry the estate's own: what one test leaves waiting would be in the next one's order.
"""

import contextlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

from fairlead_testkit.kubelab import GPU, ApiError, KubeLab, KubeObject, things

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
QUEUE = "main"
"""Name of every LocalQueue here."""
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


class Estate:
    """What one test has in a lab.

    Args:
        lab: runs already.
        tenants: short names; each gets a namespace.
    """

    def __init__(self, lab: KubeLab, tenants: Sequence[str]) -> None:
        self.lab = lab
        self.name = f"t{uuid.uuid4().hex[:6]}"
        self.namespaces = {tenant: f"{self.name}-{tenant}" for tenant in tenants}
        self.flavor = f"{self.name}-flavor"
        self._made: list[str] = []

    # --- what is there

    def __enter__(self) -> Self:
        api = self.lab.api
        api.apply(*(things.namespace(name) for name in self.namespaces.values()))
        self._apply(things.flavor(self.flavor))
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        api = self.lab.api
        for path in reversed(self._made):
            with contextlib.suppress(ApiError):
                api.patch(path, {"metadata": {"finalizers": None}})
                api.delete(path)
        for namespace in self.namespaces.values():
            with contextlib.suppress(ApiError):
                api.delete(f"/api/v1/namespaces/{namespace}")

    def named(self, short: str) -> str:
        """A cluster-wide name of this estate."""
        return f"{self.name}-{short}"

    def queue(
        self,
        short: str,
        gpus: int,
        *,
        tenants: Iterable[str] | None = None,
        cohort: str | None = None,
        preemption: Mapping[str, object] | None = None,
        strategy: str = "BestEffortFIFO",
        **spec: object,
    ) -> str:
        """A ClusterQueue of so many GPUs, and a LocalQueue to it in each tenant's namespace; gives its name."""
        name = self.named(short)
        queue = things.cluster_queue(
            name,
            {GPU: gpus},
            flavor=self.flavor,
            cohort=None if cohort is None else self.named(cohort),
            preemption=preemption,
            strategy=strategy,
            **spec,
        )
        self._apply(queue)
        for tenant in self.namespaces if tenants is None else tenants:
            self._apply(things.local_queue(QUEUE, self.namespaces[tenant], name))
        return name

    def cohort(self, short: str, gpus: int | None = None, **spec: object) -> str:
        """A Cohort, with a quota of GPUs where one is given; gives its name."""
        name = self.named(short)
        quota = None if gpus is None else {GPU: gpus}
        self._apply(things.cohort(name, quota, flavor=self.flavor, **spec))
        return name

    def priority_class(self, name: str, value: int) -> None:
        """A WorkloadPriorityClass, by its own name: the whole cluster's."""
        self._apply(things.priority_class(name, value))

    def _apply(self, item: KubeObject) -> None:
        self.lab.api.apply(item)
        self._made.append(f"{self.lab.api.collection(item)}/{item['metadata']['name']}")

    # --- what waits and runs

    def workload(self, tenant: str, name: str, gpus: int = 1, **more: object) -> KubeObject:
        """Create a raw Workload; gives it as the server has it."""
        item = things.workload(name, self.namespaces[tenant], QUEUE, {GPU: gpus}, **more)  # type: ignore[arg-type] # passed on
        return self.lab.api.create(item)

    def job(self, tenant: str, name: str, gpus: int = 1, **more: object) -> KubeObject:
        """Create a batch Job; gives it as the server has it."""
        item = things.job(name, self.namespaces[tenant], QUEUE, {GPU: gpus}, **more)  # type: ignore[arg-type] # passed on
        return self.lab.api.create(item)

    def workloads(self) -> list[KubeObject]:
        """All Workloads of the estate."""
        mine = set(self.namespaces.values())
        return [item for item in self.lab.api.items(WORKLOADS) if item["metadata"]["namespace"] in mine]

    def admitted(self) -> dict[str, KubeObject]:
        """By name, what holds quota and is not over."""
        return {
            item["metadata"]["name"]: item
            for item in self.workloads()
            if things.condition(item, "QuotaReserved") and not things.condition(item, "Finished")
        }

    def waiting(self) -> dict[str, KubeObject]:
        """By name, what holds no quota and is not over."""
        return {
            item["metadata"]["name"]: item
            for item in self.workloads()
            if not things.condition(item, "QuotaReserved") and not things.condition(item, "Finished")
        }

    def kueue_order(self) -> list[str]:
        """The names of what waits in the order that Kueue has: effective priority, creation, UID."""
        return [item["metadata"]["name"] for item in sorted(self.waiting().values(), key=_kueue_key)]

    def finish(self, tenant: str, name: str) -> None:
        """End a raw Workload that runs."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"{_KUEUE}/namespaces/{self.namespaces[tenant]}/workloads/{name}/status"
        self.lab.api.patch(path, things.finished(at))

    def tenant_of(self, item: KubeObject) -> str:
        """The short name of the tenant whose Workload or Job it is."""
        namespace: str = item["metadata"]["namespace"]
        return namespace.removeprefix(f"{self.name}-")

    def clear(self) -> None:
        """Delete every Job, pod and Workload."""
        api = self.lab.api
        for namespace in self.namespaces.values():
            for collection in (
                f"/apis/batch/v1/namespaces/{namespace}/jobs",
                f"/api/v1/namespaces/{namespace}/pods",
                f"{_KUEUE}/namespaces/{namespace}/workloads",
            ):
                api.delete(collection)
        for item in self.workloads():
            with contextlib.suppress(ApiError):
                path = f"{_KUEUE}/namespaces/{item['metadata']['namespace']}/workloads/{item['metadata']['name']}"
                api.patch(path, {"metadata": {"finalizers": None}})


def effective_priority(item: KubeObject) -> int:
    """What Kueue orders a Workload by: its priority and its boost (KEP-7990)."""
    annotations = item["metadata"].get("annotations") or {}
    return int(item["spec"].get("priority") or 0) + int(annotations.get(things.PRIORITY_BOOST, 0))


def _kueue_key(item: KubeObject) -> tuple[int, str, str]:
    metadata = item["metadata"]
    return (-effective_priority(item), metadata["creationTimestamp"], metadata["uid"])
