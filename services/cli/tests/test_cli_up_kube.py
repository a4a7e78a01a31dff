"""`fairlead up --kubeconfig` on a real Kubernetes with a real Kueue."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit.fleets.slurm_fleet import slurm_order
from fairlead_testkit.kubelab import GPU, KubeLab, KubeObject, things
from fairlead_testkit.processes.command import LocalInstance, fairlead
from fairlead_testkit.slurmlab import SlurmLab

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(400)]

GANG_FIT = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/gang-fit"
NAMESPACES = ("up-a", "up-b")


@pytest.fixture(scope="module")
def crowded(kube_lab: KubeLab) -> Iterator[KubeLab]:
    """A queue with room for nobody, and jobs of two tenants that a fair order interleaves.

    It begins with the tenant that came second, for the first one has all that runs: a level must be written.
    """
    lab = kube_lab
    lab.api.apply(
        *map(things.namespace, NAMESPACES),
        things.flavor("up-any"),
        things.cluster_queue("up-gpus", {GPU: 8, "cpu": 64}, flavor="up-any"),
        *(things.local_queue("main", name, "up-gpus") for name in NAMESPACES),
    )
    lab.api.create(things.workload("filler", "up-a", "main", {GPU: 8, "cpu": 1}))
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/up-a/workloads/filler"
    lab.until(lambda: things.condition(lab.api.get(path), "Admitted"), 60, "the queue is full")
    # Whole seconds apart, so that Kueue's own order is that of the namespaces. It makes the Workloads when it gets to it.
    for name in NAMESPACES:
        for number in range(3):
            lab.api.create(things.job(f"train-{number}", name, "main", {GPU: 8, "cpu": 1}, seconds=600))
        lab.until(lambda name=name: len(workloads(lab, name)) == 3 + (name == "up-a"), 60, "Workloads")  # type: ignore[misc] # binds the loop's value
        last = int(time.time())
        lab.until(lambda last=last: int(time.time()) > last, 30, "the next second")  # type: ignore[misc] # as above
    try:
        yield lab
    finally:
        for name in NAMESPACES:
            lab.api.delete(f"/api/v1/namespaces/{name}")
        lab.api.delete("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/up-gpus")


def workloads(lab: KubeLab, namespace: str) -> list[KubeObject]:
    return lab.api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads")


def boosts(lab: KubeLab) -> dict[str, str]:
    """The boosted Workloads of our namespaces."""
    found = (item for name in NAMESPACES for item in workloads(lab, name))
    annotation = things.PRIORITY_BOOST
    return {
        f"{item['metadata']['namespace']}/{item['metadata']['name']}": value
        for item in found
        if (value := item["metadata"].get("annotations", {}).get(annotation))
    }


def test_a_dry_run_says_what_it_would_write_and_writes_nothing(crowded: KubeLab, tmp_path: Path) -> None:
    config = ["--kubeconfig", str(crowded.kubeconfig()), "--cluster", "lab"]
    with LocalInstance(tmp_path, *config, "--dry-run") as instance:
        said = instance.said("Ctrl-C ends it")
        assert "lab passes" in said, said
        assert "a dry run: nothing is written, and no leave was given" in said, said
        assert "a watcher and an admitter for lab (dry run)" in said, said
        instance.said("would write up-b/train-")
        assert boosts(crowded) == {}


@pytest.fixture
def with_gang_fit(crowded: KubeLab) -> Iterator[KubeLab]:
    crowded.offer_gang_fit()
    yield crowded
    crowded.api.delete(GANG_FIT)


def test_it_examines_the_cluster_steers_it_and_answers(with_gang_fit: KubeLab, tmp_path: Path) -> None:
    crowded = with_gang_fit
    with LocalInstance(tmp_path, "--kubeconfig", str(crowded.kubeconfig()), "--gang-fit") as instance:
        said = instance.said("Ctrl-C ends it")
        assert "levels may be written from now on, by boost" in said, said
        assert "a watcher, an admitter and a checker of gangs for kubelab" in said, said
        crowded.until(
            lambda: things.condition(crowded.api.get(GANG_FIT), "Active"), 60, "the check is claimed"
        )
        crowded.until(lambda: boosts(crowded), 60, "a level is written")
        positions = crowded.until(lambda: fair(instance), 60, "the order is the fair one")
        crowded.until(
            lambda: "weight" in instance.ask("tenants", "--pool", "kubelab/up-gpus").stdout, 60, "tenants"
        )

        last = positions[-1]["place"]
        job = f"{last['scope']}/{last['id']}"
        refused = instance.ask("approve", job, "--class", "gold")
        assert refused.returncode == 2, refused.stderr
        assert "Classes to grant are urgent, approved" in refused.stderr
        approved = instance.ask("approve", job, "--class", "urgent", "--why", "a test", "--by", "ann")
        assert approved.returncode == 0, approved.stderr
        crowded.until(lambda: first(instance) == last["uid"], 60, "the approved job is first")
        policy = json.loads(instance.ask("policy", "show", "-o", "json").stdout)
        grant = policy["grants"][0]
        assert (grant["job"], grant["classes"], grant["by"], grant["why"]) == (
            last["uid"],
            ["urgent"],
            "ann",
            "a test",
        )
        assert instance.ask("approve", job, "--withdraw").returncode == 0
        crowded.until(lambda: first(instance) not in ("", last["uid"]), 60, "it is one of many again")

        # Our own levels stand now: they are no other writer's.
        again = instance.ask("doctor", "--kubeconfig", str(crowded.kubeconfig()))
        assert "levels may be written already, by boost" in again.stderr
        assert "other-writer" not in again.stdout
        revoked = instance.ask("doctor", "--kubeconfig", str(crowded.kubeconfig()), "--revoke")
        assert "leave is taken back" in revoked.stderr
        crowded.until(lambda: boosts(crowded) == {}, 60, "no level is left")


def queue(instance: LocalInstance) -> list[KubeObject]:
    """The waiting jobs; none where no scorer answered in time."""
    said = instance.ask("queue", "--pool", "kubelab/up-gpus", "-o", "json").stdout
    positions: list[KubeObject] = json.loads(said)["pools"][0]["places"] if said else []
    return positions


def fair(instance: LocalInstance) -> list[KubeObject]:
    """The waiting jobs, once all are there with the tenants in turn: a scorer may have stood still before."""
    positions = queue(instance)
    return positions if [one["place"]["tenant"] for one in positions] == ["up-b", "up-a"] * 3 else []


def first(instance: LocalInstance) -> str:
    """The uid of who is next; empty where nobody says."""
    uids: list[str] = [one["place"]["uid"] for one in queue(instance)]
    return uids[0] if uids else ""


def test_a_cluster_that_cannot_be_reached_is_no_reason_to_end(kube_lab: KubeLab, tmp_path: Path) -> None:
    away = tmp_path / "away.yaml"
    away.write_text(kube_lab.kubeconfig().read_text().replace(kube_lab.server, "https://127.0.0.1:9"))
    with LocalInstance(tmp_path, "--kubeconfig", str(away)) as instance:
        instance.said("read-only until `fairlead doctor` passes")


def test_two_contexts_are_two_clusters(tmp_path: Path) -> None:
    words = ("up", "--context", "a", "--context", "b", "--cluster", "one")
    instance = fairlead(*words, environ={"XDG_STATE_HOME": str(tmp_path)})
    assert instance.returncode == 2
    assert "there are several contexts" in instance.stderr


BOTH = """
aging: {entitlement_per_day: 0}
unlisted_weight: 1
pools:
  - {name: gpus, members: [lab/gpu, kubelab/up-gpus]}
tenants:
  - {name: vision, match: {scopes: [vision, up-a]}}
  - {name: speech, match: {scopes: [speech, up-b]}}
"""


@pytest.mark.slurm
def test_with_slurm_beside_it_one_pool_joins_both(
    crowded: KubeLab, slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    """A tenant that runs jobs on Kueue goes back on Slurm, where it came first and runs nothing."""
    slurm_lab.fill("spare")
    first, second = (slurm_lab.submit(name, "--gres=gpu:8", "--nodes=1") for name in ("vision", "speech"))
    policy = tmp_path / "policy.yaml"
    policy.write_text(BOTH)
    flags = ["--kubeconfig", str(crowded.kubeconfig()), "--slurm-conf", str(slurm_lab.conf)]
    with LocalInstance(tmp_path, *flags, "--policy", str(policy), "--scorers", "1") as instance:
        instance.said("Ctrl-C ends it")
        slurm_lab.until(lambda: slurm_order(slurm_lab) == [second, first], "Slurm follows the joined order")
        crowded.until(lambda: boosts(crowded), 60, "and Kueue, too")

        def shown() -> bool:
            said = instance.ask("queue", "--output", "json").stdout
            return all(words in said for words in (f'"{first}"', f'"{second}"', "job-train-0"))

        crowded.until(shown, 60, "both sides are shown in one queue")
