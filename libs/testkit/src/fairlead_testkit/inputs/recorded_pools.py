"""Pools of every kind of policy, by seed: what the bytes of orders, levels and explanations are recorded of.

A case is a snapshot in plain values. Kinds are made one upon another: a flat pool of some tenants, and what a policy or
a cluster may add to it. A kind that is changed here changes what is recorded of it: better add another.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from fairlead_testkit.inputs.fuzz_inputs import PlainDocument, a_snapshot

NOW = 1_760_000_000
GPU = "nvidia.com/gpu"
DAY = 86_400
CLASSES = ("urgent", "approved", "normal")
NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "jon")


class RecordedPool(NamedTuple):
    """A recorded case: a snapshot with a name."""

    name: str
    """The kind and a number."""
    snapshot: PlainDocument


type PoolChange = Callable[[random.Random, PlainDocument], None]


def recorded_pools() -> Iterator[RecordedPool]:
    """Yields all cases, the same each time."""
    for kind, (count, changes) in KINDS.items():
        for number in range(count):
            yield recorded_pool(kind, number, changes)


def recorded_pool(kind: str, number: int, changes: tuple[PoolChange, ...]) -> RecordedPool:
    """The case of a kind with this number."""
    rng = random.Random(f"{kind}-{number}")  # noqa: S311 # a workload, no secret
    if not changes:
        return RecordedPool(f"{kind}-{number:02}", a_snapshot(rng))
    snapshot = flat(rng)
    for change in changes:
        change(rng, snapshot)
    return RecordedPool(f"{kind}-{number:02}", snapshot)


def flat(rng: random.Random) -> PlainDocument:
    """A pool with tenants side by side and strict classes."""
    tenants = NAMES[: rng.randint(2, 8)]
    return {
        "now": NOW,
        "policy": {
            "aging": {"entitlement_per_day": rng.choice([0.1, 0.1, 0.5, 3])},
            "window": rng.choice([3, 8, 32]),
        },
        "pools": [{"name": "east", "capacity": {"cpu": 64, "memory": "512Gi", GPU: rng.choice([8, 16])}}],
        "tenants": [{"name": name, "weight": rng.choice([1, 1, 2, 3, 0.3])} for name in tenants],
        "running": [_run(rng, f"r{number}", tenants) for number in range(rng.randint(0, 8))],
        "jobs": [_job(rng, f"j{number}", tenants) for number in range(rng.randint(4, 30))],
    }


def _demand(rng: random.Random) -> PlainDocument:
    return rng.choice(
        [
            {GPU: rng.choice([1, 1, 2, 4]), "cpu": rng.choice([2, 4])},
            {"cpu": rng.choice([1, 4, 8]), "memory": rng.choice(["4Gi", "32Gi"])},
            {GPU: 1, "cpu": "500m", "memory": "1Gi"},
        ]
    )


def _run(rng: random.Random, name: str, tenants: tuple[str, ...]) -> PlainDocument:
    started = NOW - rng.randrange(2 * DAY)
    return {"id": name, "tenant": rng.choice(tenants), "demand": _demand(rng), "started": started}


def _job(rng: random.Random, name: str, tenants: tuple[str, ...]) -> PlainDocument:
    return {
        "id": name,
        "tenant": rng.choice(tenants),
        "class": rng.choice([*CLASSES, "normal", "normal", "normal"]),
        "submitted": NOW - rng.randrange(4 * DAY),
        "demand": _demand(rng),
        "frontend": "sim",
        "queue": rng.choice(["main", "main", "side"]),
        "level": rng.choice([0, 0, 0, 1, 5, 9]),
    }


def chance(rng: random.Random, part: float) -> bool:
    """Draws whether to: true in that part of all cases."""
    return rng.random() < part


# What a kind adds -----------------------------------------------------------------------------------------------------


def entries(snapshot: PlainDocument, key: str) -> list[PlainDocument]:
    """A list of a snapshot."""
    return cast("list[PlainDocument]", snapshot.setdefault(key, []))


def policy(snapshot: PlainDocument) -> PlainDocument:
    """The policy of a snapshot."""
    return cast("PlainDocument", snapshot["policy"])


def plain(_: random.Random, __: PlainDocument) -> None:
    """Changes nothing."""


def large(rng: random.Random, snapshot: PlainDocument) -> None:
    """Gives the pool some hundred jobs: more than is served in one block."""
    names = tuple(str(one["name"]) for one in entries(snapshot, "tenants"))
    snapshot["jobs"] = [_job(rng, f"j{number}", names) for number in range(600)]


def tied(rng: random.Random, snapshot: PlainDocument) -> None:
    """Jobs alike but for their ids, submitted in the same seconds."""
    for job in entries(snapshot, "jobs"):
        job |= {"submitted": NOW - DAY * rng.choice([0, 1]), "demand": {GPU: 1}, "class": "normal"}
    for tenant in entries(snapshot, "tenants"):
        tenant["weight"] = rng.choice([1, 2])


def tree(rng: random.Random, snapshot: PlainDocument) -> None:
    """Tenants below others, to two levels; some stay alone."""
    tenants = entries(snapshot, "tenants")
    for tenant in tenants:
        parent = rng.choice(["org-a", "org-b", "team-x", None])
        if parent is not None:
            tenant["parent"] = parent
    tenants += [
        {"name": "org-a", "weight": 2},
        {"name": "org-b", "weight": rng.choice([1, 0.5])},
        {"name": "team-x", "parent": "org-a"},
    ]


def hdrf(rng: random.Random, snapshot: PlainDocument) -> None:
    """Has shares rescaled after H-DRF."""
    policy(snapshot)["hierarchy"] = {"mode": "hdrf", "minimum": rng.choice(["nonzero", "live"])}


def saturated(rng: random.Random, snapshot: PlainDocument) -> None:
    """Has the pool say what is used up."""
    entries(snapshot, "pools")[0]["saturated"] = rng.choice([[], [GPU], ["cpu", GPU]])


def modes(rng: random.Random, snapshot: PlainDocument) -> None:
    """Classes as terms or as factors, some jobs with a priority of their own."""
    mode = rng.choice(["additive", "multiplicative", "wdrf", "drf"])
    policy(snapshot)["class_mode"] = mode
    if mode in {"additive", "multiplicative"}:
        weights = [0.0, 0.2, 1.0] if mode == "additive" else [100.0, 10.0, 1.0]
        policy(snapshot)["class_weights"] = dict(zip(CLASSES, weights, strict=True))
    for job in entries(snapshot, "jobs"):
        if mode == "drf" and job["class"] == "approved":
            job["class"] = "normal"
        if chance(rng, 0.15):
            job["priority_override"] = rng.choice([0.5, 1, 50])


def capped(rng: random.Random, snapshot: PlainDocument) -> None:
    """Has waiting count up to a cap."""
    aging = cast("PlainDocument", policy(snapshot)["aging"])
    aging["cap_days"] = rng.choice([0.5, 1, 2])


def ageless(_: random.Random, snapshot: PlainDocument) -> None:
    """Has waiting count for nothing."""
    policy(snapshot)["aging"] = {"entitlement_per_day": 0}


def past_use(rng: random.Random, snapshot: PlainDocument) -> None:
    """Has what was used of late count."""
    policy(snapshot)["half_life_hours"] = rng.choice([1, 24])
    for tenant in entries(snapshot, "tenants"):
        if chance(rng, 0.5):
            tenant["past_use"] = {GPU: rng.choice([0.5, 3, 12.25]), "cpu": rng.choice([0, 7])}


def weightless(rng: random.Random, snapshot: PlainDocument) -> None:
    """Weights of 0, and resources that do not count."""
    for tenant in entries(snapshot, "tenants"):
        if chance(rng, 0.4):
            tenant["weight"] = 0
    policy(snapshot)["resource_weights"] = {"memory": 0, "cpu": rng.choice([0, 0.5, 2])}


def boundless(rng: random.Random, snapshot: PlainDocument) -> None:
    """Jobs ask for, and tenants hold, what the pool has none of; some ask for more than there is."""
    capacity = cast("PlainDocument", entries(snapshot, "pools")[0]["capacity"])
    capacity["tpu"] = 0
    for one in (*entries(snapshot, "jobs"), *entries(snapshot, "running")):
        if chance(rng, 0.2):
            one["demand"] = rng.choice([{"tpu": 1}, {"tpu": 2, GPU: 1}, {GPU: 999}])


def unlisted(rng: random.Random, snapshot: PlainDocument) -> None:
    """Makes some tenants unnamed by the policy."""
    policy(snapshot)["unlisted_weight"] = rng.choice([1, 0.3, None])
    policy(snapshot)["expected_unlisted"] = rng.choice([1, 5])
    for tenant in entries(snapshot, "tenants"):
        if chance(rng, 0.4):
            del tenant["weight"]
            tenant["unlisted"] = True


def by_weight(_: random.Random, snapshot: PlainDocument) -> None:
    """Has tags be over the weights as they stand."""
    policy(snapshot)["divide_by"] = "weight"


def two_pools(rng: random.Random, snapshot: PlainDocument) -> None:
    """Tenants are spread over two pools, one is in both."""
    snapshot["pools"] = [
        {"name": name, "capacity": {"cpu": 64, "memory": "512Gi", GPU: 8}} for name in ("east", "west")
    ]
    stands = {str(one["name"]): rng.choice(["east", "west"]) for one in entries(snapshot, "tenants")}
    for one in (*entries(snapshot, "jobs"), *entries(snapshot, "running")):
        name = str(one["tenant"])
        one["pool"] = rng.choice(["east", "west"]) if name == "ada" else stands[name]
    snapshot["tenants"] = [
        one if one["name"] == "ada" else one | {"pool": stands[str(one["name"])]}
        for one in entries(snapshot, "tenants")
    ]


def queues(rng: random.Random, snapshot: PlainDocument) -> None:
    """Queues of Kueue with bands by class, some of which may preempt."""
    for name in ("main", "side"):
        entries(snapshot, "queues").append(
            {
                "name": name,
                "frontend": "kueue",
                "bands_by_class": True,
                "preemption": {
                    "withinClusterQueue": rng.choice(["Never", "Never", "Never", "LowerPriority"])
                },
            }
        )
    snapshot["class_values"] = [
        {"class": "urgent", "value": rng.choice([5_000_000, 1_000_000])},
        {"class": "approved", "value": 1_000},
    ]
    for job in entries(snapshot, "jobs"):
        job |= {
            "frontend": "kueue",
            "queue_time": NOW - rng.randrange(DAY),
            "uid": f"u{rng.randrange(10**9)}",
        }


def slurm(rng: random.Random, snapshot: PlainDocument) -> None:
    """Jobs of Slurm: numbers and arrays, with ties by number."""
    for number, job in enumerate(entries(snapshot, "jobs")):
        job |= {"id": f"{90 + number // 3}_{number}", "frontend": "slurm", "level": rng.choice([0, 1, 2])}
        job["submitted"] = NOW - rng.choice([0, 60, 120])


def nodes(rng: random.Random, snapshot: PlainDocument) -> None:
    """Nodes, gangs and a strategy to place them by."""
    policy(snapshot)["fit"] = {"strategy": rng.choice(["binpack", "spread"])}
    for number in range(rng.randint(2, 5)):
        node: PlainDocument = {
            "name": f"n{number}",
            "allocatable": {"cpu": 16, "memory": "128Gi", GPU: rng.choice([0, 2, 4])},
            "used": {"cpu": rng.choice([0, 4])},
            "labels": {"zone": rng.choice(["a", "b"]), "gpu": rng.choice(["a30", "h100"])},
        }
        if chance(rng, 0.3):
            node["taints"] = ["dedicated=ml:NoSchedule"]
        entries(snapshot, "nodes").append(node)
    for job in entries(snapshot, "jobs"):
        job.update(_gang(rng))


def _gang(rng: random.Random) -> PlainDocument:
    pods, cards = rng.choice([1, 1, 2, 4]), rng.choice([0, 1, 2, 5])
    gang: PlainDocument = {"pods": pods, "per_pod": {"cpu": 2, GPU: cards}}
    if chance(rng, 0.3):
        gang["selector"] = {"gpu": rng.choice(["a30", "h100", "b200"])}
    if chance(rng, 0.3):
        gang["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if chance(rng, 0.2):
        gang["zone_key"] = "zone"
    return {"gang": gang, "demand": {"cpu": 2 * pods, GPU: cards * pods}}


def cards(rng: random.Random, snapshot: PlainDocument) -> None:
    """Cards after HAMi, and jobs that ask for parts of them."""
    for number in range(2):
        used = rng.choice([{}, {"used": {"count": 1, "memory": 6000, "cores": 30}}])
        entries(snapshot, "nodes").append(
            {
                "name": f"h{number}",
                "allocatable": {"cpu": 64, GPU: 20},
                "used": {},
                "cards": [
                    {"uuid": f"GPU-{number}-{at}", "memory": 24576, "type": "NVIDIA A30", **used}
                    for at in range(2)
                ],
            }
        )
    for job in entries(snapshot, "jobs"):
        asked = rng.choice(
            [{GPU: 1}, {GPU: 1, "nvidia.com/gpumem": 8000}, {GPU: 2, "nvidia.com/gpumem-percentage": 40}]
        )
        job.pop("gang", None)
        job["demand"] = {"cpu": 1, **asked}


def reserve(rng: random.Random, snapshot: PlainDocument) -> None:
    """The first that does not fit is promised a start; others may pass it."""
    policy(snapshot).update({"mode": "reserve", "reserve": {"reaction_seconds": rng.choice([1, 20])}})
    for run in entries(snapshot, "running"):
        if chance(rng, 0.8):
            run["ends"] = NOW + rng.choice([-60, 600, 7200])
    for job in entries(snapshot, "jobs"):
        job["queue"] = "main"
        if chance(rng, 0.7):
            job["runtime_limit"] = rng.choice([60, 600, 3600])


KINDS: dict[str, tuple[int, tuple[PoolChange, ...]]] = {
    "flat": (20, (plain,)),
    "flat-large": (4, (large,)),
    "flat-tied": (10, (tied,)),
    "flat-capped": (10, (capped,)),
    "flat-ageless": (6, (ageless,)),
    "flat-past": (10, (past_use,)),
    "flat-weightless": (10, (weightless,)),
    "flat-boundless": (10, (boundless,)),
    "flat-unlisted": (8, (unlisted,)),
    "flat-by-weight": (6, (by_weight,)),
    "flat-pools": (6, (two_pools,)),
    "flat-modes": (14, (modes,)),
    "flat-modes-all": (10, (modes, capped, past_use, boundless, weightless)),
    "tree": (20, (tree,)),
    "tree-large": (4, (large, tree)),
    "tree-tied": (8, (tied, tree)),
    "tree-capped": (8, (tree, capped)),
    "tree-all": (12, (capped, past_use, boundless, tree, weightless)),
    "tree-modes": (12, (tree, modes)),
    "tree-modes-all": (10, (capped, boundless, tree, past_use, modes)),
    "tree-pools": (6, (two_pools, tree)),
    "hdrf": (14, (tree, hdrf)),
    "hdrf-flat": (6, (hdrf,)),
    "hdrf-large": (2, (large, tree, hdrf)),
    "hdrf-saturated": (8, (tree, hdrf, saturated)),
    "hdrf-all": (10, (capped, past_use, boundless, tree, hdrf, modes)),
    "queues": (12, (queues,)),
    "queues-tree": (6, (queues, tree)),
    "queues-modes": (6, (queues, modes)),
    "slurm": (8, (slurm,)),
    "nodes": (12, (nodes,)),
    "nodes-tree": (6, (nodes, tree)),
    "cards": (10, (cards,)),
    "cards-nodes": (8, (nodes, cards)),
    "reserve": (14, (reserve,)),
    "reserve-nodes": (8, (nodes, reserve)),
    "reserve-tree": (6, (reserve, tree)),
    "reserve-queues": (6, (reserve, queues)),
    "wild": (30, ()),
}
"""Number of cases of each kind, and what they add to a flat pool; without anything, from the wild ones of
`fuzz_inputs`."""
