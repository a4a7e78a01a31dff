"""A ClusterQueue of one GPU with a namespace of its own, full from the start; and its Workloads as a watcher would state them."""

from datetime import datetime
from typing import Self

import msgspec

from fairlead_contracts.base.instants import from_datetime
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_kube.kinds.workloads import Workload, found_priority
from fairlead_testkit.inputs.builders import a_job
from fairlead_testkit.kubelab import KubeLab, KubeObject, things
from fairlead_testkit.kueue.namespace_fixture import QUEUE, WORKLOADS, NamespaceFixture

TENANT = "team"


class OneGpuQueue(NamespaceFixture):
    """The queue, its namespace, and the Workloads there.

    Args:
        shared: another one whose ClusterQueue this namespace enters; by default it has one of its own.
    """

    def __init__(self, lab: KubeLab, shared: "OneGpuQueue | None" = None) -> None:
        super().__init__(lab, [TENANT])
        self.scope = self.namespaces[TENANT]
        self.path = WORKLOADS.replace("workloads", f"namespaces/{self.scope}/workloads")
        self.cluster_queue: str = self.named("one") if shared is None else shared.cluster_queue

    def __enter__(self) -> Self:
        super().__enter__()
        if self.cluster_queue == self.named("one"):
            self.queue("one", 1)
            self.add("blocker")
            self.lab.until(self.admitted, what="the queue is full")
        else:
            self.lab.api.apply(things.local_queue(QUEUE, self.scope, self.cluster_queue))
        return self

    def add(self, *names: str, priority: int | None = None) -> None:
        """Create Workloads of one GPU each."""
        for name in names:
            self.workload(TENANT, name, priority=priority)

    def get(self, name: str) -> KubeObject:
        """A Workload as the server has it."""
        return self.lab.api.get(f"{self.path}/{name}")

    def job_of(self, item: KubeObject, **changes: object) -> JobState:
        """The job that a watcher would state of a Workload."""
        meta, annotations = item["metadata"], item["metadata"].get("annotations") or {}
        priority = item["spec"].get("priority", 0)
        created = from_datetime(datetime.fromisoformat(meta["creationTimestamp"]))
        found = found_priority(msgspec.convert(item, Workload))
        done, runs = things.condition(item, "Finished"), things.condition(item, "QuotaReserved")
        job = a_job(
            meta["name"],
            scope=self.scope,
            uid=meta["uid"],
            queue=self.cluster_queue,
            local_queue=QUEUE,
            submitted=created,
            queue_time=created,
            phase=Phase.ENDED if done else Phase.RUNNING if runs else Phase.WAITING,
            base=priority if found is msgspec.UNSET else found or 0,
            level=priority + int(annotations.get(things.PRIORITY_BOOST, "0")),
        )
        return msgspec.structs.replace(job, **changes)
