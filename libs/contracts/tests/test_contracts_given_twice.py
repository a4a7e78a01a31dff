"""Keys that a JSON snapshot gives twice: refused by their path, however the file is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.json_text import WRITTEN_BY_HAND, parse_json
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot

JOB = '{"id": "j%s", "tenant": "t", "submitted": 5, "demand": {"cpu": 1}}'


def snapshot(*jobs: str, around: str = "") -> bytes:
    listed = ", ".join([JOB % "a", JOB % "b", *jobs])
    return (
        '{"now": 10, "pools": [{"name": "p", "capacity": {"cpu": 8, "memory": 1}}], "tenants": [{"name": "t"}]'
        f"{around}, "
        f'"jobs": [{listed}]}}'
    ).encode()


def twice(payload: bytes) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        decode_snapshot(payload)
    return [problem.field for problem in caught.value.problems if "is given twice" in problem.reason]


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (snapshot('{"id": "j", "tenant": "t", "submitted": 5, "demand": {}, "id": "k"}'), "jobs[2].id"),
        (snapshot('{"id" : "j", "id" : "j", "tenant": "t", "submitted": 5, "demand": {}}'), "jobs[2].id"),
        (snapshot('{"id": "j", "tenant": "t", "submitted": 5, "demand": {"cpu": 1, "cpu": 2}}'), "jobs[2].demand.cpu"),
        (
            snapshot('{"id": "j", "tenant": "t", "submitted": 5, "submitted": "1970-01-01T00:00:05Z", "demand": {}}'),
            "jobs[2].submitted",
        ),
        (
            # As many colons as a time has: two keys twice, and its own written as escapes.
            snapshot(
                '{"id": "j", "id": "j", "tenant": "t", "tenant": "t", "demand": {},'
                ' "submitted": "1970-01-01T00\\u003a00\\u003a05Z"}'
            ),
            "jobs[2].id",
        ),
        (
            snapshot('{"id": "j", "tenant": "t", "submitted": 5, "demand": {}, "level": null, "level": 3}'),
            "jobs[2].level",
        ),
        (
            snapshot('{"id": "j", "tenant": "t", "submitted": 5, "demand": {}, "gang": {"pods": 2, "pods": 3}}'),
            "jobs[2].gang.pods",
        ),
        (snapshot('{"id": "j:1", "tenant": "t", "submitted": 5, "demand": {}, "uid": "u", "uid": "v"}'), "jobs[2].uid"),
        (snapshot(around=', "now": 11'), "now"),
        (snapshot(around=', "jobs": []'), "jobs"),
        (snapshot(around=', "policy": {"aging": {"cap_days": 1, "cap_days": 2}}'), "policy.aging.cap_days"),
        (snapshot(around=', "running": [{"id": "r", "id": "s", "tenant": "t", "demand": {}}]'), "running[0].id"),
        (
            snapshot(around=', "nodes": [{"name": "n", "allocatable": {"cpu": 1, "cpu": 2}}]'),
            "nodes[0].allocatable.cpu",
        ),
        (b'{"now": 10, "now": 10, "pools": [{"name": "p", "capacity": {}}]}', "now"),
    ],
)  # fmt: skip
def test_a_key_that_is_given_twice_is_refused_by_its_path(payload: bytes, field: str) -> None:
    assert field in twice(payload)


def test_it_is_told_beside_all_that_is_wrong() -> None:
    with pytest.raises(DocumentError) as caught:
        decode_snapshot(snapshot('{"id": "j", "id": "k", "tenant": "nobody", "submitted": 5, "demand": {}}'))
    assert [problem.field for problem in caught.value.problems] == ["jobs[2].id", "jobs[2].tenant"]


ids = st.sampled_from(["j", "j:1", "a\\u003ab", "ü", '\\"x\\":y'])
times = st.sampled_from(
    ["5", '"1970-01-01T00:00:05Z"', '"1970-01-01T02:00:05+02:00"', '"1970-01-01T00:00:05+00:00"', "5.5"]
)
further = st.lists(
    st.sampled_from(
        [
            '"level": 3', '"level": null', '"queue": "q:1"', '"queue": "q"', '"uid": "a:b"', '"runtime_limit": 60',
            '"gang": {"pods": 2}', '"gang": null', '"class": "normal"', '"annotations": {"a:b": "c:d"}',
            '"queue_time": 7', '"queue_time": "1970-01-01T00:00:05Z"', '"frontend": "kueue"',
        ]
    ),
    max_size=4,
)  # fmt: skip


@given(ids, times, further, st.sampled_from([":", " : "]), st.booleans())
def test_what_is_refused_is_what_is_given_twice(
    name: str, time: str, parts: list[str], colon: str, alike: bool
) -> None:
    keys = [f'"id": "{name}"', '"tenant": "t"', f'"submitted": {time}', '"demand": {"cpu": 1}', *parts]
    job = ("{" + ", ".join(keys) + "}").replace('": ', f'"{colon}')
    others = (job.replace(f'"{name}"', f'"{name}2"').replace("a:b", "a:c"),) if alike else ()
    payload = snapshot(job, *others)
    found, problems = parse_json(payload)
    if problems:
        assert set(twice(payload)) == {problem.field for problem in problems}
    else:
        assert decode_snapshot(payload) == read_snapshot(found) == read_snapshot(json.loads(payload))


def test_a_large_file_is_a_programs_and_the_last_value_counts() -> None:
    filler = [JOB % number for number in range(WRITTEN_BY_HAND // len(JOB))]
    payload = snapshot(*filler, '{"id": "j", "id": "k", "tenant": "t", "submitted": 5, "demand": {}}')
    assert len(payload) > WRITTEN_BY_HAND
    assert decode_snapshot(payload).jobs[-1].id == "k"
    wrong = payload.replace(b'"id": "k"', b'"id": 5')
    assert twice(wrong) == [f"jobs[{len(filler) + 2}].id"]
