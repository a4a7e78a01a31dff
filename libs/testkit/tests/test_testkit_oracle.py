"""The oracle against cases small enough to be right by eye."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.instants import DAY
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Tenant
from fairlead_testkit import OracleJob, OracleRules, fill

RULES = OracleRules(
    capacity={"cpu": 100, "gpu": 10},
    entitlements={"a": Fraction(3), "b": Fraction(2), "c": Fraction(1), "zero": Fraction(0)},
)


def jobs(
    tenant: str, count: int, *, submitted: int = 0, job_class: str = "normal", gpu: int = 1
) -> list[OracleJob]:
    return [
        OracleJob(
            uid=f"{tenant}{number:02}",
            tenant=tenant,
            job_class=job_class,
            submitted=submitted,
            demand={"gpu": gpu},
        )
        for number in range(count)
    ]


def tenants(waiting: list[OracleJob], rules: OracleRules = RULES, now: int = 0) -> str:
    return "".join(position.tenant for position in fill(waiting, rules, now))


def test_equal_jobs_alternate_by_weight() -> None:
    order = tenants(jobs("a", 6) + jobs("b", 4) + jobs("c", 2))
    assert order == "abcabaabcaba"
    for step in range(1, len(order) + 1):
        for tenant, part in {"a": 3 / 6, "b": 2 / 6, "c": 1 / 6}.items():
            assert abs(order[:step].count(tenant) - step * part) <= 1, (
                "within one job of the weights at every step"
            )


def test_the_dominant_resource_counts() -> None:
    rules = OracleRules(capacity={"cpu": 9, "mem": 18}, entitlements={"a": Fraction(1), "b": Fraction(1)})
    waiting = [
        OracleJob(uid=f"a{n}", tenant="a", job_class="normal", submitted=0, demand={"cpu": 1, "mem": 4})
        for n in range(3)
    ] + [
        OracleJob(uid=f"b{n}", tenant="b", job_class="normal", submitted=0, demand={"cpu": 3, "mem": 1})
        for n in range(2)
    ]
    positions = fill(waiting, rules, 0)
    # The example of the DRF paper, figure 1: three tasks of A (2/9 of memory each), two of B (1/3 of the CPUs each).
    assert [position.uid for position in positions] == ["a0", "b0", "a1", "b1", "a2"]
    assert [position.tag for position in positions] == [0, 0, Fraction(2, 9), Fraction(1, 3), Fraction(4, 9)]


def test_classes_come_first_and_use_counts() -> None:
    waiting = jobs("a", 1) + jobs("b", 1, job_class="urgent") + jobs("c", 1, job_class="unheard of")
    assert tenants(waiting) == "bac"
    positions = fill(jobs("a", 1) + jobs("c", 1), RULES, 0, use={"a": {"gpu": 9}})
    assert [position.tenant for position in positions] == ["c", "a"]


def test_waiting_buys_share_up_to_the_cap() -> None:
    rules = OracleRules(capacity={"gpu": 10}, entitlements=RULES.entitlements, rate=Fraction(1, 100), cap=50)
    early = jobs("c", 1, submitted=0)
    late = jobs("a", 1, submitted=40)
    use = {"c": {"gpu": 3}}  # share 0.3 against 0: worth 30 units of waiting
    assert [p.tenant for p in fill(early + late, rules, 40, use)] == ["c", "a"], (
        "40 units of waiting outweigh 0.3"
    )
    assert [p.tenant for p in fill(early + late, rules, 80, use)] == ["a", "c"], (
        "past the cap only 10 are left"
    )


@pytest.mark.parametrize("waiting", [jobs("zero", 2) + jobs("a", 2), jobs("nobody", 1) + jobs("a", 2)])
def test_a_tenant_without_weight_stands_last(waiting: list[OracleJob]) -> None:
    positions = fill(waiting, RULES, 0)
    assert [position.tag is None for position in positions] == [False, False] + [True] * (len(waiting) - 2)


def test_use_of_what_the_pool_has_not_is_infinite_and_a_job_that_asks_for_it_takes_none() -> None:
    tpu = OracleJob(uid="t", tenant="a", job_class="normal", submitted=0, demand={"tpu": 1})
    waiting = [tpu, *jobs("a", 1, submitted=1), *jobs("b", 1, submitted=9)]
    assert [position.uid for position in fill(waiting, RULES, 9)] == ["t", "a00", "b00"]
    held = fill(waiting, RULES, 9, {"a": {"tpu": 1}})
    assert [position.uid for position in held] == ["b00", "t", "a00"]


def test_the_documents_decimals_mean_what_they_say() -> None:
    document = PolicyDocument(
        aging=Aging(entitlement_per_day=0.06, cap_days=0.5), tenants=[Tenant(name="a", weight=0.1)]
    )
    rules = OracleRules.of(document, {"gpu": 10})
    assert rules.rate == Fraction(6, 100) / DAY
    assert rules.cap == DAY // 2
    assert rules.entitlements == {"a": 1}


@given(st.permutations(jobs("a", 4) + jobs("b", 3, submitted=5) + jobs("c", 3, job_class="urgent")))
def test_the_order_of_arrival_does_not_matter(waiting: list[OracleJob]) -> None:
    assert fill(waiting, RULES, 10) == fill(sorted(waiting, key=lambda job: job.uid), RULES, 10)
