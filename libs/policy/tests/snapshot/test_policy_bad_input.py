"""Bad input of every kind, through reading and ordering: an error that names path and value, or a defined result."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.policyfile.read import read_document
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.order.merging import sort_key
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.levels import plan_snapshot_levels
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot, policy_of

NOW = 1_760_000_000
NAN, INF = float("nan"), float("inf")

type PlainObject = dict[str, object]


def job(name: str = "j", tenant: str = "a", **changed: object) -> PlainObject:
    return {"id": name, "tenant": tenant, "submitted": NOW, "demand": {"cpu": 1}, **changed}


def snapshot(*jobs: PlainObject, **changed: object) -> PlainObject:
    return {
        "now": NOW,
        "policy": {},
        "pools": [{"name": "p", "capacity": {"cpu": 8, "gpu": 0}}],
        "tenants": [{"name": "a"}, {"name": "b"}],
        "jobs": list(jobs),
        **changed,
    }


def ordered(plain: PlainObject) -> OrderedPool:
    """The only pool, in order; levels are planned, too."""
    found = decode_snapshot(json.dumps(plain).encode())
    [pool] = order_snapshot(found)
    keys = [sort_key(position, pool.rules, found.now) for position in pool.positions]
    assert all(one < other for one, other in pairwise(keys))
    plan_snapshot_levels(pool, found.jobs, policy_of(found).window)
    return pool


def refusals(read: Callable[[], object]) -> dict[str, tuple[object, str]]:
    with pytest.raises(DocumentError) as refused:
        read()
    return {one.field: (one.value, one.reason) for one in refused.value.problems}


BAD_NUMBERS: tuple[object, ...] = (NAN, INF, -INF, -1, 1e300, 10**400, "NaN", "1e999", "", None, True, [], {})


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("path", "put"),
    [
        ("jobs[0].demand.cpu", lambda v: snapshot(job(demand={"cpu": v}))),
        ("running[0].demand.cpu", lambda v: snapshot(running=[job() | {"demand": {"cpu": v}}])),
        ("pools[0].capacity.cpu", lambda v: snapshot(pools=[{"name": "p", "capacity": {"cpu": v}}])),
        (
            "tenants[0].past_use.cpu",
            lambda v: snapshot(
                policy={"half_life_hours": 1}, tenants=[{"name": "a", "past_use": {"cpu": v}}]
            ),
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_quantity_that_is_none_is_named_with_its_path(
    path: str, put: Callable[[object], PlainObject], value: object
) -> None:
    plain = put(value)
    for entry in plain.get("running") or []:  # type: ignore[attr-defined] # a list of mappings
        entry.pop("submitted")
    found = refusals(lambda: decode_snapshot(json.dumps(plain).encode()))
    assert list(found) == [path]


@pytest.mark.parametrize("value", [NAN, INF, -1, 1e-7, 1e10, "x", True, [], {}], ids=repr)
@pytest.mark.parametrize(
    ("path", "put"),
    [
        ("tenants[0].weight", lambda v: {"tenants": [{"name": "a", "weight": v}]}),
        ("unlisted_weight", lambda v: {"unlisted_weight": v}),
        ("resource_weights.cpu", lambda v: {"resource_weights": {"cpu": v}}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_weight_that_is_none_is_named_with_its_path(
    path: str, put: Callable[[object], PlainObject], value: object
) -> None:
    found = refusals(lambda: read_document(put(value)))
    assert len(found) == 1
    assert path.startswith(next(iter(found)))


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"aging": {"entitlement_per_day": NAN}}, "aging.entitlement_per_day"),
        ({"aging": {"entitlement_per_day": -0.1}}, "aging.entitlement_per_day"),
        ({"aging": {"entitlement_per_day": INF}}, "aging.entitlement_per_day"),
        ({"aging": {"cap_days": 0}}, "aging.cap_days"),
        ({"aging": {"cap_days": INF}}, "aging.cap_days"),
        ({"half_life_hours": 0}, "half_life_hours"),
        ({"half_life_hours": NAN}, "half_life_hours"),
        ({"half_life_hours": -1}, "half_life_hours"),
        ({"classes": []}, "classes"),
        ({"classes": ["a", "a"]}, "classes"),
        ({"class_mode": "additive", "class_weights": {"urgent": 1}}, "class_weights"),
        ({"tenants": [{"name": "a"}, {"name": "a"}]}, "tenants[1].name"),
        ({"tenants": [{"name": "x", "parent": "y"}]}, "tenants[0].parent"),
        ({"tenants": [{"name": "x", "parent": "x"}]}, "tenants[0].parent"),
        ({"grants": [{"tenant": "ghost", "classes": ["urgent"]}]}, "grants[0].tenant"),
        ({"tenants": [{"name": "a"}], "grants": [{"tenant": "a", "classes": ["x"]}]}, "grants[0].classes"),
        ({"window": 0}, "window"),
        ({"window": 2**70}, "window"),
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_told_by_path_alone_and_inside_a_snapshot(
    policy: PlainObject, path: str
) -> None:
    alone = refusals(lambda: read_document(policy))
    assert list(alone) == [path]
    inside = refusals(lambda: decode_snapshot(json.dumps(snapshot(job(), policy=policy)).encode()))
    assert f"policy.{path}" in inside


@pytest.mark.parametrize(
    ("plain", "path", "value"),
    [
        (snapshot(job(tenant="ghost")), "jobs[0].tenant", "ghost"),
        (snapshot(job(**{"class": "vip"})), "jobs[0].class", "vip"),
        (snapshot(job(), job()), "jobs[1].id", "j"),
        (snapshot(job(), job("k", uid="j")), "jobs[1].uid", "j"),
        (snapshot(tenants=[{"name": "a"}, {"name": "a"}]), "tenants[1].name", "a"),
        (snapshot(pools=[]), "pools", []),
        (snapshot(job(pool="q")), "jobs[0].pool", "q"),
        (snapshot(job(demand={"tpu": 1})), "jobs[0].demand.tpu", 1),
        (snapshot(job(submitted="yesterday")), "jobs[0].submitted", "yesterday"),
        (snapshot(job(level=2**40)), "jobs[0].level", 2**40),
        (snapshot(now=None), "now", None),
        (snapshot(job(priority_override=1)), "jobs[0].priority_override", 1),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_refers_to_nothing_or_comes_twice_is_named_with_path_and_value(
    plain: PlainObject, path: str, value: object
) -> None:
    found = refusals(lambda: decode_snapshot(json.dumps(plain).encode()))
    assert path in found
    assert found[path][0] == value


def chain(length: int) -> list[PlainObject]:
    """Each tenant under the next."""
    names = [f"t{at:02d}" for at in range(length)]
    under: list[PlainObject] = [{"name": name, "parent": parent} for name, parent in pairwise(names)]
    return [*under, {"name": names[-1]}]


def test_a_cycle_of_tenants_is_told_once_whether_of_the_policy_the_snapshot_or_both() -> None:
    ring = [{"name": "x", "parent": "y"}, {"name": "y", "parent": "x"}]
    assert list(refusals(lambda: read_document({"tenants": ring}))) == ["tenants[0].parent"]
    stated = snapshot(job(), tenants=[{"name": "a"}, *ring])
    assert list(refusals(lambda: ordered(stated))) == ["tenants[1].parent"]
    both = snapshot(policy={"tenants": ring[:1]}, tenants=ring[1:])
    assert list(refusals(lambda: ordered(both))) == ["policy.tenants[0].parent"]


def test_a_tree_is_as_deep_as_is_allowed_and_no_deeper() -> None:
    pool = ordered(snapshot(job(tenant="t00"), job("k", tenant="b"), tenants=[*chain(16), {"name": "b"}]))
    assert len(pool.positions[0].within or pool.positions[1].within) == 15
    too_deep = refusals(lambda: ordered(snapshot(job(tenant="t00"), tenants=chain(17))))
    assert list(too_deep) == ["tenants[0].parent"]


def test_values_nested_a_hundred_thousand_deep_are_refused() -> None:
    for around in ('{"now": %s}', '{"now": 1, "policy": {"aging": %s}}', '{"now": 1, "jobs": [%s]}'):
        for depth in (100, 900, 100_000):
            payload = around % ("[" * depth + "]" * depth)
            assert refusals(lambda text=payload: decode_snapshot(text.encode()))  # type: ignore[misc] # bound now


# --- defined results


def test_a_pool_of_nothing_and_a_pool_without_jobs_have_an_order() -> None:
    for capacity in ({}, {"cpu": 0}):
        empty = snapshot(pools=[{"name": "p", "capacity": capacity}])
        assert not list(ordered(empty).positions)
    nothing = snapshot(job("x"), job("y", submitted=NOW - 1), pools=[{"name": "p", "capacity": {"cpu": 0}}])
    assert [(one.uid, one.unbounded) for one in ordered(nothing).positions] == [("y", False), ("x", False)]


def test_sums_beyond_64_bits_are_infinite_shares_and_nobody_elses_trouble() -> None:
    """The largest quantity that may be written, a dozen times: more than 2^63 in base units."""
    largest = MAX_QUANTITY // 1000
    many = [job(f"a{number:02d}", demand={"cpu": largest}, submitted=NOW + number) for number in range(12)]
    others = [job(f"b{number:02d}", "b") for number in range(12)]
    pool = ordered(snapshot(*many, *others, pools=[{"name": "p", "capacity": {"cpu": largest}}]))
    positions = {position.uid: position for position in pool.positions}
    assert [name for name in positions if name.startswith("a")] == [f"a{number:02d}" for number in range(12)]
    assert positions["a11"].unbounded
    assert not any(positions[f"b{number:02d}"].unbounded for number in range(12))
    assert list(positions).index("b11") < list(positions).index("a01")


def test_a_scale_beyond_64_bits_of_a_resource_that_nobody_uses() -> None:
    """Found by the fuzz: capacities without a common factor, weighed to nine decimals."""
    capacity = {"cpu": 997, "gpu": 2**50 - 27, "memory": 2**59 - 55}
    weighed = {"resource_weights": {"cpu": 0.123456789, "gpu": 1e-6, "memory": 999999.999}}
    jobs = [job(f"j{number}", demand={}) for number in range(3)]
    pool = ordered(snapshot(*jobs, policy=weighed, pools=[{"name": "p", "capacity": capacity}]))
    assert [position.uid for position in pool.positions] == ["j0", "j1", "j2"]


def test_a_tenant_over_its_pool_and_times_at_the_ends_of_the_calendar_have_an_order() -> None:
    jobs = [
        job("first", submitted="0001-01-01T00:00:00Z"),
        job("last", submitted="9999-12-31T23:59:59Z"),
        job("over", "b"),
    ]
    running = [{"id": "r", "tenant": "b", "demand": {"cpu": 80_000}}]
    pool = ordered(snapshot(*jobs, running=running))
    assert next(iter(pool.positions)).uid == "first"
    assert pool.standings["b"].share == 10_000


@pytest.mark.parametrize(
    "count", [20_000, pytest.param(1_000_000, marks=(pytest.mark.deep, pytest.mark.timeout(1200)))]
)
def test_many_jobs_of_one_tenant(count: int) -> None:
    jobs = [job(f"j{number:07d}", submitted=NOW - number % 977) for number in range(count)]
    pool = ordered(snapshot(*jobs))
    wanted = sorted(jobs, key=lambda one: (one["submitted"], one["id"]))
    assert [position.uid for position in pool.positions] == [one["id"] for one in wanted]
    assert pool.positions[-1].use == (count - 1) * 1000


def test_levels_that_no_frontend_should_have_are_written_over_or_left_behind() -> None:
    levels = [-(2**31), 2**31 - 1, 0, -1, 2**40]
    window = [LabelledJob(uid=f"u{at}", level=level, tie=(9 - at, "")) for at, level in enumerate(levels)]
    for band in (Band(default=0, lowest=1, highest=9), Band(default=5, lowest=-9, highest=2)):
        plan = plan_levels(window, [], band)
        fitting = len(window) - plan.dropped
        after = dict.fromkeys((one.uid for one in window[:fitting]), 0) | dict(plan.writes)
        assert all(level == band.default or band.lowest <= level <= band.highest for level in after.values())
    assert plan_levels([], [], Band(default=0, lowest=9, highest=1)).writes == []


def test_a_policy_with_no_tenants_still_gives_rules() -> None:
    rules = Rulebook(read_document({}), 1).pool_rules("p", {})
    assert not rules.resources
    assert not rules.weight_of("anybody")
