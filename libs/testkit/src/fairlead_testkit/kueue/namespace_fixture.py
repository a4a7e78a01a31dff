"""Namespaces and queues of one test on a lab that others use, too; all but the bare namespaces is gone at the end.

Names carry the fixture's own: what one test leaves waiting would be in the next one's order. A namespace stays, empty: to
take one away Kubernetes asks for every kind that may be in it, ninety requests and a fifth of a second of CPU each.
"""

import contextlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

from fairlead_testkit.kubelab import GPU, ApiError, KubeLab, KubeObject, things
from fairlead_testkit.timing.awaiting import eventually

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
QUEUE = "main"
"""Name of every LocalQueue here."""
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


class NamespaceFixture:
    """The namespaces, queues and jobs that one test has in a lab.

    Args:
        tenants: short names; each gets a namespace.
    """

    def __init__(self, lab: KubeLab, tenants: Sequence[str]) -> None:
        self.lab = lab
        self.name = f"t{uuid.uuid4().hex[:6]}"
        self.namespaces = {tenant: f"{self.name}-{tenant}" for tenant in tenants}
        self.flavor = f"{self.name}-flavor"
        self._made: list[str] = []
        self._queues: list[str] = []
        self._echo = f"{self.name}-echo"
        """Namespace, ClusterQueue and LocalQueue of what is admitted at once."""
        self._echo_queues = set[str]()
        self._echoes = 0
        self._batch = f"{self._echo}-batch"
        """ClusterQueue and LocalQueue of what is admitted by Kueue's batch alone."""
        self._in_batch = ""
        """The Workload that runs there."""

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

    def named(self, short: str) -> str:
        """A cluster-wide name of this fixture."""
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
        limits: Mapping[str, int] | None = None,
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
            limits=limits,
            **spec,
        )
        self._apply(queue)
        self._queues.append(name)
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

    def backlog(self, tenant: str, count: int, **more: object) -> None:
        """Create raw Workloads `<tenant>-0` and so on, of one GPU each."""
        for number in range(count):
            self.workload(tenant, f"{tenant}-{number}", **more)  # type: ignore[arg-type] # passed on

    def job(self, tenant: str, name: str, gpus: int = 1, **more: object) -> KubeObject:
        """Create a batch Job; gives it as the server has it."""
        item = things.job(name, self.namespaces[tenant], QUEUE, {GPU: gpus}, **more)  # type: ignore[arg-type] # passed on
        return self.lab.api.create(item)

    def workloads(self) -> list[KubeObject]:
        """Workloads of the fixture."""
        return self._workloads(set(self.namespaces.values()))

    @property
    def _everywhere(self) -> set[str]:
        """Namespaces that were made."""
        return {*self.namespaces.values(), *([self._echo] if self._echoes else [])}

    def _workloads(self, namespaces: set[str]) -> list[KubeObject]:
        return [item for item in self.lab.api.items(WORKLOADS) if item["metadata"]["namespace"] in namespaces]

    def admitted(self) -> dict[str, KubeObject]:
        """The Workloads that hold quota and are not over, by name."""
        return self._not_over(reserves=True)

    def waiting(self) -> dict[str, KubeObject]:
        """The Workloads that hold no quota and are not over, by name."""
        return self._not_over(reserves=False)

    def _not_over(self, *, reserves: bool) -> dict[str, KubeObject]:
        return {
            item["metadata"]["name"]: item
            for item in self.workloads()
            if things.condition(item, "QuotaReserved") is reserves and not things.condition(item, "Finished")
        }

    def kueue_order(self) -> list[str]:
        """The names of what waits in the order that Kueue has: effective priority, creation, UID."""
        return [item["metadata"]["name"] for item in sorted(self.waiting().values(), key=_kueue_key)]

    def finish(self, tenant: str, name: str) -> None:
        """End a raw Workload that runs."""
        self._finish(self.namespaces[tenant], name)

    def _finish(self, namespace: str, name: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"{_KUEUE}/namespaces/{namespace}/workloads/{name}/status"
        self.lab.api.patch(path, things.finished(at))

    def complete(self, tenant: str, workload: KubeObject) -> bool:
        """End the pods of a Job well, once they run; gives whether they do."""
        [owner] = workload["metadata"]["ownerReferences"]
        pods = f"/api/v1/namespaces/{self.namespaces[tenant]}/pods"
        items = self.lab.api.items(pods, labelSelector=f"batch.kubernetes.io/job-name={owner['name']}")
        found = [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]
        if not found or any(pod["status"]["phase"] != "Running" for pod in found):
            return False
        for pod in found:
            self.lab.api.patch(f"{pods}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
        return True

    async def settled(self) -> None:
        """Wait until Kueue has seen all that was written until now, and has put aside all that waits.

        Each write of a Workload has it try that one once, and who is just being tried when quota comes free takes it,
        whatever its position is. It hears of Workloads in the order of their changes: once it has admitted one that was
        made last, it has seen the writes before.
        """
        self._finish(self._echo, await self._echoed(self._echo, "True"))
        await eventually(self._at_rest, 30, what="Kueue has tried all")

    async def batch_passed(self) -> None:
        """Wait until Kueue's batch of what ended last has passed: a second after an end it tries all that waits anew.

        It does so one after the other, and what comes free amid that goes to whoever is tried next. Who ends jobs faster
        than that, and minds who is admitted, waits for it.
        """
        if not self._in_batch:
            self._in_batch = await self._echoed(self._batch, "True")
        behind = await self._echoed(self._batch, "False")
        self._finish(self._echo, self._in_batch)
        self._in_batch = await self._reserves(behind, "True")

    def _make_echo_queue(self, name: str) -> None:
        api = self.lab.api
        api.apply(things.namespace(self._echo))
        # No level is written where it might preempt: what waits for the batch is woken by nobody.
        preemption = {"withinClusterQueue": "LowerPriority"} if name == self._batch else None
        self._apply(things.cluster_queue(name, {GPU: 1}, flavor=self.flavor, preemption=preemption))
        api.apply(things.local_queue(name, self._echo, name))
        self._echo_queues.add(name)

    async def _echoed(self, queue: str, status: str) -> str:
        """Creates a Workload in one of the two queues, and waits until Kueue says whether it has quota; gives its name."""
        if queue not in self._echo_queues:
            self._make_echo_queue(queue)
        self._echoes += 1
        name = f"echo-{self._echoes}"
        self.lab.api.create(things.workload(name, self._echo, queue, {GPU: 1}))
        return await self._reserves(name, status)

    async def _reserves(self, name: str, status: str) -> str:
        path = f"{_KUEUE}/namespaces/{self._echo}/workloads/{name}"

        def said() -> bool:
            found = self.lab.api.get(path).get("status", {}).get("conditions", [])
            return any(one["type"] == "QuotaReserved" and one["status"] == status for one in found)

        await eventually(said, 30, what=f"Kueue hears writes, and QuotaReserved of {name} is {status}")
        return name

    def _at_rest(self) -> bool:
        """Whether Kueue rests, by its own count of what it is still to try, and tries."""
        active = [
            line
            for line in self.lab.kueue_metrics().splitlines()
            if line.startswith("kueue_pending_workloads{")
            and 'status="active"' in line
            and any(f'"{queue}"' in line for queue in self._queues)
        ]
        return bool(active) and all(line.endswith(" 0") for line in active)

    def tenant_of(self, item: KubeObject) -> str:
        """The short name of the tenant whose Workload or Job it is."""
        namespace: str = item["metadata"]["namespace"]
        return namespace.removeprefix(f"{self.name}-")

    def clear(self) -> None:
        """Delete every Job, PyTorchJob, pod and Workload."""
        api = self.lab.api
        torch = ["/apis/kubeflow.org/v1/{}/pytorchjobs"] if self.lab.options.pytorchjobs else []
        for namespace in self._everywhere:
            for collection in (
                "/apis/batch/v1/{}/jobs",
                *torch,
                "/api/v1/{}/pods",
                f"{_KUEUE}/{{}}/workloads",
            ):
                api.delete(collection.format(f"namespaces/{namespace}"))
        for item in self._workloads(self._everywhere):
            with contextlib.suppress(ApiError):
                path = f"{_KUEUE}/namespaces/{item['metadata']['namespace']}/workloads/{item['metadata']['name']}"
                api.patch(path, {"metadata": {"finalizers": None}})


def effective_priority(item: KubeObject) -> int:
    """The number that Kueue orders a Workload by: its priority and its boost (KEP-7990)."""
    annotations = item["metadata"].get("annotations") or {}
    return int(item["spec"].get("priority") or 0) + int(annotations.get(things.PRIORITY_BOOST, 0))


def _kueue_key(item: KubeObject) -> tuple[int, str, str]:
    metadata = item["metadata"]
    return (-effective_priority(item), metadata["creationTimestamp"], metadata["uid"])
