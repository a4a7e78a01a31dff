"""Names in subjects and keys: any Unicode name makes one valid token, and comes back as it was; what may stand there."""

import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_contracts import subjects
from fairlead_contracts.base.errors import FieldError, MalformedError
from fairlead_contracts.base.tokens import (
    MAX_TOKEN,
    NO_NAME,
    decode_key,
    decode_token,
    encode_key,
    encode_token,
)
from fairlead_contracts.messages.decisions import Decision, StatedPastUse, is_decided_at
from fairlead_contracts.messages.state import NodeState, is_stated_at, subject_of
from fairlead_contracts.topology import StreamSpec, topology

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")
"""Characters of a NATS KV key; it may not begin or end with a dot."""
CLUSTERS = ["c1", "gpu.eu-west", "Zürich 2"]


@given(NAMES)
@example("a.b")
@example("a b\tc\r\n")
@example("_")
@example("*")
@example(">")
@example("%2E")
@example("=2E")
@example("~")
@example("$SYS")
@example("ünï-cödé-日本-🚢")
@example("\x00")
def test_any_name_is_one_token_and_comes_back(name: str) -> None:
    token = encode_token(name)
    assert not set(token) & set(". *>\t\r\n\x00~")
    assert token != NO_NAME
    assert token.isascii()
    assert decode_token(token) == name


@given(NAMES)
@example(".")
@example("=")
@example("_")
def test_any_name_is_part_of_a_key_and_comes_back(name: str) -> None:
    part = encode_key(name)
    assert KEY.fullmatch(part)
    assert "." not in part
    assert decode_key(part) == name


@given(NAMES, NAMES)
def test_two_names_never_share_a_token(one: str, other: str) -> None:
    assert (encode_token(one) == encode_token(other)) == (one == other)
    assert (encode_key(one) == encode_key(other)) == (one == other)


@pytest.mark.parametrize("name", ["", "\ud800", "x" * (MAX_TOKEN + 1), "日" * 200])
def test_a_name_that_cannot_be_a_token_is_refused(name: str) -> None:
    with pytest.raises(FieldError, match="name"):
        encode_token(name)


def test_tokens_that_were_never_encoded_come_back_as_they_are() -> None:
    assert decode_token("team-a") == "team-a"
    assert decode_token("%zz") == "%zz"
    assert decode_token("%FF") == "\ufffd"


@given(NAMES, NAMES, st.none() | NAMES)
def test_a_state_subject_names_its_object(cluster: str, name: str, scope: str | None) -> None:
    subject = subjects.state(cluster, "job", name, scope=scope)
    assert subjects.parse_state(subject) == (cluster, "job", scope, name)


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "fairlead.v1.state.c1.job.a",
        "fairlead.v1.state.c1.job.a.b.c",
        "fairlead.v2.state.c1.job.a.b",
        "x.fairlead.v1.state.a.b",
    ],
)
def test_a_subject_that_is_not_of_the_state_is_malformed(subject: str) -> None:
    with pytest.raises(MalformedError, match="state"):
        subjects.parse_state(subject)


@given(NAMES, NAMES)
def test_a_submit_subject_names_its_tenant(cluster: str, tenant: str) -> None:
    assert subjects.tenant_of_submit(subjects.submit(cluster, tenant)) == tenant


def test_dots_that_a_sender_did_not_encode_stay_part_of_the_tenant() -> None:
    assert subjects.tenant_of_submit("fairlead.v1.submit.c1.team.a") == "team.a"


@pytest.mark.parametrize("subject", ["", "fairlead.v1.submit.c1", "fairlead.v1.submit.c1.", "other.c1.t"])
def test_a_subject_that_is_no_submit_is_malformed(subject: str) -> None:
    with pytest.raises(MalformedError, match="submit"):
        subjects.tenant_of_submit(subject)


def matches(pattern: str, subject: str) -> bool:
    """NATS' own rule: `*` is one token, `>` one or more at the end."""
    wanted, found = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(found) > place
        if place >= len(found) or part not in ("*", found[place]):
            return False
    return len(wanted) == len(found)


def takers(subject: str) -> list[StreamSpec]:
    return [
        stream
        for stream in topology(CLUSTERS).streams
        if any(matches(pattern, subject) for pattern in stream.subjects)
    ]


@given(st.sampled_from(CLUSTERS), NAMES, NAMES, st.integers(0, 255))
def test_every_stored_subject_falls_into_exactly_one_stream(
    cluster: str, one: str, two: str, number: int
) -> None:
    stored = {
        "state": [subjects.state(cluster, "job", one, scope=two), subjects.mark(cluster)],
        "decision": [subjects.decision(one, number)],
        "submit": [subjects.submit(cluster, one), subjects.submit(subjects.ANY_CLUSTER, one)],
        "answer": [subjects.answer(one, two)],
        "event": [subjects.event(one, cluster, two)],
        "dead": [
            subjects.dead(subjects.submit(cluster, one)),
            subjects.dead(subjects.event(one, cluster, two)),
        ],
    }
    for stream, of_it in stored.items():
        for subject in of_it:
            assert [spec.name for spec in takers(subject)] == [stream], subject


@given(NAMES, NAMES, st.integers(0, 255))
def test_questions_and_requests_fall_into_no_stream(one: str, two: str, number: int) -> None:
    for subject in (
        subjects.ask("queue", one),
        subjects.ask("queue"),
        subjects.shard_question(one, number, "explain"),
        subjects.frontend(two, "create"),
        subjects.submit("a cluster that nobody knows", one),
    ):
        assert not takers(subject), subject


@given(NAMES, NAMES, NAMES)
def test_filters_take_their_own_and_nothing_else(cluster: str, other: str, name: str) -> None:
    pairs: list[tuple[str, Callable[[str], str]]] = [
        (subjects.state_filter(cluster), lambda where: subjects.state(where, "job", name)),
        (subjects.submit_filter(cluster), lambda where: subjects.submit(where, name)),
        (subjects.answer_filter(cluster), lambda where: subjects.answer(where, name)),
        (subjects.event_filter(cluster), lambda where: subjects.event(name, where, name)),
    ]
    for pattern, subject in pairs:
        assert matches(pattern, subject(cluster))
        assert matches(pattern, subject(other)) == (cluster == other)
    assert matches(subjects.ask_filter("queue"), subjects.ask("queue", name))
    assert not matches(subjects.ask_filter("queue"), subjects.ask("tenants", name))


@given(NAMES, NAMES)
def test_keys_are_valid_and_apart(one: str, two: str) -> None:
    keys = [
        subjects.member_key("scorer", one),
        subjects.leader_key("admitter", one),
        subjects.control_key(one),
        subjects.control_key(),
        subjects.route_key(one, two),
        subjects.DOCUMENT_KEY,
    ]
    assert all(KEY.fullmatch(key) and not key.startswith(".") and not key.endswith(".") for key in keys)
    assert subjects.control_key("_") != subjects.control_key()


def test_durables_are_apart_and_read_from_their_own_stream() -> None:
    found = topology(CLUSTERS)
    streams = {stream.name: stream for stream in found.streams}
    names = [(durable.stream, durable.name) for durable in found.durables]
    assert len(set(names)) == len(names)
    for durable in found.durables:
        assert not set(durable.name) & set(". *>/\\")
        assert any(
            matches(pattern, durable.filter.replace(">", "x").replace("*", "x"))
            for pattern in streams[durable.stream].subjects
        )


@pytest.mark.parametrize("clusters", [["any"], ["c1", "c1"]])
def test_a_cluster_needs_a_name_of_its_own(clusters: list[str]) -> None:
    with pytest.raises(FieldError, match="a name of its own"):
        topology(clusters)


def test_a_subject_too_long_to_prolong_still_has_a_dead_letter_subject() -> None:
    hostile = "fairlead.v1.submit.c1." + "x" * 4000
    assert len(subjects.dead(hostile)) < 100
    assert subjects.dead(hostile) != subjects.dead(hostile + "y")
    assert [spec.name for spec in takers(subjects.dead(hostile))] == ["dead"]


NODE = NodeState(cluster="c1", epoch=1, rev=1, name="n 1.x", allocatable={})
DECISION = Decision(pool="c1/gpu", shard=3, owner="s", epoch=7, turn=1, at=0, basis=None, revision={})


def test_an_object_is_stated_at_its_own_subject_alone() -> None:
    assert is_stated_at(subject_of(NODE), NODE)
    assert not is_stated_at(subjects.state("c1", "node", "n"), NODE)
    for other in ({"cluster": "c2"}, {"name": ""}, {"name": "\ud800"}, {"name": "x" * 2000}):
        assert not is_stated_at(subject_of(NODE), msgspec.structs.replace(NODE, **other))
    assert not is_stated_at(subjects.state("c1", "job", "n 1.x", scope="a"), NODE)


def test_a_decision_stands_at_its_shard_and_behind_its_claim() -> None:
    at = subjects.decision("c1/gpu", 3)
    assert is_decided_at(at, DECISION, 7)
    assert not is_decided_at(at, DECISION, 6), "its claim would be yet to come"
    assert not is_decided_at(subjects.decision("c1/gpu", 4), DECISION, 7)
    assert is_decided_at(at, StatedPastUse(pool="c1/gpu", shard=3), 1)
    assert not is_decided_at(at, StatedPastUse(pool="", shard=3), 1)
