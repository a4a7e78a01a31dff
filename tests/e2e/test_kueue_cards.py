"""Cards after HAMi on a real API server: what no card holds is said by `explain`, and by `order` of a snapshot, alike."""

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from fairlead_contracts.frontend.cards import ALLOCATED, HOLDER, REGISTER
from fairlead_contracts.policyfile.document import Fit
from fairlead_testkit.fleets.kube_fleet import KubeFleet, fair_policy
from fairlead_testkit.kubelab import GPU, ApiError, KubeLab, KubeObject, things
from fairlead_testkit.kubelab.options import NodeShape
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.processes import command
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
CARD_MIB = 24_576
HELD_MIB = (12_000, 12_576)
"""MiB held of each of the two cards: as much is free in all as one card has, and no card has 20,480 MiB."""
TOO_LARGE, FULL = "too-large-for-any-card", "no-card-has-it-free"
NEVER = (
    "The nodes of cluster lab cannot hold it, even if nothing else ran. main: a vGPU asks for 32000 MiB of card "
    "memory, more than any card has (24576 MiB). All 2 cards are short of memory."
)
TOO_MUCH = "It asks for 128000 nvidia.com/gpumem, more than pool gpu has (98304)."
NO_ROOM = "24576 MiB of card memory free in all, but no card has 20480 MiB; the most on one is 12576 MiB."


def register(*uuids: str) -> str:
    """The register that HAMi's device plugin writes of such cards."""
    cards = [
        {
            "id": uuid,
            "count": 10,
            "devmem": CARD_MIB,
            "devcore": 100,
            "type": "NVIDIA-A30",
            "mode": "hami-core",
        }
        | {"health": True}
        for uuid in uuids
    ]
    return json.dumps(cards)


def a_pod(namespace: str, name: str, node: str, held: str) -> KubeObject:
    """A pod that HAMi gave cards, as HAMi marks it."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {HOLDER: node},
        "annotations": {HOLDER: node, ALLOCATED: held},
    }
    [container] = things.workload(name, namespace, QUEUE, {"cpu": 1})["spec"]["podSets"][0]["template"][
        "spec"
    ]["containers"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
    }


@contextlib.contextmanager
def a_node(fixture: NamespaceFixture, name: str, registered: str) -> Iterator[str]:
    """A node with this register; gives its name."""
    api = fixture.lab.api
    [node] = NodeShape(fixture.named(name), 1, gpus=20).nodes()
    node["metadata"]["annotations"] = {REGISTER: registered}
    api.create(node)
    try:
        yield node["metadata"]["name"]
    finally:
        with contextlib.suppress(ApiError):
            api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


@contextlib.contextmanager
def held_cards(fixture: NamespaceFixture) -> Iterator[None]:
    """A node with two cards that pods hold in part."""
    namespace = fixture.namespaces["team-a"]
    with a_node(fixture, "hami", register("GPU-1", "GPU-2")) as node:
        for number, held in enumerate(HELD_MIB, start=1):
            fixture.lab.api.create(
                a_pod(namespace, f"holder-{number}", node, f"GPU-{number},NVIDIA,{held},0:;")
            )
        yield


def plant(fixture: NamespaceFixture) -> str:
    """A strict queue that has quota left, behind a head that has not: Kueue would admit what has quota, cards or not."""
    pool = fixture.named("cards")
    quota = {GPU: 4, MEMORY: 200_000}
    api = fixture.lab.api
    api.apply(things.cluster_queue(pool, quota, flavor=fixture.flavor, strategy="StrictFIFO"))
    namespace = fixture.namespaces["team-a"]
    api.apply(things.local_queue(QUEUE, namespace, pool))
    api.create(things.workload("keeper", namespace, QUEUE, {GPU: 1}))
    return pool


async def fairlead(*words: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Output of the command, and its warnings."""
    ended = await asyncio.to_thread(command.fairlead, *words, environ=env, given=given.decode())
    return ended.stdout, ended.stderr


async def explain(env: Mapping[str, str], job: str) -> KubeObject:
    """The explanation of a job; empty where nobody tells of it yet."""
    said, _ = await fairlead("explain", job, "-o", "json", env=env)
    found: list[KubeObject] = json.loads(said)["found"] if said else []
    return found[0] if found else {}


async def explained(env: Mapping[str, str], job: str, what: str, words: str) -> KubeObject:
    """The explanation of a job, once these words are told of it."""
    found = await explain(env, job)
    return found if words in " ".join(found.get(what, ())) else {}


async def has_room(env: Mapping[str, str], job: str) -> bool:
    """Whether nothing speaks against a job's start but its quota."""
    found = await explain(env, job)
    return found.get("never") == found.get("no_room") == []


async def taken(env: Mapping[str, str]) -> list[str]:
    """A snapshot and its warnings; empty where none can be taken yet."""
    printed, warned = await fairlead("snapshot", env=env)
    return [printed, warned] if printed else []


def explained_by_cards(*, full: KubeObject, large: KubeObject) -> None:
    """Checks the explanations where all cards are known: what no card has, and what none has free."""
    assert large["never"] == [NEVER]
    assert (full["never"], full["no_quota"]) == ([], [])
    [short, *_] = full["shortfalls"]
    assert (short["term"], short["wanted"], short["most"], short["total"], short["unit"]) == (
        "card-memory", 20_480, 12_576, 24_576, "MiB",
    )  # fmt: skip


def ordered_by_cards(ordered: KubeObject, *, pool: str) -> None:
    """The same on paper, of this pool: what another test left behind may still wait in its own."""
    [mine] = [one for one in ordered["pools"] if one["name"] == pool]
    fits = {job["id"]: job["fit"] for job in mine["order"]}
    assert {name: fit["answer"] for name, fit in fits.items()} == {TOO_LARGE: "never", FULL: "no-room"}
    assert fits[TOO_LARGE]["why"] == [TOO_MUCH], "its quota would do for four vGPUs, the pool's cards do not"
    assert NO_ROOM in fits[FULL]["why"][0]


def weighed_by_cards(ordered: KubeObject, *, full: KubeObject) -> None:
    """Checks that what is asked of a card counts, not what quota counts: the same live and on paper."""
    [mine] = [one for one in ordered["pools"] if one["name"] == full["pool"]]
    [found] = [job for job in mine["order"] if job["id"] == FULL]
    assert full["place"]["demand"] == {GPU: "100m", MEMORY: "20480"}, (
        "a tenth of a card's places, and its memory"
    )
    assert full["standing"]["use"] == {GPU: "1", CORES: "100", MEMORY: str(CARD_MIB)}, "a whole card runs"
    assert full["standing"]["share"] == 0.25
    assert found["tag"] == full["place"]["tag"]


async def test_what_no_card_holds_is_said_live_and_on_paper(kube_lab: KubeLab, tmp_path: Path) -> None:
    with NamespaceFixture(kube_lab, ["team-a"]) as fixture, held_cards(fixture):
        pool = plant(fixture)
        namespace = fixture.namespaces["team-a"]
        await eventually(lambda: "keeper" in fixture.admitted(), 60, what="somebody runs")
        head = things.workload(TOO_LARGE, namespace, QUEUE, {GPU: 4, MEMORY: 32_000}, priority=1)
        kube_lab.api.create(head)
        await eventually(lambda: TOO_LARGE in fixture.waiting(), 60, what="the head waits")
        kube_lab.api.create(things.workload(FULL, namespace, QUEUE, {GPU: 1, MEMORY: 20_480}))
        policy = fair_policy(fixture, {"team-a": 1}, pool, fit=Fit(strategy="binpack"))
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy, lever=None, scorers=1, admitters=0)
        async with fleet.running():
            env = fleet.person()
            full = await eventually(
                partial(explained, env, FULL, "no_room", NO_ROOM), 60, what="cards are explained"
            )
            large = await eventually(
                partial(explained, env, TOO_LARGE, "never", NEVER), 60, what="it is never possible"
            )
            with a_node(fixture, "newer", "GPU-3,ten,24576") as unread:
                for job in (TOO_LARGE, FULL):
                    await eventually(
                        partial(has_room, env, job), 60, what="a newer HAMi may have a card for it"
                    )
                snapshot, warned = await eventually(partial(taken, env), 60, what="a snapshot is taken")
            await eventually(
                partial(explained, env, FULL, "no_room", NO_ROOM), 60, what="its cards are told again"
            )
            holder = f"/api/v1/namespaces/{namespace}/pods/holder-1"
            # First: who is still to be started would be said to run, over what is said here.
            await eventually(lambda: kube_lab.api.get(holder)["status"]["phase"] == "Running", 60)
            kube_lab.api.patch(f"{holder}/status", {"status": {"phase": "Succeeded"}})
            await eventually(
                partial(has_room, env, FULL),
                60,
                what="a pod that is over holds nothing, though its note stands",
            )
            log = fleet.services["watcher-1"].log.splitlines()
            refused = [line for line in log if "cards.refused" in line]
        assert len(refused) == 1, "once, however often the node is heard of"
        assert f'node \\"{unread}\\"' in refused[0], "with its name"
        explained_by_cards(full=full, large=large)
        assert "left out are the cards of nodes whose register cannot be read" in " ".join(warned.split())
        printed, _ = await fairlead("order", "-", "-o", "json", given=snapshot.encode())
        ordered_by_cards(json.loads(printed), pool=full["pool"])
        weighed_by_cards(json.loads(printed), full=full)
