"""The oracle and the product's own order, written apart, say the same: job by job, term by term."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit import OracleJob, OracleRules, fill
from fairlead_testkit.oracles.waiting import a_waiting_job, judged

TENANTS = ["a", "b", "c", "d"]
CLASSES = ("urgent", "approved", "normal")
RESOURCES = ["cpu", "gpu", "mem"]
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 6), min_size=1)
JOB = st.tuples(st.sampled_from(TENANTS), st.sampled_from(CLASSES), st.integers(0, 30), AMOUNTS)


@given(
    waiting=st.lists(JOB, max_size=14),
    use=st.dictionaries(st.sampled_from(TENANTS), AMOUNTS),
    capacity=st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 20)),
    weights=st.dictionaries(st.sampled_from(TENANTS), st.fractions(0, 3, max_denominator=4)),
    values=st.dictionaries(st.sampled_from(RESOURCES), st.fractions(0, 2, max_denominator=2)),
    rate=st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 7), Fraction(3)]),
    cap=st.none() | st.integers(1, 20),
)
def test_the_order_is_the_oracles(
    *,
    waiting: list[tuple[str, str, int, dict[str, int]]],
    use: dict[str, dict[str, int]],
    capacity: dict[str, int],
    weights: dict[str, Fraction],
    values: dict[str, Fraction],
    rate: Fraction,
    cap: int | None,
) -> None:
    now = 30
    order = PoolFacts(
        PoolRules(
            capacity=capacity,
            classes=CLASSES,
            rate=rate,
            cap=cap,
            resource_weights=values,
            entitlements=weights,
        )
    )
    for tenant, amounts in use.items():
        order.run(f"running-{tenant}", tenant, amounts)
    jobs = []
    for number, (tenant, job_class, submitted, demand) in enumerate(waiting):
        uid = f"u{number * 7919 % 100:02}"
        jobs.append(
            OracleJob(uid=uid, tenant=tenant, job_class=job_class, submitted=submitted, demand=demand)
        )
        job = a_waiting_job(uid, tenant=tenant, job_class=job_class, submitted=submitted, demand=demand)
        order.wait(judged(job, capacity))
    rules = OracleRules(
        capacity=capacity, entitlements=weights, classes=CLASSES, resource_weights=values, rate=rate, cap=cap
    )
    expected = fill(jobs, rules, now, use)
    found = order.at(now).positions()[:]
    assert [position.uid for position in found] == [position.uid for position in expected]
    assert [position.unbounded for position in found] == [position.tag is None for position in expected]
    for position, wanted in zip(found, expected, strict=True):
        if wanted.tag is not None and wanted.key is not None:
            assert abs(position.tag - wanted.tag) < 1e-9
            assert abs(position.key - wanted.key) < 1e-9
