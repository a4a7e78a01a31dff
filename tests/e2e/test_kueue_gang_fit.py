"""The check for gang fit beside a real Kueue, scheduler and nodes: who has quota and no room gives the quota back, and
starts as soon as there is room."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.frontend.marks import ZONE_KEY
from fairlead_testkit.kubelab import (
    CHECK_WATCHDOG,
    CHECKER,
    GPU,
    ZONE,
    KubectlError,
    KubeLab,
    KubeObject,
    NodeShape,
    things,
)
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.nats_servers.nats_server import NatsServer
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.telemetry.prometheus import Prometheus, all_scraped, all_speak, asked_by_panels
from fairlead_testkit.timing.awaiting import NeverHappenedError, eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

CHECK = "gang-fit"
CHECKED = {"admissionChecks": [{"name": CHECK}]}
ROOMY = 64
"""A quota that stands in nobody's way: what starts is what has room."""
TEAM = "team-a"
OWN = "fairlead.test/fixture"


class GangFitSite:
    """A ClusterQueue with the check, and nodes that only its flavor leads to.

    Its jobs alone tolerate the nodes: a pod that an earlier test left behind would be bound to one, and take room there.
    """

    def __init__(self, fixture: NamespaceFixture, *shapes: NodeShape) -> None:
        self.fixture = fixture
        self.api = fixture.lab.api
        self.namespace = fixture.namespaces[TEAM]
        label = {OWN: fixture.name}
        flavor = things.flavor(fixture.flavor, label)
        flavor["spec"]["tolerations"] = [{"key": OWN, "operator": "Equal", "value": fixture.name}]
        self.api.apply(flavor)
        own = {"key": OWN, "value": fixture.name, "effect": "NoSchedule"}
        self.nodes = [
            node
            for shape in shapes
            for node in NodeShape(
                fixture.named(shape.name), shape.count, gpus=shape.gpus, zone=shape.zone,
                labels={**shape.labels, **label}, taints=(*shape.taints, own),
            ).nodes()
        ]  # fmt: skip
        for node in self.nodes:
            self.api.create(node)
        fixture.queue("gpu", ROOMY, admissionChecksStrategy=CHECKED)

    def leave(self) -> None:
        for node in self.nodes:
            self.api.delete(f"/api/v1/nodes/{node['metadata']['name']}")

    async def stranger(self, name: str, node: int, gpus: int) -> None:
        """A pod on a node that no queue knows of; it runs: by then the checker has heard of it."""
        [container] = things.workload(name, "", "", {GPU: gpus})["spec"]["podSets"][0]["template"]["spec"][
            "containers"
        ]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"nodeName": self.nodes[node]["metadata"]["name"], "containers": [container]},
        }
        self.api.create(pod)
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        await eventually(lambda: self.api.get(path)["status"].get("phase") == "Running", 60, what="it runs")

    def remove(self, name: str) -> None:
        """Delete a pod at once."""
        self.api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def gang(
        self,
        name: str,
        pods: int,
        gpus: int,
        annotations: Mapping[str, str] | None = None,
        **spec: object,
    ) -> None:
        """A Job whose pods run for long; `annotations` and `spec` are those of its pods."""
        made = things.job(
            name,
            self.namespace,
            QUEUE,
            {GPU: gpus},
            pods=pods,
            seconds=3600,
            pod_annotations=annotations,
        )
        made["spec"]["template"]["spec"] |= spec
        self.api.create(made)

    def end(self, name: str) -> None:
        """Delete a Job, and its pods with it."""
        self.api.delete(f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}")

    def of(self, job: str) -> KubeObject:
        """The Workload of a Job."""
        for one in self.fixture.workloads():
            if any(owner["name"] == job for owner in one["metadata"].get("ownerReferences", [])):
                return one
        return {"metadata": {}, "status": {}}

    def pods_of(self, job: str) -> list[KubeObject]:
        """Pods of the job."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.api.items(path, labelSelector=f"batch.kubernetes.io/job-name={job}")

    def places(self, job: str) -> list[str]:
        """The nodes of its pods that run."""
        found = [pod for pod in self.pods_of(job) if pod["status"].get("phase") == "Running"]
        return sorted(pod["spec"]["nodeName"] for pod in found)

    async def waits(self, job: str, *words: str) -> KubeObject:
        """Waits until the job has no quota any more, is kept out of its queue, and says why."""

        def so() -> KubeObject | None:
            found = self.of(job)
            status = found.get("status", {})
            said = " ".join(one["message"] for one in status.get("admissionChecks", []))
            out = status.get("requeueState", {}).get("requeueAt") and not things.condition(
                found, "QuotaReserved"
            )
            pending = all(one["state"] == "Pending" for one in status.get("admissionChecks", []))
            return found if out and pending and all(word in said for word in words) else None

        try:
            found = await eventually(so, 60, what=f"{job} waits, and says {words}")
        except NeverHappenedError as error:
            error.add_note(f"its Workload: {json.dumps(self.of(job))}; its pods run on {self.places(job)}")
            raise
        assert found is not None
        return found

    async def runs(self, job: str, pods: int) -> list[str]:
        """Waits until all pods of the job run; returns their nodes."""
        await eventually(lambda: len(self.places(job)) == pods, 60, what=f"{job} runs")
        return self.places(job)


@contextlib.contextmanager
def site(lab: KubeLab, *shapes: NodeShape) -> Iterator[GangFitSite]:
    lab.offer_gang_fit()
    with NamespaceFixture(lab, [TEAM]) as fixture:
        here = GangFitSite(fixture, *shapes)
        try:
            yield here
        finally:
            for job in lab.api.items(f"/apis/batch/v1/namespaces/{here.namespace}/jobs"):
                here.end(job["metadata"]["name"])
            here.leave()


@contextlib.asynccontextmanager
async def checkers(
    lab: KubeLab, directory: Path, count: int = 1, settings: Mapping[str, object] | None = None
) -> AsyncIterator[list[ServiceProcess]]:
    """Checkers with the rights that are shipped; one of them leads."""
    with NatsServer(directory / "nats") as server, contextlib.ExitStack() as ending:
        async with connect(ConnectionSettings(url=server.url), name="test") as bus:
            await provision(bus, topology.topology(["lab"]))
            own = {
                "nats_url": server.url,
                "cluster": "lab",
                "kubeconfig": lab.kubeconfig(CHECKER),
                **(settings or {}),
            }
            started = [
                ending.enter_context(
                    ServiceProcess(
                        "checker", directory, {**own, "replica": f"checker-{n}"}, name=f"checker-{n}"
                    )
                )
                for n in range(count)
            ]
            for one in started:
                await one.ready()
            yield started


async def test_a_gang_without_room_gives_its_quota_back_and_starts_when_there_is_room(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with site(kube_lab, NodeShape("n", 2, gpus=4)) as here:
        async with checkers(
            kube_lab, tmp_path, settings={"retry_seconds": 600, "retry_longest_seconds": 600}
        ) as [checker]:
            port = await checker.health_port()
            await here.stranger("stranger", node=0, gpus=3)
            here.gang("gang", pods=2, gpus=4)
            waiting = await here.waits("gang", "main: 1 of 2 pods fits.")
            assert here.pods_of("gang") == [], "no pod pends"
            here.gang("small", pods=1, gpus=1)
            await here.runs("small", 1)
            here.remove("stranger")
            here.end("small")
            nodes = await here.runs("gang", 2)
            assert len(set(nodes)) == 2
            ran = here.of("gang")
            assert ran["metadata"]["uid"] == waiting["metadata"]["uid"]
            assert ran["metadata"]["creationTimestamp"] == waiting["metadata"]["creationTimestamp"]
            of_it = [one for one in asked_by_panels() if "fairlead_checker_" in one[1]]
            assert len(of_it) == 5
            with Prometheus(tmp_path, {"fairlead-checker": [port]}) as prometheus:
                await all_scraped(prometheus, 1)
                here.end("gang")
                here.gang("another", pods=2, gpus=2)
                await here.runs("another", 2)
                await all_speak(prometheus, of_it)


async def test_of_gangs_of_one_moment_each_has_nodes_of_its_own(kube_lab: KubeLab, tmp_path: Path) -> None:
    """Four gangs for half the nodes each: two run whole, two wait whole, and no pod ever pends."""
    with site(kube_lab, NodeShape("n", 4, gpus=4)) as here:
        async with checkers(kube_lab, tmp_path):
            names = [f"gang-{number}" for number in range(4)]
            for name in names:
                here.gang(name, pods=2, gpus=4)
            left = set(names)

            def running() -> list[str]:
                return [name for name in sorted(left) if len(here.places(name)) == 2]

            while left:
                found = await eventually(running, 60, what="some run")
                pods = [pod for name in names for pod in here.pods_of(name)]
                assert [pod["metadata"]["name"] for pod in pods if pends(pod)] == []
                for name in found:
                    here.end(name)
                left -= set(found)


def pends(pod: KubeObject) -> bool:
    """Whether the scheduler looked for a node, and found none."""
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


async def test_selectors_taints_and_zones_are_kept_to(kube_lab: KubeLab, tmp_path: Path) -> None:
    tainted = ({"key": "fairlead.test/keep-off", "value": "yes", "effect": "NoSchedule"},)
    with site(
        kube_lab,
        NodeShape("a", 2, gpus=4, zone="a", labels={"disk": "fast"}),
        NodeShape("b", 1, gpus=4, zone="b", labels={"disk": "fast"}),
        NodeShape("t", 2, gpus=4, labels={"disk": "slow"}, taints=tainted),
    ) as here:
        async with checkers(kube_lab, tmp_path):
            here.gang("selects", pods=4, gpus=4, nodeSelector={"disk": "fast"})
            await here.waits("selects", "3 of 4 pods fit.")
            here.end("selects")
            here.gang("untolerating", pods=1, gpus=4, nodeSelector={"disk": "slow"})
            await here.waits("untolerating", "taint fairlead.test/keep-off=yes:NoSchedule is not tolerated")
            here.end("untolerating")
            tolerates = [{"key": "fairlead.test/keep-off", "operator": "Exists"}]
            here.gang("tolerating", pods=2, gpus=4, nodeSelector={"disk": "slow"}, tolerations=tolerates)
            await here.runs("tolerating", 2)
            await here.stranger("stranger", node=0, gpus=1)
            here.gang("zoned", pods=2, gpus=4, annotations={ZONE_KEY: ZONE})
            await here.waits("zoned", f"No {ZONE} holds the whole gang: it fits only across a and b.")
            here.remove("stranger")
            nodes = await here.runs("zoned", 2)
            assert nodes == [node["metadata"]["name"] for node in here.nodes[:2]]
            [pod, _] = here.pods_of("zoned")
            assert pod["spec"]["nodeSelector"][ZONE] == "a", "its pods are kept in the zone that was found"


@pytest.mark.parametrize(("strategy", "zone"), [("binpack", "a"), ("spread", "b")])
async def test_the_strategy_chooses_among_zones_that_all_fit(
    kube_lab: KubeLab, tmp_path: Path, strategy: str, zone: str
) -> None:
    """The fewest nodes are one, in either zone; the most are two, in b."""
    with site(kube_lab, NodeShape("a", 1, gpus=4, zone="a"), NodeShape("b", 2, gpus=4, zone="b")) as here:
        async with checkers(kube_lab, tmp_path, settings={"strategy": strategy}):
            here.gang("zoned", pods=2, gpus=1, annotations={ZONE_KEY: ZONE})
            await here.runs("zoned", 2)
            assert {pod["spec"]["nodeSelector"][ZONE] for pod in here.pods_of("zoned")} == {zone}


async def test_a_killed_checker_is_replaced_and_what_it_sent_away_comes_again(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with site(kube_lab, NodeShape("n", 2, gpus=4)) as here:
        async with checkers(kube_lab, tmp_path, count=2, settings={"retry_seconds": 4}) as started:
            await here.stranger("stranger", node=0, gpus=3)
            here.gang("gang", pods=2, gpus=4)
            await here.waits("gang", "1 of 2 pods fits")
            for one in started:
                one.kill()
            here.remove("stranger")

            def holds_quota() -> bool:
                return things.condition(here.of("gang"), "QuotaReserved")

            await eventually(holds_quota, 60, what="its time is up, and Kueue tries it again by itself")
            assert here.pods_of("gang") == [], "nobody answers"
            started[1].start()
            await here.runs("gang", 2)


async def test_with_nobody_to_answer_the_watchdog_lets_through(kube_lab: KubeLab, tmp_path: Path) -> None:
    with site(kube_lab, NodeShape("n", 2, gpus=4)) as here:
        here.gang("gang", pods=2, gpus=4)
        arguments = ["watchdog", "--check", CHECK, "--overdue", "3", "--every", "0.5"]
        arguments += ["--kubeconfig", str(kube_lab.kubeconfig(CHECK_WATCHDOG)), "--cluster", "lab"]
        with ServiceProcess("watchdog", tmp_path, arguments=arguments, module="fairlead_cli"):
            await here.runs("gang", 2)
        [check] = here.of("gang")["status"]["admissionChecks"]
        assert check["state"] == "Ready"
        assert "Nobody answered for 3 s" in check["message"]
        assert "let through unchecked by the watchdog" in check["message"]


def test_each_account_may_do_what_it_has_to_and_nothing_else(kube_lab: KubeLab) -> None:
    kube_lab.offer_gang_fit()
    allowed = {
        CHECKER: {
            "list workloads", "watch workloads", "patch workloads --subresource=status", "list resourceflavors",
            "watch admissionchecks", "patch admissionchecks --subresource=status", "watch nodes", "watch pods",
        },
        CHECK_WATCHDOG: {
            "list workloads", "watch workloads", "patch workloads --subresource=status",
            f"get admissionchecks/{CHECK}", f"patch admissionchecks/{CHECK} --subresource=status",
        },
    }  # fmt: skip
    denied = {
        "patch workloads", "create workloads", "delete workloads", "patch clusterqueues", "create pods", "delete pods",
        "patch nodes", "get secrets", "get configmaps", "impersonate serviceaccounts", "patch admissionchecks",
    }  # fmt: skip
    for user, does in allowed.items():
        others = set().union(*allowed.values()) - does - {f"get admissionchecks/{CHECK}"}
        for action in sorted(does | denied | others):
            if action.startswith(f"patch admissionchecks/{CHECK}") and user == CHECKER:
                continue  # it may patch the status of every check
            said = may(kube_lab, user, action)
            assert said == (action in does), f"{user}: {action}"


def may(lab: KubeLab, user: str, action: str) -> bool:
    try:
        return lab.kubectl("auth", "can-i", *action.split(), "-A", user=user).strip() == "yes"
    except KubectlError:
        return False
