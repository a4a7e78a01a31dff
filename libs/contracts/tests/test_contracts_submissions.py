"""Submissions: every kind of bad input is refused with its field, value and reason; good ones become exact."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import ContractError, FieldError, MalformedError, UnsupportedVersionError
from fairlead_contracts.base.json_text import parse_json
from fairlead_contracts.messages.submissions import (
    MAX_PAYLOAD,
    MAX_RESOURCES,
    Cancellation,
    Submission,
    is_cancellation,
    peek_id,
    read_request,
    read_submission,
    unheeded,
)
from fairlead_testkit.inputs.builders import a_body, a_cancellation, a_submission

DEEP = b"[" * 100_000


class _Pairs(list[tuple[str, object]]):
    """An object as it is written, keys twice or not."""


def _written(made: object) -> str:
    if isinstance(made, _Pairs):
        return "{" + ",".join(f"{json.dumps(key)} :{_written(value)}" for key, value in made) + "}"
    if isinstance(made, list):
        return "[" + ",".join(map(_written, made)) + "]"
    return json.dumps(made)


def _duplicates(made: object, where: str) -> Iterator[str]:
    """The path of each key that some object has more than once, among the values that count: the last of each key."""
    if isinstance(made, _Pairs):
        names = [name for name, _ in made]
        yield from (f"{where}.{name}".lstrip(".") for name in set(names) if names.count(name) > 1)
        for name, part in dict(made).items():
            yield from _duplicates(part, f"{where}.{name}".lstrip("."))
    elif isinstance(made, list):
        for at, part in enumerate(made):
            yield from _duplicates(part, f"{where}[{at}]")


def read(payload: bytes) -> Submission:
    return read_submission(payload, tenant="team-a", fallback_id="seq-7")


def test_a_body_becomes_a_submission_in_base_units() -> None:
    found = read(a_body(class_="urgent", queue="main", pods=2, labels={"app": "x"}, run_limit_seconds=700.5))
    assert found == Submission(
        id="train-1",
        tenant="team-a",
        demand={"cpu": 4000, "memory": 16 * 2**30, "nvidia.com/gpu": 1000},
        pods=2,
        job_class="urgent",
        queue="main",
        run_seconds=600.0,
        run_limit_seconds=700.5,
        labels={"app": "x"},
    )


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b'{"run_seconds": NaN}', "invalid character (byte 16)"),
        (b"", "Input data was truncated"),
        (b"\xff\xfe", "its text must be in UTF-8 (byte 0)"),
    ],
)
def test_what_is_wrong_with_a_body_is_said_once(payload: bytes, why: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read(payload)
    assert str(caught.value) == f"the body is not valid JSON: {why}"


def test_a_body_without_an_id_takes_the_one_of_its_message() -> None:
    assert read(a_body(id=None)).id == "seq-7"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cancel": "yes"}, "cancel"),
        ({"cancel": True, "demand": {"cpu": 1}}, "demand"),
        ({"cancel": True, "pods": 1}, "pods"),
        ({"cancel": True, "id": None}, "id"),
        ({"cancel": True, "id": "a b"}, "id"),
        ({"cancel": True, "id": 7}, "id"),
        ({"cancel": True, "tenant": "team-b"}, "tenant"),
    ],
)
def test_a_cancellation_names_one_job_of_the_subjects_tenant_by_its_id_alone(
    body: dict[str, object], field: str
) -> None:
    def asked(**more: object) -> Submission | Cancellation:
        payload = json.dumps({"id": "train-1"} | more).encode()
        return read_request(payload, tenant="team-a", fallback_id="seq-7")

    assert asked(cancel=True, newer=1) == Cancellation("team-a", "train-1")
    with pytest.raises(FieldError) as caught:
        asked(**body)
    assert caught.value.field == field
    with pytest.raises(UnsupportedVersionError):
        asked(cancel=True, v=2)


def test_who_does_not_cancel_submits_what_an_older_client_would() -> None:
    assert read_request(a_body(cancel=False), tenant="team-a", fallback_id="seq-7") == read(a_body())
    assert [is_cancellation(one) for one in (a_body(cancel=False), a_cancellation("x"), b"[1]")] == [
        False,
        True,
        False,
    ]
    with pytest.raises(FieldError, match="is for one cluster"):
        read(a_cancellation("x"))


def test_a_manifest_of_kubernetes_is_refused_with_what_to_do_with_it() -> None:
    manifest = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "train"}, "spec": {}}
    with pytest.raises(FieldError, match="is missing: a manifest of Kubernetes is not taken") as caught:
        read(json.dumps(manifest).encode())
    assert caught.value.field == "demand"
    with pytest.raises(FieldError) as caught:
        read(b"{}")
    assert caught.value.reason == "is missing"


def test_fields_of_a_newer_minor_version_are_accepted() -> None:
    assert read(a_body(a_field_of_tomorrow=[1, {"a": None}])) == read(a_body())


def test_what_counts_for_nothing_is_told_with_what_was_meant() -> None:
    assert unheeded(a_body()) == []
    body = json.loads(a_body()) | {"prioirty": "urgent", "run_second": 3, "newer": {"a": 1}}
    assert unheeded(json.dumps(body).encode()) == [
        '"prioirty" is not a field of a job, so it counts for nothing; did you mean class?',
        '"run_second" is not a field of a job, so it counts for nothing; did you mean run_seconds?',
        '"newer" is not a field of a job, so it counts for nothing',
    ]
    assert unheeded(b'{"id": "a", "demand": {"cpu": 1, "cpu": 2}}') == [
        "demand.cpu: is given twice: only the last one counts"
    ]
    flood = {f"odd{number}": number for number in range(10_000)}
    assert len(unheeded(json.dumps(flood).encode())) == 8 + 1, "and that it is long"


@pytest.mark.parametrize(
    "where", ['"odd": "%"', '"%": 1', '"odd": {"a": "%"}', '"labels": {"a": "%"}', '"id": "%"']
)
def test_a_body_that_is_no_text_is_refused_wherever_that_stands(where: str) -> None:
    body = b'{"demand": {"cpu": 1}, ' + where.encode().replace(b"%", b"\xf3") + b"}"
    with pytest.raises(MalformedError):
        read(body)


@pytest.mark.parametrize("odd", [b"9" * 5000, DEEP[:700] + b"]" * 700, b"1e999"])
def test_what_nobody_reads_of_a_body_stops_no_answer(odd: bytes) -> None:
    body = b'{"id": "a", "demand": {"cpu": 1}, "odd": ' + odd + b"}"
    assert read(body).id == "a"
    assert unheeded(body) == ['"odd" is not a field of a job, so it counts for nothing']


@given(st.recursive(st.integers() | st.sampled_from([":", "a:b", None]), lambda inner: st.lists(inner, max_size=3)
       | st.lists(st.tuples(st.sampled_from(["a", "b", "a:"]), inner), max_size=3).map(_Pairs)))  # fmt: skip
def test_duplicate_keys_are_found_at_any_depth(made: object) -> None:
    _, told = parse_json(_written(made).encode())
    assert sorted(one.field for one in told) == sorted(_duplicates(made, ""))


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"id": "a", "demand": {"cpu": 1}, "odd": [' + b'{"a":1,"a":1},' * 16_000 + b"{}]}",
        b'{"id": "a", "demand": {' + b",".join(b'"r%d":1' % number for number in range(20_000)) + b"}}",
    ],
    ids=["keys given twice", "resources"],
)
def test_no_body_takes_the_time_of_hundreds(hostile: bytes) -> None:
    """One of the first took 144 ms, of the second 33: ten times as long as decoding it."""
    assert 200_000 < len(hostile) < MAX_PAYLOAD
    plain = least_seconds(lambda: json.loads(hostile))

    def taken_in() -> None:
        with contextlib.suppress(ContractError):
            read(hostile)
            unheeded(hostile)

    assert least_seconds(taken_in) < 4 * plain


def least_seconds(call: Callable[[], object]) -> float:
    """CPU of this thread that it takes, at best."""
    took = []
    for _ in range(5):
        before = time.thread_time()
        call()
        took.append(time.thread_time() - before)
    return min(took)


def test_a_job_asks_for_so_many_resources_at_most() -> None:
    many = {f"r-{number}": 1 for number in range(MAX_RESOURCES)}
    assert len(read(a_body(demand=many)).demand) == MAX_RESOURCES
    with pytest.raises(FieldError) as caught:
        read(a_body(demand=many | {"one-more": 1}))
    assert str(caught.value) == 'demand: a job may ask for up to 64 resources (found "65 resources")'


def test_nobody_looks_for_keys_given_twice_in_a_long_body_and_the_answer_says_so() -> None:
    told = "the body is longer than 16384 bytes, so nobody looked for keys that are given twice"
    assert unheeded(a_body(odd="x" * 16_384)) == [
        '"odd" is not a field of a job, so it counts for nothing',
        told,
    ]
    assert unheeded(a_body(labels={"a": "x" * 16_000})) == []


def test_a_long_value_is_quoted_as_it_was_written() -> None:
    with pytest.raises(FieldError) as caught:
        read(b'{"id": "a", "demand": [' + b"1,  " * 500 + b"1]}")
    assert "(found [1,  1,  1,  " in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_resource_asked_for_with_zero_is_not_asked_for() -> None:
    assert read(a_body(demand={"cpu": 1, "nvidia.com/gpu": 0})).demand == {"cpu": 1000}
    assert read(a_body(demand={"cpu": "1m", "nvidia.com/gpu": "2000m"})).demand == {
        "cpu": 1,
        "nvidia.com/gpu": 2000,
    }


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"{", b'{"id": "a"', b"nonsense", b'{"demand": {"cpu": NaN}}', b'{"demand": {"cpu": Infinity}}',
        b"\xff\xfe", '{"demand": {"cpu": 1}}'.encode("utf-16"), b'{"demand": {"cpu": 1}} trailing',
        b'{"a":' + DEEP, DEEP, b"[]", b"null", b'"text"', b"1",
    ],
    ids=lambda payload: repr(payload[:24]),
)  # fmt: skip
def test_what_is_no_json_object_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedError):
        read(payload)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"demand": None}, "demand"),
        ({"demand": []}, "demand"),
        ({"demand": {}}, "demand"),
        ({"demand": {"cpu": 0}}, "demand"),
        ({"demand": {"cpu": "-1"}}, "demand.cpu"),
        ({"demand": {"cpu": -1}}, "demand.cpu"),
        ({"demand": {"cpu": "NaN"}}, "demand.cpu"),
        ({"demand": {"cpu": "Infinity"}}, "demand.cpu"),
        ({"demand": {"cpu": "9" * 29}}, "demand.cpu"),
        ({"demand": {"cpu": 10**25}}, "demand.cpu"),
        ({"demand": {"memory": "17Ei"}}, "demand.memory"),
        ({"demand": {"cpu": True}}, "demand.cpu"),
        ({"demand": {"cpu": {}}}, "demand.cpu"),
        ({"demand": {"cpu": "many"}}, "demand.cpu"),
        ({"demand": {"nvidia.com/gpu": "1m"}}, "demand.nvidia.com/gpu"),
        ({"demand": {"nvidia.com/gpu": 0.5}}, "demand.nvidia.com/gpu"),
        ({"demand": {"nvidia.com/gpucores": "1000.0000001"}}, "demand.nvidia.com/gpucores"),
        ({"demand": {"a b": 1}}, "demand.a b"),
        ({"demand": {"": 1}}, "demand."),
        ({"demand": {"gpu/": 1}}, "demand.gpu/"),
        ({"demand": {"größe": 1}}, "demand.größe"),
        ({"id": "with a space"}, "id"),
        ({"id": "ünïcode"}, "id"),
        ({"id": ".hidden"}, "id"),
        ({"id": ""}, "id"),
        ({"id": "x" * 129}, "id"),
        ({"id": 7}, "id"),
        ({"tenant": "team-b"}, "tenant"),
        ({"tenant": 7}, "tenant"),
        ({"pods": 0}, "pods"),
        ({"pods": -1}, "pods"),
        ({"pods": 100_001}, "pods"),
        ({"pods": 1.5}, "pods"),
        ({"pods": "1"}, "pods"),
        ({"run_seconds": 0}, "run_seconds"),
        ({"run_seconds": -1}, "run_seconds"),
        ({"run_seconds": 1e12}, "run_seconds"),
        ({"run_seconds": "an hour"}, "run_seconds"),
        ({"run_limit_seconds": 0}, "run_limit_seconds"),
        ({"class_": 1}, "class"),
        ({"queue": []}, "queue"),
        ({"labels": {"a": 1}}, "labels"),
        ({"labels": []}, "labels"),
        ({"v": "1"}, "v"),
        ({"v": 1.0}, "v"),
    ],
    ids=str,
)
def test_a_wrong_field_is_refused_by_name(changes: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as refused:
        read(a_body(**changes))
    assert refused.value.field == field
    assert refused.value.reason
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 400])
def test_a_number_that_fits_nowhere_is_told_by_field_and_does_not_hide_the_id(number: bytes) -> None:
    body = b'{"id": "mine", "demand": {"cpu": ' + number + b"}}"
    assert peek_id(body) == "mine"
    with pytest.raises(FieldError) as refused:
        read(body)
    assert refused.value.field == "demand.cpu"


@pytest.mark.parametrize("body", [b'{"v": 2}', b'{"v": 0, "demand": 7}', b'{"demand": [], "id": 5, "v": 2}'])
def test_another_major_version_is_the_reason_whatever_else_is_wrong(body: bytes) -> None:
    with pytest.raises(UnsupportedVersionError, match="this release reads version 1"):
        read(body)


def test_names_with_dots_are_fine_where_they_are_fine() -> None:
    assert read(a_body(id="train.v1.2", queue="eu.west")).id == "train.v1.2"


def test_our_limit_of_the_payload_is_told() -> None:
    largest = a_body(labels={"x": ""})
    filled = a_body(labels={"x": "x" * (MAX_PAYLOAD - len(largest))})
    assert len(filled) == MAX_PAYLOAD
    assert read(filled).id == "train-1"
    with pytest.raises(FieldError, match="262145 bytes") as refused:
        read(filled + b" ")
    assert refused.value.field == "body"
    assert peek_id(filled + b" ") == "train-1"


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (a_body(), "train-1"),
        (a_body(demand="wrong"), "train-1"),
        (a_body(v=9), "train-1"),
        (a_body(id="not valid, but addressable"), "not valid, but addressable"),
        (a_body(id=""), None),
        (a_body(id="x" * 129), None),
        (a_body(id=7), None),
        (a_body(id=None), None),
        (b"[]", None),
        (b"{", None),
        (DEEP, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_id_is_found_however_wrong_the_rest_is(payload: bytes, found: str | None) -> None:
    assert peek_id(payload) == found


@given(st.binary(max_size=200))
def test_garbage_raises_errors_of_this_library_alone(garbage: bytes) -> None:
    peek_id(garbage)
    with pytest.raises(ContractError):
        read(garbage)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["v", "id", "demand", "pods", "class", "run_seconds", "labels"]), JSON)
    | st.fixed_dictionaries(
        {"demand": st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(-1, 2))}
    )
)
@example({"demand": {"cpu": 1}})
@example({"demand": {"cpu": 1, "memory": 0}})
@example({"demand": {"cpu": 1, "memory": -1}})
def test_any_values_in_our_fields_are_taken_or_refused_by_name(body: dict[str, object]) -> None:
    payload = json.dumps(json.loads(a_body()) | body).encode()
    peek_id(payload)
    try:
        found = read(payload)
    except ContractError:
        return
    assert all(amount > 0 for amount in found.demand.values())


def test_the_digest_tells_bodies_apart_and_forgets_the_trace() -> None:
    one = a_submission()
    assert one.digest() == a_submission(traceparent="00-1-2-03").digest()
    for other in (
        a_submission(demand={"cpu": 1}),
        a_submission(run_seconds=601.0),
        a_submission(labels={"a": "b"}),
        a_submission(job_class="urgent"),
        a_submission(tenant="team-b"),
    ):
        assert other.digest() != one.digest()


def test_the_digest_does_not_depend_on_how_a_body_is_written() -> None:
    one = b'{"id":"a","demand":{"cpu":"1000m","memory":"1Gi"}}'
    other = b'{"demand":{"memory":1073741824,"cpu":1.0},"pods":1,"id":"a","v":1}'
    assert read(one).digest() == read(other).digest()


def test_the_digest_stays_the_same_from_release_to_release() -> None:
    # A job that an older release made must not look like another body to this one.
    assert a_submission().digest() == "b8c563a1b2928e2aa41360da2e0ba0b6"
    classed = Submission(id="a", tenant="t", demand={"cpu": 1}, job_class="urgent")
    assert classed.digest() == "7fd96673e3cf607cd4d08940eab1c49c"
