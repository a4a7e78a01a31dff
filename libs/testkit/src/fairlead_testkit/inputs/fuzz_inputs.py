"""Snapshots and policies that are right, nearly right, or broken: for fuzzing, by a generator of random numbers.

Made by structure: first a whole document with trees, modes, past use and gangs, small numbers among large ones; then, of
most, a few values replaced, moved, doubled or left out, or a few bytes changed. So what is wrong lies deep inside what is
right, where a parser that only sees noise never comes.
"""

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, date, datetime

type PlainDocument = dict[str, object]

NOW = 1_760_000_000
CLASSES = ["urgent", "approved", "normal"]
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
LEAVES = ("ada", "bob", "cyd", "dan")

NUMBERS: tuple[object, ...] = (
    *(None, True, False, -1, 0, 1, 0.1, -0.0, 1e-9, 5e-324, 1e9, 1e308, -1e308),
    *(float("nan"), float("inf"), float("-inf"), 2**31, 2**53 + 1, 2**60, 2**60 + 1),
    *(2**62, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, 253_402_300_799, 253_402_300_800),
)
WORDS: tuple[object, ...] = (
    *(
        "",
        " ",
        "NaN",
        "-1",
        "1e999",
        "1e-30",
        "0x10",
        "1Ei",
        "9999Pi",
        "500m",
        "64Gi",
        ".",
        "1.",
        "+3",
        "1e3Ki",
    ),
    *("\ud800", "\x00", "a\nb", "\N{COMBINING ACUTE ACCENT}", "x" * 600, "٣", "true", "null"),
    *("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00", "2026-11-21", "2026-02-30T00:00:00Z"),
    *("ada", "org", "east", "urgent", "additive", "hdrf", "drf", "wdrf", "reserve", "cpu"),
)
NESTED: tuple[object, ...] = ([], {}, [[]], {"": 1}, [None], {"cpu": {}}, [{"name": "ada"}], ["x", "x"])
ONLY_YAML: tuple[object, ...] = (
    *(
        date(2026, 11, 21),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        b"\xff",
        {1, 2},
        {None: 1},
        {2.5: "x"},
    ),
    *({("a", "b"): 1}, {date(2026, 1, 1): {}}),
)


def seldom(rng: random.Random) -> bool:
    """Draws whether to do something seldom: one time in three."""
    return not rng.randrange(3)


# Whole documents ------------------------------------------------------------------------------------------------------


def a_policy(rng: random.Random) -> PlainDocument:
    """A policy document that is right."""
    mode = rng.choice(["strict", "strict", "additive", "multiplicative", "drf", "wdrf"])
    policy: PlainDocument = {
        "aging": {
            "entitlement_per_day": rng.choice([0, 0.06, 0.1, 1e9]),
            "cap_days": rng.choice([None, 1, 1e5]),
        },
        "window": rng.choice([1, 2, 32]),
        "tenants": [{"name": "ada", "weight": rng.choice([0, 0.1, 1e-6, 1e9, 3])}],
        "half_life_hours": 24,
        "unlisted_weight": rng.choice([0, 1, 0.3]),
    }
    if seldom(rng):
        policy["resource_weights"] = {rng.choice(RESOURCES): rng.choice([0, 1e-6, 2.5, 1e9])}
    if seldom(rng):
        policy["fit"] = {"strategy": rng.choice(["binpack", "spread"])}
    if seldom(rng):
        policy |= {"mode": "reserve", "reserve": {"reaction_seconds": rng.choice([1, 20, 3600])}}
    if seldom(rng):
        policy["hierarchy"] = {"mode": "hdrf", "minimum": rng.choice(["nonzero", "live"])}
    if mode != "strict":
        policy["class_mode"] = mode
    if mode in {"additive", "multiplicative"}:
        weights = sorted(rng.choices([1, 0.5, 1000, 1e9], k=len(CLASSES)), reverse=mode == "multiplicative")
        policy["class_weights"] = dict(zip(CLASSES, weights, strict=True))
    if seldom(rng):
        policy["grants"] = [{"tenant": "ada", "classes": ["urgent"], "priority_override": mode != "strict"}]
    return policy


def a_snapshot(rng: random.Random) -> PlainDocument:
    """A snapshot that is right."""
    policy = a_policy(rng)
    strict = "class_mode" not in policy
    pools = ["east", "west"][: rng.randint(1, 2)]
    tenants: list[PlainDocument] = [{"name": name, "weight": rng.choice([0, 1, 2, 0.3])} for name in LEAVES]
    for tenant in tenants[: rng.choice([0, 0, 2, 4])]:
        tenant["parent"] = "org"
    if any("parent" in tenant for tenant in tenants):
        tenants.append({"name": "org", "parent": "top"} if seldom(rng) else {"name": "org"})
        if "parent" in tenants[-1]:
            tenants.append({"name": "top"})
    if len(pools) == 1 and seldom(rng):
        rng.choice(tenants)["past_use"] = _amounts(rng)
    classes = ["urgent", "normal"] if policy.get("class_mode") == "drf" else CLASSES
    nodes = [_node(rng, f"n{number}") for number in range(rng.randint(1, 3))] if seldom(rng) else []
    fractions = any("cards" in node for node in nodes)
    jobs = [
        _job(rng, f"j{number}", pools, strict=strict, fractions=fractions and seldom(rng))
        for number in range(rng.randint(0, 6))
    ]
    running = [_running(rng, f"r{number}", pools) for number in range(rng.randint(0, 3))]
    for one in (*jobs, *running):
        one["class"] = rng.choice(classes)
    jobs += [job | {"id": f"{job['id']}-again"} for job in jobs if seldom(rng)]
    rng.shuffle(jobs)
    queues = _queues(rng, jobs) if seldom(rng) else {}
    if len(pools) == 1 and not seldom(rng):
        for one in (*jobs, *running):
            del one["pool"]
    document: PlainDocument = {
        "now": rng.choice([NOW, NOW + 0.5, "2026-11-21T12:00:00Z"]),
        "policy": policy,
        "pools": [
            {"name": name, "capacity": {r: rng.choice([0, 4, "10", 2**40]) for r in RESOURCES}}
            for name in pools
        ],
        "tenants": tenants,
        "running": running,
        "jobs": jobs,
    }
    return queues | document | ({"nodes": nodes} if nodes else {})


def _node(rng: random.Random, name: str) -> PlainDocument:
    allocatable: PlainDocument = {
        "cpu": rng.choice([0, 4, "7500m", 96]),
        "memory": "8Gi",
        "nvidia.com/gpu": rng.choice([0, 2, 10]),
    }
    node: PlainDocument = {"name": name, "allocatable": allocatable}
    if seldom(rng):
        node |= {
            "labels": {"kind": rng.choice(["fast", "slow"])},
            "used": {"cpu": rng.choice([0, 1, "500m"])},
        }
    if seldom(rng):
        used = rng.choice([{}, {"used": {"count": 1, "memory": 4, "cores": 30}}])
        node["cards"] = [
            {"uuid": f"{name}-{at}", "memory": 8, "count": 2, **used} for at in range(rng.randint(0, 2))
        ]
    return node


def _queues(rng: random.Random, jobs: list[PlainDocument]) -> PlainDocument:
    """Queues that these jobs stand in, all of them, and what their cluster says of classes."""
    used = sorted({(str(job["pool"]), str(job.get("frontend", "")), str(job["queue"])) for job in jobs})
    queues: list[PlainDocument] = []
    for pool, frontend, name in used:
        queue: PlainDocument = {"name": name, "pool": pool, "bands_by_class": not seldom(rng)}
        if frontend:
            queue["frontend"] = frontend
        if seldom(rng):
            queue |= {
                "default_level": rng.choice([0, 2]),
                "lowest_level": 3,
                "highest_level": rng.choice([3, 99]),
            }
        queues.append(queue)
    values = (
        [{"class": "urgent", "value": rng.choice([-7, 1, 2000, 10**6])}] if queues and seldom(rng) else []
    )
    return {"queues": queues, "class_values": values}


def _amounts(rng: random.Random) -> PlainDocument:
    choices: list[object] = [0, 1, 2, 0.5, "500m", "3", "64Gi", 2**40, 10**15]
    return {name: rng.choice(choices) for name in RESOURCES if not seldom(rng)}


def _running(rng: random.Random, name: str, pools: list[str]) -> PlainDocument:
    return {
        "id": name,
        "tenant": rng.choice(LEAVES),
        "pool": rng.choice(pools),
        "demand": _amounts(rng),
        "started": NOW - rng.randrange(10_000),
        **({"ends": NOW + rng.choice([-5, 600])} if seldom(rng) else {}),
    }


def _job(rng: random.Random, name: str, pools: list[str], *, strict: bool, fractions: bool) -> PlainDocument:
    job = _running(rng, name, pools)
    started = job.pop("started")
    job.pop("ends", None)
    job |= {"submitted": started, "queue": rng.choice(["p", "q"]), "level": rng.choice([0, 0, 1, 7, -3])}
    if seldom(rng):
        job["gang"] = {"pods": rng.choice([1, 4])}
    elif seldom(rng):
        job |= _shaped(rng, fractions=fractions)
    if seldom(rng):
        job["runtime_limit"] = rng.choice([0, 60, 3600.5, 10**9])
    if seldom(rng):
        job |= {"frontend": rng.choice(["kueue", "slurm", "sim"]), "queue_time": NOW - rng.randrange(9)}
    if not strict and seldom(rng):
        job["priority_override"] = rng.choice([1, 0.5, 1e9])
    return job


def _shaped(rng: random.Random, *, fractions: bool) -> PlainDocument:
    """A demand, and pods that come to it."""
    pods, cpu, cards = rng.choice([1, 2, 3]), rng.choice([0, 1, 2]), rng.choice([0, 1, 2])
    per_pod: PlainDocument = {"cpu": cpu, "nvidia.com/gpu": cards}
    if cards and fractions:
        per_pod |= {"nvidia.com/gpumem": rng.choice([1, 5]), "nvidia.com/gpucores": rng.choice([0, 30, 100])}
    gang: PlainDocument = {"pods": pods, "per_pod": per_pod}
    if seldom(rng):
        gang["selector"] = {"kind": "fast"}
    return {"gang": gang, "demand": {"cpu": cpu * pods, "nvidia.com/gpu": cards * pods}}


# Broken values ----------------------------------------------------------------------------------------------------


def mangle(rng: random.Random, document: PlainDocument, *, as_yaml: bool = False) -> None:
    """Replaces, moves, doubles, renames or leaves out a few values, in place."""
    pool = (*NUMBERS, *WORDS, *NESTED, *(ONLY_YAML if as_yaml else ()))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        slots = list(_slots(document))
        if not slots:
            return
        slot = rng.choice(slots)
        match rng.choice(
            ["other", "other", "other", "other", "gone", "moved", "more", "more", "alike", "alike"]
        ):
            case "other":
                slot.put(rng.choice(pool))
            case "alike":
                _put_alike(rng, document, rng.choice([rng.choice(pool), "nowhere"]))
            case "gone":
                slot.drop()
            case "moved":
                slot.put(rng.choice(slots).value)
            case _:
                slot.add(rng.choice([*WORDS, None, 7, 2.5, True] if as_yaml else WORDS))


def _put_alike(rng: random.Random, document: PlainDocument, value: object) -> None:
    """Breaks all entries of a list in the same way: what was learned from one of them is used for the next."""
    lists = [part for part in document.values() if isinstance(part, list) and part]
    if not lists:
        return
    found = [entry for entry in rng.choice(lists) if isinstance(entry, dict)]
    names = sorted({name for entry in found for name in entry if isinstance(name, str)})
    name = rng.choice([*names, *["pool"] * max(1, len(names))])
    for entry in found:
        entry[name] = deepcopy(value)


@dataclass(frozen=True)
class _Slot:
    """A value inside a document."""

    holder: dict[object, object] | list[object]
    key: object

    @property
    def value(self) -> object:
        return self.holder[self.key] if isinstance(self.holder, dict) else self.holder[self._at]

    @property
    def _at(self) -> int:
        return self.key if isinstance(self.key, int) else 0

    def put(self, value: object) -> None:
        if isinstance(self.holder, dict):
            self.holder[self.key] = deepcopy(value)
        else:
            self.holder[self._at] = deepcopy(value)

    def drop(self) -> None:
        if isinstance(self.holder, dict):
            del self.holder[self.key]
        else:
            del self.holder[self._at]

    def add(self, word: object) -> None:
        """Adds the value once more under another name; in a list, a second time."""
        if isinstance(self.holder, dict):
            self.holder[word] = deepcopy(self.value)
        else:
            self.holder.insert(0, deepcopy(self.value))


def _slots(found: object) -> Iterator[_Slot]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield _Slot(found, key)
            yield from _slots(value)
    elif isinstance(found, list):
        for at, value in enumerate(found):
            yield _Slot(found, at)
            yield from _slots(value)


def scramble(rng: random.Random, payload: bytes) -> bytes:
    """The text with a few bytes changed, left out, doubled or cut off."""
    found = bytearray(payload)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(5):
            case 0:
                found[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[at : at + rng.choice([1, 2, 30])]
            case 2:
                found[at:at] = found[at : at + rng.choice([1, 3, 40])]
            case 3:
                found[at:at] = rng.choice(
                    [b"-", b"e9", b"0", b"9" * 25, b'"', b"{", b"]", b",", b"\\u0000", b"NaN"]
                )
            case _ if seldom(rng):
                del found[at:]
    return bytes(found)
