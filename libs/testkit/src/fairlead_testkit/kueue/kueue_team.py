"""A team of its own on a lab that many tests share: a namespace, its queue, and what a watcher would state of them."""

from uuid import uuid4

from fairlead_bus import Bus
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.policyfile.document import Tenant
from fairlead_testkit.by_hand.fake_cluster import FakeCluster
from fairlead_testkit.by_hand.people import put_policy
from fairlead_testkit.inputs.builders import (
    a_demand,
    a_document,
    a_job,
    a_mark,
    a_pool,
    a_queue,
    a_tenant_state,
)
from fairlead_testkit.kubelab import ADMITTER, KubeLab, KubeObject, things

QUOTA = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "16"}
SUBMITTER = "fairlead-submitter"


class Team:
    """A namespace with a LocalQueue `main` and a ClusterQueue of its own."""

    def __init__(self, lab: KubeLab) -> None:
        self.lab = lab
        self.name = f"team-{uuid4().hex[:10]}"
        self.queue = f"queue-{self.name}"
        flavor = f"flavor-{self.name}"
        lab.api.apply(
            things.namespace(self.name),
            things.flavor(flavor),
            things.cluster_queue(self.queue, QUOTA, flavor=flavor),
            things.local_queue("main", self.name, self.queue),
        )

    def open(self) -> None:
        """Let submissions come; returns when the API server knows."""
        self.lab.open_to_submissions(self.name)
        acting = {
            "verb": "impersonate",
            "resource": "serviceaccounts",
            "name": SUBMITTER,
            "namespace": self.name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": acting},
        }
        admitter = self.lab.api_as(ADMITTER)
        self.lab.until(lambda: admitter.create(review)["status"]["allowed"], 10, "rights have arrived")

    def items(self, version: str, plural: str) -> list[KubeObject]:
        """The objects of a kind in the namespace; the version as `batch/v1` or `v1`."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return self.lab.api.items(f"{root}/namespaces/{self.name}/{plural}")

    def jobs(self) -> list[KubeObject]:
        """The team's batch Jobs."""
        return self.items("batch/v1", "jobs")

    def pods(self) -> list[KubeObject]:
        """The team's pods."""
        return self.items("v1", "pods")

    def workloads(self) -> list[KubeObject]:
        """The team's Workloads."""
        return self.items(things.KUEUE, "workloads")

    async def become_known(self, bus: Bus) -> "FakeKueue":
        """Makes the team known to the policy, and on NATS as a watcher would state it."""
        await put_policy(bus, a_document(shards=2, tenants=[Tenant(name=self.name)]))
        cluster = FakeKueue(bus, self)
        await cluster.declare()
        return cluster


class FakeKueue(FakeCluster):
    """The cluster `c1` as the watcher of a Kubernetes states it, with one team."""

    def __init__(self, bus: Bus, team: Team) -> None:
        super().__init__(bus)
        self._team = team

    async def declare(self) -> None:
        """State the pool, the team's ClusterQueue and its LocalQueue."""
        team = self._team
        await self._say("pool", "gpu", a_pool(capacity=a_demand(cpu=32, memory_gib=256, gpu=16)))
        await self._say("queue", team.queue, a_queue(name=team.queue, frontend="kueue", bands_by_class=True))
        entry = a_tenant_state(name="main", scope=team.name, queue=team.queue)
        await self._say("tenant", "main", entry, scope=team.name)
        await self._say("mark", "sync", a_mark(incarnation=self.bus.incarnation))

    async def state_workload(self, workload: KubeObject, **changes: object) -> JobState:
        """State a job for a Workload that is really there."""
        metadata = workload["metadata"]
        job = a_job(metadata["name"], scope=self._team.name, queue=self._team.queue, local_queue="main")
        return await self.state(job, uid=metadata["uid"], **changes)
