"""Walking an order with fit against a plain walk that tries every placement, HAMi's rules written down once more."""

from collections.abc import Iterator
from itertools import combinations
from random import Random

import pytest

from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.snapshot.card_shares import with_card_shares
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_policy.snapshot.placement import FitVerdict, PlacementWalk, walk
from fairlead_testkit.inputs.cases import cases

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
NOW = 1_760_000_000

type Card = tuple[str, int, int, int]
"""(uuid, slots, MiB, percent of cores) that are left."""
type PlainNode = tuple[str, int, int, tuple[Card, ...]]
"""(name, cpu, plain GPUs, cards) that are left."""


def random_snapshot(seed: int) -> tuple[dict[str, object], bool]:
    """A snapshot as a document, and whether its nodes register cards."""
    rng = Random(seed)
    with_cards = rng.random() < 0.6
    nodes: list[dict[str, object]] = []
    for number in range(rng.randrange(1, 4)):
        node: dict[str, object] = {
            "name": f"n{number}",
            "allocatable": {"cpu": rng.randrange(2, 7), GPU: rng.randrange(0, 5)},
            "used": {"cpu": rng.randrange(0, 3)},
            "labels": {"kind": rng.choice(["slow", "fast"])},
        }
        if with_cards:
            node["cards"] = [random_card(rng, f"{number}-{at}") for at in range(rng.randrange(0, 3))]
        nodes.append(node)
    if with_cards and not any(node["cards"] for node in nodes):
        nodes[0]["cards"] = [random_card(rng, "0-0")]
    jobs = [random_job(rng, number, with_cards=with_cards) for number in range(rng.randrange(2, 6))]
    return {
        "now": NOW,
        "pools": [{"name": "p", "capacity": {"cpu": rng.choice([4, 9, 30]), GPU: rng.choice([2, 5, 30])}}],
        "tenants": [{"name": "a", "weight": 2}, {"name": "b"}],
        "nodes": nodes,
        "running": [{"id": "r", "tenant": "a", "demand": {"cpu": 1}}],
        "jobs": jobs,
    }, with_cards


def random_card(rng: Random, uuid: str) -> dict[str, object]:
    used = rng.choice([(0, 0, 0), (0, 0, 0), (1, 4, 30), (1, 2, 100)])
    return {
        "uuid": uuid,
        "memory": rng.choice([8, 10]),
        "count": rng.choice([1, 2, 3]),
        "used": dict(zip(("count", "memory", "cores"), used, strict=True)),
        "health": rng.random() < 0.9,
    }


def random_job(rng: Random, number: int, *, with_cards: bool) -> dict[str, object]:
    pods = rng.choice([1, 1, 2, 3])
    per_pod: dict[str, object] = {"cpu": rng.randrange(0, 4)}
    if rng.random() < 0.7:
        per_pod[GPU] = rng.choice([1, 1, 2])
        if with_cards and rng.random() < 0.7:
            per_pod[MEM] = rng.choice([2, 4, 5, 9])
            per_pod[CORES] = rng.choice([0, 30, 50, 100])
    whole = {
        name: amount * pods
        for name, amount in per_pod.items()
        if name in ("cpu", GPU)
        if isinstance(amount, int)
    }
    gang: dict[str, object] = {"pods": pods, "per_pod": per_pod}
    if rng.random() < 0.2:
        gang["selector"] = {"kind": rng.choice(["fast", "none"])}
    return {
        "id": f"j{number}",
        "tenant": rng.choice("ab"),
        "submitted": NOW - rng.randrange(1000),
        "demand": whole,
        "gang": gang,
    }


# A plain walk ----------------------------------------------------------------------------------------------------------


def plain_nodes(document: dict[str, object], *, empty: bool) -> dict[str, tuple[PlainNode, str]]:
    """The rest of each node and its label, by name."""
    found: dict[str, tuple[PlainNode, str]] = {}
    nodes = document["nodes"]
    assert isinstance(nodes, list)
    for node in nodes:
        cards = []
        for card in node.get("cards", ()):
            used = {"count": 0, "memory": 0, "cores": 0} if empty else card["used"]
            if card["health"]:
                left = (card["count"] - used["count"], card["memory"] - used["memory"], 100 - used["cores"])
                cards.append((card["uuid"], *left))
        cpu = node["allocatable"]["cpu"] - (0 if empty else node["used"]["cpu"])
        plain = (node["name"], cpu, node["allocatable"][GPU], tuple(cards))
        found[node["name"]] = plain, node["labels"]["kind"]
    return found


def slots_of(document: dict[str, object]) -> dict[str, int]:
    nodes = document["nodes"]
    assert isinstance(nodes, list)
    return {card["uuid"]: card["count"] for node in nodes for card in node.get("cards", ())}


class PlainPlacement:
    """One job's pods, and every way to start them."""

    def __init__(self, job: dict[str, object], slots: dict[str, int], *, with_cards: bool) -> None:
        gang = job["gang"]
        assert isinstance(gang, dict)
        per_pod = gang["per_pod"]
        self.pods: int = gang["pods"]
        self.kind = gang.get("selector", {}).get("kind")
        self.cpu: int = per_pod["cpu"]
        self.gpus: int = 0 if with_cards else per_pod.get(GPU, 0)
        self.cards: int = per_pod.get(GPU, 0) if with_cards else 0
        self.memory: int | None = per_pod.get(MEM)
        whole = MEM not in per_pod and CORES not in per_pod
        self.cores: int = per_pod.get(CORES, 100 if whole else 0)
        self._slots = slots
        self._totals = dict[str, int]()

    def fits(self, nodes: dict[str, tuple[PlainNode, str]], totals: dict[str, int]) -> bool:
        """Whether there is any way, by trying each."""
        self._totals = totals
        states = {frozenset(node for node, _ in nodes.values())}
        kinds = {name: kind for name, (_, kind) in nodes.items()}
        for _ in range(self.pods):
            states = {after for before in states for after in self._one_more(before, kinds)}
        return bool(states)

    def _one_more(self, state: frozenset[PlainNode], kinds: dict[str, str]) -> Iterator[frozenset[PlainNode]]:
        for node in state:
            name, cpu, gpus, cards = node
            if self.kind in (None, kinds[name]) and cpu >= self.cpu and gpus >= self.gpus:
                for after in self._on_cards(cards):
                    yield state - {node} | {(name, cpu - self.cpu, gpus - self.gpus, after)}

    def _on_cards(self, cards: tuple[Card, ...]) -> Iterator[tuple[Card, ...]]:
        for chosen in combinations(range(len(cards)), self.cards):
            after = list(cards)
            if all(self._take(after, at) for at in chosen):
                yield tuple(after)

    def _take(self, cards: list[Card], at: int) -> bool:
        uuid, slots, memory, cores = cards[at]
        wanted = self._totals[uuid] if self.memory is None else self.memory
        idle = slots == self._slots[uuid]
        if slots < 1 or memory < wanted or cores < self.cores or (self.cores == 100 and not idle):
            return False
        if self.cores == 0 and cores == 0:
            return False
        cards[at] = (uuid, slots - 1, memory - wanted, cores - self.cores)
        return True

    def start(
        self, nodes: dict[str, tuple[PlainNode, str]], told: dict[str, tuple[int, dict[str, int]]]
    ) -> None:
        """Start the pods as told, and fail where one does not start."""
        assert sum(pods for pods, _ in told.values()) == self.pods
        for name, (pods, taken) in told.items():
            (_, cpu, gpus, cards), kind = nodes[name]
            assert self.kind in (None, kind)
            assert cpu >= pods * self.cpu
            assert gpus >= pods * self.gpus
            left = list(cards)
            assert sum(taken.values()) == pods * self.cards
            for uuid, vgpus in taken.items():
                assert vgpus <= pods, "no card serves a pod twice"
                at = next(at for at, card in enumerate(left) if card[0] == uuid)
                assert all(self._take(left, at) for _ in range(vgpus))
            nodes[name] = (name, cpu - pods * self.cpu, gpus - pods * self.gpus, tuple(left)), kind


def walked(found: Snapshot, strategy: CardStrategy) -> tuple[list[str], PlacementWalk]:
    [pool] = order_snapshot(found)
    uids = [position.uid for position in pool.positions]
    return uids, walk(found, {"p": uids}, strategy)


@pytest.mark.parametrize(
    "seeds",
    [range(400), pytest.param(range(400, 20_400), marks=(pytest.mark.deep, pytest.mark.timeout(1800)))],
)
def test_a_walk_is_the_plain_walk_over_all_placements(seeds: range) -> None:
    seen = dict.fromkeys(FitVerdict, 0)
    for seed in seeds:
        document, with_cards = random_snapshot(seed)
        found = read_snapshot(document)
        uids, result = walked(found, Random(seed).choice(list(CardStrategy)))
        charged = with_card_shares(found)
        [pool] = charged.pools
        left = {name: amount - (1000 if name == "cpu" else 0) for name, amount in pool.capacity.items()}
        demands = {job.uid: job.demand for job in charged.jobs}
        nodes, empty = plain_nodes(document, empty=False), plain_nodes(document, empty=True)
        totals = {card[0]: card[2] for (_, _, _, cards), _ in empty.values() for card in cards}
        slots = slots_of(document)
        jobs = document["jobs"]
        assert isinstance(jobs, list)
        plain = {job["id"]: PlainPlacement(job, slots, with_cards=with_cards) for job in jobs}
        for uid in uids:
            fit, job, demand = result.jobs[uid], plain[uid], demands[uid]
            beyond = any(amount > pool.capacity[name] for name, amount in demand.items())
            full = any(amount > left[name] for name, amount in demand.items())
            if beyond or not job.fits(empty, totals):
                # A job that fits no empty node fits none in use either: the plain walk need not look.
                expected = FitVerdict.NEVER
            elif full:
                expected = FitVerdict.NO_QUOTA
            else:
                expected = FitVerdict.PLACED if job.fits(nodes, totals) else FitVerdict.NO_ROOM
            assert fit.answer is expected, (seed, uid, fit)
            assert fit.exact, (seed, uid)
            assert bool(fit.reasons) != (expected is FitVerdict.PLACED), (seed, uid)
            seen[expected] += 1
            if expected is FitVerdict.PLACED:
                job.start(nodes, {on.node: (on.pods, on.cards) for on in fit.nodes})
                for name, amount in demand.items():
                    left[name] -= amount
    assert (
        min(count for answer, count in seen.items() if answer is not FitVerdict.UNKNOWN) > len(seeds) // 20
    ), seen


def test_the_result_does_not_depend_on_the_order_of_nodes_and_jobs() -> None:
    for seed in range(cases()):
        document, _ = random_snapshot(seed)
        turned = dict(document)
        for key in ("nodes", "jobs"):
            entries = document[key]
            assert isinstance(entries, list)
            turned[key] = entries[::-1]
        strategy = list(CardStrategy)[seed % len(CardStrategy)]
        one, other = (walked(read_snapshot(found), strategy) for found in (document, turned))
        assert one == other, seed


def test_placed_jobs_never_use_more_than_a_node_or_card_has() -> None:
    """Sums alone are looked at, whatever the order of starting."""
    for seed in range(cases()):
        document, with_cards = random_snapshot(seed)
        _, result = walked(read_snapshot(document), CardStrategy.SPREAD)
        jobs = document["jobs"]
        assert isinstance(jobs, list)
        plain = {job["id"]: PlainPlacement(job, slots_of(document), with_cards=with_cards) for job in jobs}
        for name, ((_, cpu, gpus, cards), _) in plain_nodes(document, empty=False).items():
            here = [
                (plain[uid], on) for uid, fit in result.jobs.items() for on in fit.nodes if on.node == name
            ]
            assert sum(job.cpu * on.pods for job, on in here) <= cpu or not here, seed
            assert sum(job.gpus * on.pods for job, on in here) <= gpus, seed
            for uuid, slots, memory, cores in cards:
                held = [(job, on.cards.get(uuid, 0)) for job, on in here]
                assert sum(vgpus for _, vgpus in held) <= max(slots, 0), seed
                assert sum((job.memory or 0) * vgpus for job, vgpus in held) <= memory, seed
                assert sum(job.cores * vgpus for job, vgpus in held) <= cores, seed
