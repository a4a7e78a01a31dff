"""Snapshots in order, against brute force, and levels against the planner."""

import random
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.figures import duration, percent
from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotJob,
    SnapshotPool,
    SnapshotQueue,
    SnapshotRunning,
    SnapshotTenant,
)
from fairlead_policy.explain.reasons import terms_in_words
from fairlead_policy.levels.plan import LabelledJob, plan_levels
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.levels import PLAIN_BAND, plan_snapshot_levels, steering_of, window_of
from fairlead_policy.snapshot.ordering import order_snapshot, policy_of
from fairlead_testkit.inputs.builders import (
    NOW,
    a_document,
    a_position,
)
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.oracle import OracleJob, OracleRules, fill

TENANTS = ("ada", "bob", "cyd", "dan")
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
POOLS = ("east", "west")


def demand_of(rng: random.Random) -> dict[str, int]:
    return {name: rng.randint(1, 3000) for name in RESOURCES if rng.random() < 0.6}


def snapshot_by(rng: random.Random) -> Snapshot:
    policy = PolicyDocument(
        classes=["urgent", "normal"],
        window=rng.randint(1, 5),
        tenants=[Tenant(name="ada", weight=rng.choice([0.0, 0.1, 2.0]))],
    )
    names = list(range(rng.randint(0, 14)))
    rng.shuffle(names)
    return Snapshot(
        now=500 * HOUR,
        policy=policy,
        pools=[
            SnapshotPool(name=name, capacity={r: rng.choice([0, 1000, 4000, 10_000]) for r in RESOURCES})
            for name in POOLS
        ],
        tenants=[
            SnapshotTenant(name=name, weight=rng.choice([None, 0.0, 0.3, 1.0, 3.0])) for name in TENANTS
        ],
        running=[
            SnapshotRunning(
                id=f"r{number}",
                tenant=rng.choice(TENANTS),
                pool=rng.choice(POOLS),
                job_class="normal",
                demand=demand_of(rng),
            )
            for number in range(rng.randint(0, 4))
        ],
        jobs=[
            SnapshotJob(
                id=f"j{name}",
                uid=f"j{name}",
                tenant=rng.choice(TENANTS),
                pool=rng.choice(POOLS),
                job_class=rng.choice(policy.classes),
                demand=demand_of(rng),
                submitted=rng.randint(0, 500) * HOUR,
                queue_time=rng.randint(0, 5) * SECOND,
                queue=rng.choice(["", "q"]),
                level=rng.choice([0, 0, 1, 5, 9]),
            )
            for name in names
        ],
    )


rngs = st.integers(0, 2**32).map(random.Random)
snapshots = rngs.map(snapshot_by)


def brute_force(snapshot: Snapshot, pool: SnapshotPool) -> list[tuple[str, Fraction | None, Fraction | None]]:
    listed = {tenant.name: tenant.weight for tenant in snapshot.policy.tenants}
    document = msgspec.structs.replace(
        snapshot.policy,
        tenants=[
            Tenant(name=one.name, weight=listed.get(one.name, 1.0) if one.weight is None else one.weight)
            for one in snapshot.tenants
        ],
    )
    use: dict[str, dict[str, int]] = {}
    for running in snapshot.running:
        if running.pool == pool.name:
            held = use.setdefault(running.tenant, {})
            for resource, amount in running.demand.items():
                held[resource] = held.get(resource, 0) + amount
    jobs = [
        OracleJob(
            uid=job.uid,
            tenant=job.tenant,
            job_class=job.job_class,
            submitted=job.submitted,
            demand=job.demand,
        )
        for job in snapshot.jobs
        if job.pool == pool.name
    ]
    served = fill(jobs, OracleRules.of(document, pool.capacity), snapshot.now, use)
    return [(position.uid, position.tag, position.key) for position in served]


@given(snapshots)
@settings(max_examples=cases())
def test_the_order_of_a_snapshot_is_that_of_progressive_filling(snapshot: Snapshot) -> None:
    for pool, ordered in zip(snapshot.pools, order_snapshot(snapshot), strict=True):
        expected = brute_force(snapshot, pool)
        assert [position.uid for position in ordered.positions] == [uid for uid, *_ in expected]
        for position, (_, tag, key) in zip(ordered.positions, expected, strict=True):
            assert position.unbounded == (tag is None)
            if tag is not None and key is not None:
                assert (position.tag, position.key) == (float(tag), float(key))


@given(snapshots, rngs)
@settings(max_examples=cases())
def test_the_order_of_the_lists_changes_nothing(snapshot: Snapshot, rng: random.Random) -> None:
    def shuffled(snapshot: Snapshot) -> Snapshot:
        lists = {name: list(getattr(snapshot, name)) for name in ("pools", "tenants", "running", "jobs")}
        for entries in lists.values():
            rng.shuffle(entries)
        return msgspec.structs.replace(snapshot, **lists)

    def whole(snapshot: Snapshot) -> bytes:
        pools = order_snapshot(snapshot)
        plans = [plan_snapshot_levels(pool, snapshot.jobs, snapshot.policy.window) for pool in pools]
        return msgspec.json.encode(
            (
                [(pool.name, list(pool.positions), sorted(pool.standings)) for pool in pools],
                [plan.writes for plan in plans],
            )
        )

    assert whole(shuffled(snapshot)) == whole(snapshot)


@given(snapshots)
@settings(max_examples=cases())
def test_the_writes_are_those_of_the_planner(snapshot: Snapshot) -> None:
    window = snapshot.policy.window
    by_uid = {job.uid: job for job in snapshot.jobs}
    for ordered in order_snapshot(snapshot):
        labelled = [
            LabelledJob(
                uid=position.uid,
                level=by_uid[position.uid].level,
                tie=(by_uid[position.uid].queue_time, position.uid),
            )
            for position in ordered.positions
        ]
        # Of each queue, jobs that can start and others.
        queues = [(by_uid[one.uid].queue, one.uid in ordered.apart) for one in ordered.positions]
        end = next(
            (
                at + 1
                for at, queue in enumerate(queues)
                if not queue[1] and queues[: at + 1].count(queue) == window and queue in queues[at + 1 :]
            ),
            len(queues),
        )
        inside = [at for at, queue in enumerate(queues[:end]) if queues[:at].count(queue) < window]
        front = [labelled[at] for at in inside]
        expected = plan_levels(front, [job for job in labelled if job not in front], PLAIN_BAND)
        found = plan_snapshot_levels(ordered, snapshot.jobs, window)
        assert found.writes == expected.writes
        after = {job.uid: (-found.levels[job.uid], job.tie) for job in labelled}
        assert sorted(after, key=after.__getitem__)[: len(front)] == [job.uid for job in front]


def waiting(uid: str, **changes: object) -> SnapshotJob:
    plain = SnapshotJob(
        id=uid,
        uid=uid,
        tenant="ada",
        pool="east",
        job_class="normal",
        demand={"cpu": 1},
        submitted=0,
        queue_time=0,
    )
    return msgspec.structs.replace(plain, **changes)


def test_each_frontend_is_steered_by_itself() -> None:
    late, early = waiting("a", cluster="c1", queue_time=9), waiting("b", cluster="c2", queue_time=1)
    snapshot = Snapshot(
        now=SECOND, policy=PolicyDocument(), pools=[SnapshotPool(name="east", capacity={"cpu": 10})],
        tenants=[SnapshotTenant(name="ada")], jobs=[late, early],
    )  # fmt: skip
    [pool] = order_snapshot(snapshot)
    assert [position.uid for position in pool.positions] == ["a", "b"]
    assert plan_snapshot_levels(pool, snapshot.jobs, 32).writes == []
    together = [msgspec.structs.replace(job, cluster="") for job in snapshot.jobs]
    assert len(plan_snapshot_levels(pool, together, 32).writes) == 1


def test_the_window_ends_where_a_queue_has_more_waiting_than_are_labelled() -> None:
    jobs = [waiting(f"j{number}", queue="q" if number % 2 else "p") for number in range(10)]
    assert window_of(jobs, 2) == jobs[:3]
    assert window_of(jobs, 5) == jobs
    assert window_of([], 2) == []


def test_jobs_that_cannot_start_fill_no_window_on_paper_and_whom_no_flavor_takes_gets_no_level() -> None:
    """As services have it: others than these are labelled in their stead, and of each queue as many of these beside."""
    large = [waiting(f"l{number}", demand={"cpu": 99}, queue_time=9) for number in range(4)]
    stuck = waiting("stuck", flavorless=True, submitted=1, queue_time=9)
    others = [waiting(f"j{number}", submitted=2, queue_time=9 - number) for number in range(4)]
    snapshot = Snapshot(
        now=SECOND,
        policy=PolicyDocument(),
        pools=[SnapshotPool(name="east", capacity={"cpu": 10})],
        tenants=[SnapshotTenant(name="ada")],
        jobs=[*large, stuck, *others],
    )
    [pool] = order_snapshot(snapshot)
    ordered = [next(job for job in snapshot.jobs if job.uid == one.uid) for one in pool.positions]
    assert [job.uid for job in window_of(ordered, 2, pool.apart)] == ["l0", "l1", "j0", "j1"]
    levels = plan_snapshot_levels(pool, snapshot.jobs, 2).levels
    assert {uid for uid, level in levels.items() if level} == {"l0", "l1", "j0", "j1"}


def in_bands(*queues: SnapshotQueue, values: dict[str, int] | None = None, **policy: object) -> Snapshot:
    """Two urgent and two normal jobs in each of two clusters, each pair the wrong way round."""
    jobs = [
        waiting(
            f"{cluster}-{job_class}-{number}",
            cluster=cluster,
            frontend="kueue",
            queue="q",
            job_class=job_class,
        )
        for cluster in ("c1", "c2")
        for job_class in ("urgent", "normal")
        for number in range(2)
    ]
    return Snapshot(
        now=SECOND,
        policy=msgspec.structs.replace(PolicyDocument(classes=["urgent", "normal"]), **policy),
        pools=[SnapshotPool(name="east", capacity={"cpu": 10})],
        tenants=[SnapshotTenant(name="ada")],
        queues=list(queues),
        class_values=[
            SnapshotClassValue(job_class=name, value=value, cluster="c1")
            for name, value in (values or {}).items()
        ],
        jobs=[
            msgspec.structs.replace(
                job, queue_time=(5 - int(job.uid[-1])) * SECOND, submitted=int(job.uid[-1])
            )
            for job in jobs
        ],
    )


def kueue(cluster: str = "c1", **changes: object) -> SnapshotQueue:
    plain = SnapshotQueue(name="q", pool="east", frontend="kueue", cluster=cluster, bands_by_class=True)
    return msgspec.structs.replace(plain, **changes)


def planned(snapshot: Snapshot) -> tuple[dict[str, int], dict[tuple[str, str], str]]:
    [pool] = order_snapshot(snapshot)
    plan = plan_snapshot_levels(pool, snapshot.jobs, 32, steering_of(snapshot, "east"))
    return dict(plan.writes), plan.withheld


def test_each_cluster_has_levels_by_what_its_own_queues_and_classes_say() -> None:
    other = kueue("c2", bands_by_class=False, lowest_level=7, highest_level=9)
    writes, withheld = planned(in_bands(kueue(), other, values={"urgent": 5000, "normal": 100}))
    # In c2 the last may stay where nobody labelled it; in c1 all stand below the floors of their classes.
    assert set(writes) == {job.uid for job in in_bands().jobs} - {"c2-normal-1"}
    assert writes["c1-normal-0"] > writes["c1-normal-1"] >= 100
    assert 5000 <= writes["c1-urgent-1"] < writes["c1-urgent-0"]
    assert 9 >= writes["c2-urgent-0"] > writes["c2-urgent-1"] >= writes["c2-normal-0"] >= 7
    assert withheld == {}


def test_what_is_stated_of_no_queue_takes_plain_levels() -> None:
    writes, _ = planned(in_bands())
    assert all(0 < level <= PLAIN_BAND.highest for level in writes.values())
    assert writes == planned(in_bands(kueue(bands_by_class=False), kueue("c2", bands_by_class=False)))[0]


def test_classes_that_are_not_strict_share_one_band_from_the_lowest_floor() -> None:
    snapshot = in_bands(
        kueue(), kueue("c2"), values={"urgent": 5000},
        class_mode="additive", class_weights={"urgent": 9.0, "normal": 1.0},
    )  # fmt: skip
    [(_, one), (_, other)] = steering_of(snapshot, "east").items()
    assert [(part.job_class, part.band.default) for part in one.class_bands] == [(None, 0)]
    assert one.class_bands[0].band.highest == 5000 + snapshot.policy.bands.width
    assert other.class_bands[0].band.highest == 2 * snapshot.policy.bands.width + 1


@pytest.mark.parametrize(
    ("queues", "values", "why"),
    [
        (
            [kueue()],
            {"urgent": 5, "normal": 9},
            "class urgent has its floor at 5 and class normal at 9: levels of normal would stand above urgent; the policy has urgent before normal",
        ),
        ([kueue(), kueue(name="p", bands_by_class=False)], {}, "its queues have no band in common"),
        (
            [kueue(), kueue(name="p", preemption={"withinClusterQueue": "LowerPriority"})],
            {},
            "queue p has withinClusterQueue LowerPriority: a level could stop a running job, and the policy says `preemption: never`",
        ),
    ],
)
def test_where_an_admitter_writes_nothing_it_is_said_why(
    queues: list[SnapshotQueue], values: dict[str, int], why: str
) -> None:
    writes, withheld = planned(in_bands(*queues, kueue("c2"), values=values))
    assert {uid[:2] for uid in writes} == {"c2"}
    [(where, told)] = withheld.items()
    assert where == ("c1", "kueue")
    assert told.startswith(why)


@pytest.mark.parametrize("taken", ["protect", "accept"])
def test_where_the_policy_takes_preemption_levels_are_planned_all_the_same(taken: str) -> None:
    preempting = kueue(preemption={"reclaimWithinCohort": "LowerPriority"})
    assert planned(in_bands(preempting))[1]
    assert planned(in_bands(preempting, preemption=taken)) == planned(in_bands(kueue()))
    assert planned(in_bands(kueue(preemption={"reclaimWithinCohort": "Any"}))) == planned(in_bands(kueue()))


def test_what_a_snapshot_says_of_a_tenant_counts_before_the_policy() -> None:
    policy = PolicyDocument(tenants=[Tenant(name="a", weight=3, pool=None), Tenant(name="b", weight=2)])
    stated = [
        SnapshotTenant(name="new"),
        SnapshotTenant(name="a", weight=5.0, pool="gpu"),
        SnapshotTenant(name="stranger", unlisted=True),
    ]
    snapshot = Snapshot(now=0, policy=policy, pools=[], tenants=stated)
    found = {tenant.name: (tenant.weight, tenant.pool) for tenant in policy_of(snapshot).tenants}
    assert found == {"a": (5.0, None), "b": (2.0, None), "new": (1.0, None)}, "a job's pool is no limit"


@pytest.mark.parametrize(
    ("listed", "stated"),
    [
        ([], [{"name": "org", "pool": "gpu"}, {"name": "team", "parent": "org"}]),
        ([{"name": "team", "pool": "gpu"}], [{"name": "team"}]),
    ],
    ids=["inherited from the parent", "named by the policy"],
)
def test_past_use_counts_in_the_pool_that_its_tenant_stands_in(
    listed: list[dict[str, str]], stated: list[dict[str, object]]
) -> None:
    stated[-1]["past_use"] = {"gpu": 32}
    snapshot = read_snapshot(
        {
            "now": 1_760_000_000,
            "policy": {
                "half_life_hours": 24,
                "pools": [{"name": "gpu", "members": ["c/g"]}, {"name": "cpu", "members": ["c/c"]}],
                "tenants": listed,
            },
            "pools": [{"name": "gpu", "capacity": {"gpu": 64}}, {"name": "cpu", "capacity": {"cpu": 64}}],
            "tenants": [*stated, {"name": "other", "pool": "gpu"}],
            "jobs": [
                {"id": "j1", "tenant": "team", "submitted": 1_759_990_000, "demand": {"gpu": 8}},
                {"id": "j2", "tenant": "other", "submitted": 1_759_995_000, "demand": {"gpu": 8}},
            ],
        }
    )
    [gpu] = [pool for pool in order_snapshot(snapshot) if pool.name == "gpu"]
    assert [position.id for position in gpu.positions] == ["j2", "j1"]
    assert gpu.standings["team"].past == {"gpu": 32_000}


@pytest.mark.parametrize("counts", [True, False])
@given(rngs)
@settings(max_examples=cases())
def test_a_pool_knows_which_jobs_ask_for_more_than_it_has(counts: bool, rng: random.Random) -> None:
    snapshot = snapshot_by(rng)
    if not counts:
        policy = msgspec.structs.replace(snapshot.policy, resource_weights={"cpu": 0.0})
        snapshot = msgspec.structs.replace(snapshot, policy=policy)
    for pool in order_snapshot(snapshot):
        [stated] = [one for one in snapshot.pools if one.name == pool.name]
        waiting = [job for job in snapshot.jobs if job.pool == pool.name]
        assert pool.apart == {
            job.uid
            for job in waiting
            if any(amount > stated.capacity.get(name, 0) for name, amount in job.demand.items())
        }


# --- in words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0 s"), (45, "45 s"), (60, "1 min"), (5400, "1.5 h"), (86_400 * 2, "2 d")],
)
def test_durations_are_put_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("share", "text"), [(0.25, "25.0 %"), (0.0001, "0.01 %"), (0, "0.0 %")])
def test_shares_are_put_in_words(share: float, text: str) -> None:
    assert percent(share) == text


def test_the_terms_of_a_position_are_put_in_words() -> None:
    rules = Rulebook(a_document(), 1).pool_rules("gpu", {"cpu": 1000})
    position = a_position(submitted=NOW - 500 * HOUR, demand={"cpu": 4000})
    tag, age, size = terms_in_words(position, None, rules, NOW)
    assert "tenant team-a comes to" in tag
    [nothing, *_] = terms_in_words(msgspec.structs.replace(position, dominant="", use=0), None, rules, NOW)
    assert "team-a holds nothing before this job starts" in nothing
    assert "20.8 d: worth 208.3 % of what its tenant is entitled to, at 10.0 % a day" in age
    assert "4 cpu, more than the 1 that the pool has" in size
    [last, _] = terms_in_words(msgspec.structs.replace(position, unbounded=True), None, rules, NOW)
    assert last == "The share of its tenant team-a is infinite: it goes last among the jobs of its class."
