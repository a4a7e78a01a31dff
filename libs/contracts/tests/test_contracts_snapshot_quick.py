"""Jobs that are read at once, against the same jobs looked at closely one by one."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.errors import DocumentError
from fairlead_contracts.snapshot import Snapshot, decode_snapshot, read_snapshot
from fairlead_contracts.snapshot_parts import OpenedSnapshot, WrittenJob, WrittenSnapshot
from fairlead_contracts.snapshot_quick import LoadedJob

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
    """Most of it right: what is wrong is then found among much that is learned."""
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


def closely(found: dict[str, object]) -> Snapshot | DocumentError:
    try:
        return read_snapshot(found)
    except DocumentError as error:
        return error


def at_once(found: dict[str, object]) -> Snapshot | DocumentError:
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
    assert outcome(at_once(document)) == outcome(closely(document))


@given(st.lists(jobs(), max_size=30))
def test_what_is_right_is_the_same_by_both_ways(found: list[dict[str, object]]) -> None:
    taken: list[dict[str, object]] = []
    for number, job in enumerate(found):
        one = job | {"id": f"j{number}"}
        if isinstance(closely({**AROUND, "jobs": [*taken, one]}), Snapshot):
            taken.append(one)
    document = {**AROUND, "jobs": taken}
    assert at_once(document) == closely(document)


def test_both_ways_know_the_same_keys() -> None:
    def names(kind: type[msgspec.Struct]) -> set[tuple[str, bool]]:
        return {(one.encode_name, one.required) for one in msgspec.structs.fields(kind)}

    assert names(LoadedJob) == names(WrittenJob)
    assert names(OpenedSnapshot) == names(WrittenSnapshot)
