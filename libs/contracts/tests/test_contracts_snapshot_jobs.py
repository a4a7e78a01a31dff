"""Jobs of a JSON text, against the same jobs as plain values."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.jobs import AT_ONCE
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_testkit.inputs.cases import cases

NOW = 1_760_000_000
AROUND = {
    "now": NOW,
    "policy": {"classes": ["urgent", "normal"]},
    "pools": [{"name": "a", "capacity": {"cpu": 8, "memory": "1Ti"}}, {"name": "b", "capacity": {"cpu": 8}}],
    "tenants": [{"name": "x", "pool": "a"}, {"name": "y", "pool": "b"}, {"name": "z"}, {"name": "w", "parent": "z"}],
    "running": [{"id": "r", "tenant": "x", "demand": {"cpu": 1}}],
}  # fmt: skip
amounts = st.sampled_from([0, 1, 2**60, 2**61, -1, 0.5, 1.0, "500m", "1Gi", "", "x", True, None, 10**30])
times = st.sampled_from(
    [NOW, NOW - 5.25, 0, -1, "2025-10-09T10:53:20.5+02:00", "2025-10-09T10:53:20", "x", None, True, 10**15, 1e15]
)  # fmt: skip
keys: dict[str, st.SearchStrategy[object]] = {
    "class": st.sampled_from(["urgent", "normal", "other", None, 1]),
    "pool": st.sampled_from(["a", "b", "c", None]),
    "uid": st.sampled_from(["j1", "u", "", "r", "\x00", None]),
    "gang": st.sampled_from([{"pods": 2}, {"pods": 0}, {"pods": 2, "per_pod": {"cpu": 1}}, {}, None, 3, {"x": 1}]),
    "cluster": st.sampled_from(["c", "", "\n", None]),
    "frontend": st.sampled_from(["kueue", "sim", "other", None]),
    "queue": st.sampled_from(["q", "q2", "", "\x00", None]),
    "queue_time": times,
    "priority_override": st.sampled_from([None, 1, 0.5, "x"]),
    "level": st.sampled_from([0, 3, -1, 2**31 - 1, 2**31, None, 1.5]),
    "runtime_limit": st.sampled_from([0, 3600, 2.5, -1, 1e18, None, "x", True]),
    "annotations": st.sampled_from([{}, {"a": "b"}, None, 1]),
    "nonsense": st.just(1),
}  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, object]:
    """Jobs, mostly right: a fault is then found among much that is learned."""
    found: dict[str, object] = {
        "id": f"j{draw(st.integers(0, 40))}",
        "tenant": draw(st.sampled_from(["x", "x", "x", "y", "w", "z", "nobody"])),
        "submitted": draw(st.one_of(st.just(NOW), times)),
        "demand": draw(
            st.dictionaries(st.sampled_from(["cpu", "cpu", "memory", "gpu"]), amounts, max_size=2)
        ),
    }
    for key in draw(st.lists(st.sampled_from(sorted(keys)), max_size=2)):
        found[key] = draw(keys[key])
    return found


def outcome(read: Snapshot | DocumentError) -> object:
    return [str(one) for one in read.problems] if isinstance(read, DocumentError) else read


def as_values(found: dict[str, object]) -> Snapshot | DocumentError:
    try:
        return read_snapshot(found)
    except DocumentError as error:
        return error


def as_json(found: dict[str, object]) -> Snapshot | DocumentError:
    try:
        return decode_snapshot(json.dumps(found).encode())
    except DocumentError as error:
        return error


@given(st.lists(jobs(), max_size=8), st.integers(0, 3))
def test_both_ways_end_alike(found: list[dict[str, object]], plain: int) -> None:
    before: list[dict[str, object]] = [
        {"id": f"p{number}", "tenant": "x", "submitted": NOW, "demand": {"cpu": 1}} for number in range(plain)
    ]
    document = {**AROUND, "jobs": [*before, *found]}
    assert outcome(as_json(document)) == outcome(as_values(document))


@given(st.lists(jobs(), max_size=30))
def test_what_is_right_is_the_same_by_both_ways(found: list[dict[str, object]]) -> None:
    taken: list[dict[str, object]] = []
    for number, job in enumerate(found):
        one = job | {"id": f"j{number}"}
        if isinstance(as_values({**AROUND, "jobs": [*taken, one]}), Snapshot):
            taken.append(one)
    document = {**AROUND, "jobs": taken}
    assert as_json(document) == as_values(document)


@pytest.mark.parametrize("pools", [AROUND["pools"], [], None])
def test_jobs_that_are_wrong_alike_end_alike(pools: object) -> None:
    """Problems of a tenant whose pool is none are told of the tenant, and not again of each of its jobs."""
    around = AROUND | {"pools": pools, "tenants": [{"name": "x", "pool": "zz"}]}
    job = {"tenant": "x", "submitted": NOW, "demand": {"cpu": 1}}
    document = around | {"jobs": [{"id": f"j{number}"} | job for number in range(3)]}
    with pytest.raises(DocumentError) as raised:
        decode_snapshot(json.dumps(document).encode())
    with pytest.raises(DocumentError) as slowly:
        read_snapshot(document)
    assert "tenants[0].pool" in [problem.field for problem in raised.value.problems]
    assert outcome(raised.value) == outcome(slowly.value)


MANY = 20
odd: dict[str, dict[str, object]] = {
    "an id of another before it": {"id": "j5"},
    "an id of one beside it": {"id": "j11"},
    "an id of a running job": {"id": "r"},
    "an id that is none": {"id": ""},
    "an id too long": {"id": "j" * 513},
    "an id with a colon": {"id": "a:b"},
    "a uid": {"uid": "u"},
    "a uid that is its id": {"uid": "j0"},
    "a uid that is another's id": {"uid": "j7"},
    "a uid that is a later one's id": {"uid": "j19"},
    "a uid of a running job": {"uid": "r"},
    "a uid that is none": {"uid": ""},
    "annotations": {"annotations": {"a": "b"}},
    "a gang": {"gang": {"pods": 2}},
    "a gang that fits nothing": {"gang": {"pods": 2, "per_pod": {"cpu": 7}}},
    "a tenant not met before": {"tenant": "w", "pool": "a"},
    "a tenant of no pool": {"tenant": "nobody"},
    "a class that is none": {"class": "other"},
    "a demand that is none": {"demand": {"cpu": "x"}},
    "a demand of another kind": {"demand": [1]},
    "a demand of what the pool has not": {"demand": {"gpu": 1}},
    "nothing asked for": {"demand": {"cpu": 0}},
    "a time as text": {"submitted": "2025-10-09T10:53:20.5+02:00"},
    "a time that is none": {"submitted": 10**15},
    "a part of a second": {"submitted": NOW - 5.25},
    "queued later": {"queue_time": NOW + 1},
    "queued at the first instant": {"queue_time": 0},
    "a level": {"level": 3},
    "a level that is none": {"level": 2**31},
    "a limit": {"runtime_limit": 2.5},
    "a limit that is none": {"runtime_limit": -1},
    "an override": {"priority_override": 2},
    "a key that no job has": {"nonsense": 1},
    "all that is optional, and null": dict.fromkeys(keys.keys() - {"nonsense"}),
}  # fmt: skip


def many() -> list[dict[str, object]]:
    return [
        {"id": f"j{number}", "tenant": "x", "submitted": NOW - number, "demand": {"cpu": 1 + number % 3}}
        for number in range(MANY)
    ]


@pytest.mark.parametrize("what", odd)
def test_an_odd_job_among_many_ends_alike(what: str) -> None:
    for at in (0, 10, MANY - 1):
        found = many()
        found[at] |= odd[what]
        document = {**AROUND, "jobs": found}
        assert outcome(as_json(document)) == outcome(as_values(document)), at


@given(st.lists(st.tuples(st.integers(0, MANY - 1), st.sampled_from(sorted(odd))), max_size=5))
def test_some_odd_jobs_among_many_end_alike(changes: list[tuple[int, str]]) -> None:
    found = many()
    for at, what in changes:
        found[at] |= odd[what]
    document = {**AROUND, "jobs": found}
    assert outcome(as_json(document)) == outcome(as_values(document))


alternatives: dict[str, dict[str, object]] = {
    "times as text": {"submitted": "2025-10-09T10:53:20Z", "queue_time": "2025-10-09T10:53:20Z"},
    "queues": {"cluster": "c", "frontend": "kueue", "queue": "q", "class": "urgent"},
    "another pool": {"tenant": "w", "pool": "b"},
    "another resource": {"demand": {"memory": "1Gi", "cpu": 0}},
    "a decimal": {"demand": {"cpu": 1.0}},
}


@settings(max_examples=cases())
@given(
    st.sampled_from([1, MANY, AT_ONCE + MANY]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(sorted(odd))), max_size=4),
    st.lists(st.sampled_from(sorted(alternatives)), max_size=3),
)
def test_jobs_side_by_side_end_as_one_by_one(
    count: int, changes: list[tuple[float, str]], alternating: list[str]
) -> None:
    found: list[dict[str, object]] = [
        {"id": f"j{number}", "tenant": "x", "submitted": NOW - number, "demand": {"cpu": number % 3}}
        for number in range(count)
    ]
    for number, what in enumerate(alternating):
        for job in found[number :: number + 2]:
            job.update(alternatives[what])
    for at, what in changes:
        found[int(at * count)] |= odd[what]
    side_by_side = outcome(as_values({**AROUND, "jobs": found}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead_contracts.snapshot.jobs.AT_ONCE", 1)
        assert outcome(as_values({**AROUND, "jobs": found})) == side_by_side


@pytest.mark.parametrize("different", [3, 4 * AT_ONCE])
def test_demands_that_repeat_are_one_dict_and_those_that_hardly_do_end_alike(different: int) -> None:
    found = [job | {"demand": {"cpu": at % different, "memory": 5}} for at, job in enumerate(many() * 60)]
    for number, job in enumerate(found):
        job["id"] = f"j{number}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead_contracts.snapshot.jobs._REMEMBERED", AT_ONCE)
        read = as_json({**AROUND, "jobs": found})
    assert isinstance(read, Snapshot)
    cpus = [job.demand.get("cpu", 0) for job in read.jobs]
    assert cpus == [1000 * (at % different) for at in range(len(found))]
    few = len({id(job.demand) for job in read.jobs}) == different
    assert few == (different < AT_ONCE)


def test_jobs_that_all_say_what_few_say_end_alike() -> None:
    found = [
        job | {"uid": f"u:{number}", "queue_time": NOW, "level": number, "runtime_limit": number / 8}
        for number, job in enumerate(many())
    ]
    document = {**AROUND, "jobs": found}
    assert isinstance(as_json(document), Snapshot)
    assert as_json(document) == as_values(document)


def told_of(*stated: dict[str, object]) -> list[str]:
    found = [job | odd for job, odd in zip(many(), stated, strict=False)]
    read = as_json({**AROUND, "jobs": found})
    return [problem.field for problem in read.problems] if isinstance(read, DocumentError) else []


@pytest.mark.parametrize(("before", "then"), [(1, True), (0, False), (2**60, float(2**60))])
def test_what_equals_an_amount_that_was_met_is_read_for_itself(before: object, then: object) -> None:
    """True is no amount; and a decimal is what its digits say, here more than there may be."""
    stated: list[dict[str, object]] = [{"demand": {"memory": amount}} for amount in (before, then)]
    assert told_of(*stated) == ["jobs[1].demand.memory"]


@pytest.mark.parametrize("amount", [-1, 2**60])
def test_an_amount_out_of_range_among_many_is_told(amount: int) -> None:
    assert told_of({}, {"demand": {"cpu": amount}}) == ["jobs[1].demand.cpu"]


def test_a_queue_time_that_equals_the_submit_time_is_read_for_itself() -> None:
    assert told_of({"submitted": 1, "queue_time": True}, {}) == ["jobs[0].queue_time"]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({}, {"id": "j0"}, "id"),
        ({}, {"uid": "j0"}, "uid"),
        ({"uid": "u"}, {"uid": "u"}, "uid"),
        ({"uid": "j1"}, {}, "uid"),
        ({"uid": "u"}, {"id": "j0"}, "id"),
        ({"uid": "u"}, {"uid": "j0"}, None),
        ({}, {"uid": "r"}, None),
        ({}, {"id": "r"}, "id"),
    ],
)
def test_ids_and_uids_are_told_apart(
    first: dict[str, object], second: dict[str, object], told: str | None
) -> None:
    """An id counts as the uid of a job that states none, and of no other."""
    assert told_of(first, second) == ([] if told is None else [f"jobs[1].{told}"])


@pytest.mark.parametrize("at", [0, 10, MANY - 1])
@pytest.mark.parametrize("again", ['"tenant": "x"', '"ten\\u0061nt": "x"', '"demand": {"cpu": 1, "cpu": 1}'])
def test_a_key_given_twice_among_many_is_told(at: int, again: str) -> None:
    texts = [json.dumps(job) for job in many()]
    texts[at] = texts[at].replace('"submitted"', f'{again}, "submitted"')
    text = json.dumps(AROUND)[:-1] + f', "jobs": [{", ".join(texts)}]' + "}"
    with pytest.raises(DocumentError) as raised:
        decode_snapshot(text.encode())
    told = {problem.field: problem.reason for problem in raised.value.problems}
    name = "demand" if "demand" in again else "tenant"
    assert set(told) == {f"jobs[{at}].{name}"}
    assert all(reason.startswith("is given twice") for reason in told.values())


@pytest.mark.parametrize("name", ["a:b", "a\\u003ab"])
def test_a_colon_in_a_name_is_no_key(name: str) -> None:
    texts = [json.dumps(job) for job in many()]
    texts[10] = texts[10].replace('"j10"', f'"{name}"')
    text = json.dumps(AROUND)[:-1] + f', "jobs": [{", ".join(texts)}]' + "}"
    assert decode_snapshot(text.encode()).jobs[10].id == "a:b"


def test_an_amount_with_keys_that_only_yaml_has_is_told() -> None:
    job = {"id": "j", "tenant": "x", "demand": {"memory": {None: 1}}}
    with pytest.raises(DocumentError) as caught:
        read_snapshot({**AROUND, "jobs": [job | {"submitted": NOW}], "running": [job | {"id": "r"}]})
    fields = [problem.field for problem in caught.value.problems]
    assert fields == [f"{key}[0].demand.memory" for key in ("running", "jobs")]
