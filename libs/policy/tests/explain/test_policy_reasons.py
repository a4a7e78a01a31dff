"""Reasons for a job's position, in words: they are true with H-DRF, in trees, and where shares are infinite."""

import random
from collections.abc import Mapping
from fractions import Fraction

import pytest

from fairlead_contracts.base.figures import amount_format
from fairlead_contracts.base.instants import HOUR, MINUTE
from fairlead_policy.explain.reasons import Wording
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.builders import a_position
from fairlead_testkit.oracles.told_what_if import told_what_if, what_if_in
from fairlead_testkit.oracles.waiting import a_waiting_job

NOW = 100 * HOUR
GPU = "nvidia.com/gpu"
ONE = Fraction(1)
FINITE = "it goes last among the jobs of its class."


def rules(**changes: object) -> PoolRules:
    stated: dict[str, object] = {
        "capacity": {"cpu": 10_000, GPU: 10_000},
        "classes": ("urgent", "normal"),
        "rate": Fraction(1, 100) / HOUR,
        "weights": dict.fromkeys(("org", "c", "g", "p"), ONE),
    }
    # Numbers that divide by 1 are read at a glance: weights are taken for entitlements, as they stand.
    found = {**stated, "relative": False, **changes}
    found["entitlements"] = found["weights"]
    return PoolRules(**found)  # type: ignore[arg-type] # tests say what they change


def a_job(uid: str, tenant: str, *, age: float = 1, **demand: int) -> WaitingJob:
    asked = {GPU if name == "gpu" else name: 1000 * amount for name, amount in demand.items()}
    return a_waiting_job(uid, tenant=tenant, submitted=NOW - round(age * HOUR), demand=asked)


def told(
    scored_by: PoolRules, use: Mapping[str, Mapping[str, int]], uid: str, *jobs: WaitingJob
) -> list[str]:
    order = PoolFacts(scored_by)
    for tenant, held in use.items():
        order.run(f"runs-{tenant}", tenant, held)
    for job in jobs:
        order.wait(job)
    position = order.position(uid, NOW)
    assert position is not None
    found = what_if_in(order.at(NOW), position)
    wording = Wording(scored_by, {one.tenant: one for one in order.snapshot.standings()}, NOW)
    return [
        *wording.reasons(position),
        *told_what_if(found, position, scored_by, NOW),
    ]


@pytest.mark.parametrize(
    ("job_class", "said"),
    [
        ("urgent", "Its class is urgent, the highest: it goes before every job of another class."),
        ("normal", "Its class is normal; every job of a higher class goes before it."),
    ],
)
def test_no_class_goes_before_the_highest(job_class: str, said: str) -> None:
    job = a_waiting_job("j", tenant="c", submitted=NOW - HOUR, demand={GPU: 1000}, job_class=job_class)
    assert said in told(rules(), {}, "j", job)


@pytest.mark.parametrize("cap", [None, 50 * HOUR])
@pytest.mark.parametrize("rate", [0, 1, 70, 3000])
def test_waiting_is_told_of_many_jobs_as_of_each(rate: int, cap: int | None) -> None:
    aged = rules(rate=Fraction(rate, 10_000) / HOUR, cap=cap)
    rng = random.Random(rate)
    ages = [rng.randrange(-MINUTE, 3 * HOUR) for _ in range(400)]
    ages += [50 * HOUR + rng.randrange(-5 * MINUTE, 5 * MINUTE) for _ in range(200)]
    ages += [minute * MINUTE + by for minute in range(55, 75) for by in (-1, 0, 1)]
    positions = [a_position(tenant="c", submitted=NOW - age) for age in ages]
    of_all = Wording(aged, {}, NOW)
    for position in positions:
        assert of_all.reasons(position) == Wording(aged, {}, NOW).reasons(position)


RESCALED = rules(parents={"c": "org", "g": "org"}, rescaled=True, saturated=frozenset([GPU]))
ALL_GPUS = {"g": {GPU: 10_000}}


def test_h_drf_says_at_what_it_counts_a_tenant_that_holds_what_is_used_up() -> None:
    jobs = a_job("c1", "c", cpu=1), a_job("c2", "c", cpu=1), a_job("g1", "g", age=3, gpu=1), a_job("p1", "p")
    assert told(RESCALED, ALL_GPUS, "c2", *jobs)[1] == (
        "Tenant org (weight 1) holds 100.0 % of the pool with 1 running job, and counts by H-DRF at 10.0 % of cpu before this "
        "one. H-DRF brings the tenants below it that can still get something to the lowest share among them; of the others it "
        "leaves out nvidia.com/gpu, which is used up. That is 0.1 of the pool over its weight; lower goes first."
    )
    blocked = told(RESCALED, ALL_GPUS, "g1", *jobs)
    assert "counts by H-DRF at 20.0 % of cpu before this one" in blocked[1]
    assert not any("holds nothing" in line for line in blocked)
    assert (
        "It asks for nvidia.com/gpu, which is used up: it stands behind the jobs of its class that ask for nothing that is "
        "used up." in blocked
    )
    assert "Before it stands p1 of p: this one asks for nvidia.com/gpu, which is used up." in blocked
    assert "Before it stands p1 of p: p has by H-DRF 10.0 % less over its weight than org." in told(
        RESCALED, ALL_GPUS, "c2", jobs[0], jobs[1], jobs[3]
    )


@pytest.mark.parametrize(
    ("weight", "held"),
    [(1, "the pool"), (10, "the pool's nvidia.com/gpu"), (0.1, "the pool's nvidia.com/gpu")],
)
def test_what_a_tenant_holds_is_told_without_the_weight_of_the_resource(weight: float, held: str) -> None:
    weighed = rules(resource_weights={GPU: Fraction(weight), "cpu": Fraction(1, 1000)})
    words = told(weighed, {"p": {GPU: 5000}}, "p1", a_job("p1", "p", gpu=1))
    assert words[1].startswith(
        f"Tenant p (weight 1) holds 50.0 % of {held} with 1 running job. With its jobs"
    )


def test_nothing_is_told_as_used_up_while_nothing_is() -> None:
    free = rules(parents={"c": "org", "g": "org"}, rescaled=True)
    words = told(free, {"g": {GPU: 5000}}, "c1", a_job("c1", "c", cpu=1), a_job("g1", "g", gpu=1))
    assert "used up" not in " ".join(words)
    assert "counts by H-DRF at 50.0 % of nvidia.com/gpu before this one" in words[1]


def test_a_weight_of_nothing_below_a_tenant_is_the_reason() -> None:
    tree = rules(
        weights={"o": ONE, "a": Fraction(0), "b": ONE}, parents={"a": "o", "b": "o"}, capacity={"cpu": 16_000}
    )
    jobs = a_job("ja", "a", age=2.5, cpu=1), a_job("jb", "b", age=1 / 60, cpu=1)
    words = told(tree, {"b": {"cpu": 10_000}}, "ja", *jobs)
    assert "Below o, a has weight 0: it goes last among the jobs of the same class there." in words
    assert "Before it stands jb of b (within o): this one's tenant has weight 0 below o." in words


@pytest.mark.parametrize(
    ("uid", "cause", "neighbour"),
    [
        (
            "ja",
            "Its tenant a holds 2 nvidia.com/gpu, of which the pool has none",
            "this one's tenant holds nvidia.com/gpu, of which the pool has none",
        ),
        ("jw", "Its tenant w has weight 0 here", "this one's tenant has weight 0 here"),
        ("jx", "Its tenant x is not in the policy", "this one's tenant is not in the policy"),
    ],
)
def test_of_what_makes_a_share_infinite_the_one_cause_is_told(uid: str, cause: str, neighbour: str) -> None:
    lacking = rules(capacity={"cpu": 16_000, GPU: 0}, weights={"a": ONE, "b": ONE, "w": Fraction(0)})
    jobs = {
        "jb": a_job("jb", "b", age=3, gpu=1),
        "ja": a_job("ja", "a", cpu=1),
        "jw": a_job("jw", "w", cpu=1),
        "jx": a_job("jx", "x", cpu=1),
    }
    words = told(lacking, {"a": {GPU: 2000}}, uid, jobs["jb"], jobs[uid])
    assert words[1] == f"{cause}: {FINITE}"
    assert f"Before it stands jb of b: {neighbour}." in words


def test_what_counts_otherwise_is_said_to() -> None:
    half = rules(resource_weights={"cpu": Fraction(1, 2), GPU: Fraction(0)})
    assert (
        "comes to 4 cpu, times its resource weight of 0.5, which is 0.2 of the pool over its weight of 1"
        in told(half, {"c": {"cpu": 4000}}, "c1", a_job("c1", "c"))[1]
    )
    assert told(half, {"c": {GPU: 4000}}, "c1", a_job("c1", "c"))[1] == (
        "Its tenant c holds nothing that counts before this job starts, so it stands at 0; lower goes first."
    )


@pytest.mark.parametrize(
    ("resource", "amount", "told"),
    [
        (GPU, 8000, "8"),
        ("cpu", 500, "0.5"),
        ("nvidia.com/gpumem", 71_897_600, "71897.6"),
        ("memory", 2**31, "2Gi"),
    ],
)
def test_amounts_in_sentences_are_written_as_people_do(resource: str, amount: int, told: str) -> None:
    assert amount_format(resource)(amount) == told
