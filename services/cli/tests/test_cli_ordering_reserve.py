"""Reserve mode on paper: the head, its promise, and who passes, as data and in words."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_cli.paper.arranging import order
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.results import as_json
from fairlead_contracts.policyfile.read import read_document
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_contracts.snapshot.types import Snapshot, SnapshotNode

NOW = 1_760_000_000
POLICY = {
    "mode": "reserve",
    "aging": {"entitlement_per_day": 100_000},
    "reserve": {"reaction_seconds": 10, "grace_seconds": 30},
}


class PrintedReserve(msgspec.Struct):
    why_not: str
    head: str | None
    shadow: str | None
    in_its_way: list[str]
    passing: list[str]
    aside: list[str]
    behind: list[str] = []


class PrintedFit(msgspec.Struct):
    answer: str
    why: list[str] = []


class PrintedJob(msgspec.Struct):
    id: str
    reasons: list[str]
    fit: PrintedFit | None = None


class PrintedPool(msgspec.Struct):
    order: list[PrintedJob]
    reserve: PrintedReserve


class PrintedOrder(msgspec.Struct):
    pools: list[PrintedPool]


def a_job(name: str, gpus: int, after: int, limit: float | None = None, **more: object) -> dict[str, object]:
    plain = {"id": name, "tenant": "a", "submitted": NOW - 1000 + after, "demand": {"gpu": gpus}}
    return plain | ({} if limit is None else {"runtime_limit": limit}) | more


CLASSES = ["urgent", "approved", "normal"]
ADVISE = read_document({k: v for k, v in POLICY.items() if k != "mode"})
BY_CLASS = {
    "queues": [{"name": "q", "frontend": "kueue", "bands_by_class": True}],
    "class_values": [
        {"class": "urgent", "value": 3_000_000},
        {"class": "approved", "value": 2_000_000},
        {"class": "normal", "value": 0},
    ],
}


def a_snapshot(
    *jobs: dict[str, object],
    ends: int | None = NOW + 600,
    stated: bool = False,
    quota: int | None = None,
    **policy: object,
) -> Snapshot:
    """A snapshot; `stated` adds Kueue's queue, whose levels keep classes apart, and `quota` what nodes have not."""
    kueue = {"frontend": "kueue", "queue": "q"} if stated else {}
    run: dict[str, object] = {"id": "r1", "tenant": "a", "demand": {"gpu": 6}}
    plain = {
        "now": NOW,
        "policy": POLICY | policy,
        "pools": [
            {"name": "p", "capacity": {"gpu": 8}} | ({} if quota is None else {"quota": {"gpu": quota}})
        ],
        "tenants": [{"name": "a"}],
        "running": [run | ({} if ends is None else {"ends": ends})],
        "jobs": [job | kueue for job in jobs],
    } | (BY_CLASS if stated else {})
    return read_snapshot(plain)


def answered(snapshot: Snapshot) -> PrintedPool:
    text = b"".join(as_json(order(snapshot, levels=False), snapshot.now))
    return msgspec.json.decode(text, type=PrintedOrder).pools[0]


BIG, SHORT, LONG, SLIM = (
    a_job("big", 8, 0, 60),
    a_job("short", 1, 1, 300),
    a_job("long", 1, 2, 900),
    a_job("slim", 1, 3, 60),
)


def test_the_head_has_a_promise_and_short_jobs_pass_it() -> None:
    found = answered(a_snapshot(BIG, SHORT, LONG, SLIM))
    assert (found.reserve.head, found.reserve.passing) == ("big", ["short", "slim"])
    assert found.reserve.shadow == "2025-10-09T09:03:50Z"
    assert [line.id for line in found.order] == ["short", "slim", "big", "long"]
    assert any("passes big" in reason for reason in found.order[0].reasons)


def test_jobs_that_fit_start_in_order_and_count_as_running() -> None:
    found = answered(a_snapshot(a_job("first", 1, -9, 700), BIG, SHORT, SLIM))
    assert [line.id for line in found.order] == ["first", "short", "big", "slim"]
    # It begins within twice the reaction time, and ends with its limit and the grace.
    assert found.reserve.shadow == "2025-10-09T09:05:50Z"


def test_what_fits_beside_the_head_needs_no_limit() -> None:
    found = answered(a_snapshot(a_job("big", 6, 0, 60), a_job("free", 1, 1)))
    assert found.reserve.passing == ["free"]


def test_a_run_without_an_end_leaves_the_head_without_a_promise() -> None:
    snapshot = a_snapshot(BIG, SHORT, ends=None)
    found = answered(snapshot)
    assert (found.reserve.shadow, found.reserve.in_its_way, found.reserve.passing) == (None, ["r1"], [])
    assert any("without a limit" in line for line in as_lines(order(snapshot, levels=False), snapshot))


def test_what_can_never_start_does_not_head_the_line() -> None:
    found = answered(a_snapshot(a_job("huge", 9, -5), BIG))
    assert (found.reserve.head, found.reserve.aside) == ("big", ["huge"])


def test_passes_are_looked_for_among_the_first_jobs_of_the_window() -> None:
    found = answered(a_snapshot(BIG, SHORT, LONG, SLIM, window=3))
    assert found.reserve.passing == ["short"]
    # Jobs before the head have started by then: the window begins with the head.
    found = answered(a_snapshot(a_job("first", 1, -9, 700), BIG, LONG, SLIM, window=2))
    assert (found.reserve.head, found.reserve.passing) == ("big", [])
    assert [line.id for line in found.order] == ["first", "big", "long", "slim"]


def test_a_head_that_the_window_does_not_reach_is_promised_nothing() -> None:
    """Quota holds the one before it, so it may start and takes a position, though its nodes are not there."""
    found = answered(a_snapshot(a_job("huge", 9, -5), BIG, SHORT, window=1, quota=9))
    assert "window" in found.reserve.why_not
    assert found.reserve.head is None


def test_what_cannot_start_takes_no_position_of_the_window_and_is_seen_no_further_than_it() -> None:
    huge, stuck = a_job("huge", 9, -5), SLIM | {"submitted": NOW, "flavorless": True}
    found = answered(a_snapshot(huge, BIG, SHORT, window=1))
    assert (found.reserve.head, found.reserve.passing) == ("big", [])
    found = answered(a_snapshot(huge, BIG, SHORT, LONG, stuck, window=2))
    assert (found.reserve.head, found.reserve.passing) == ("big", ["short"])


URGENT = {"class": "urgent"}


@pytest.mark.parametrize("stated", [False, True])
def test_nothing_is_promised_behind_what_never_starts_of_a_higher_class(stated: bool) -> None:
    snapshot = a_snapshot(a_job("huge", 9, 0) | URGENT, BIG, SHORT, stated=stated)
    found = answered(snapshot)
    assert [line.id for line in found.order] == ["huge", "big", "short"]
    assert (found.reserve.head, found.reserve.shadow, found.reserve.passing) == ("big", None, [])
    assert (found.reserve.behind, found.reserve.aside) == (["huge"], ["huge"])
    assert any("no job of a lower class starts" in reason for reason in found.order[0].reasons)
    assert any("that never start as things are: huge." in reason for reason in found.order[1].reasons)
    assert not any(
        "starts by" in reason or "passes" in reason for line in found.order for reason in line.reasons
    )


def test_what_never_starts_is_kept_behind_its_class_and_no_other() -> None:
    first, last = a_job("first", 8, 0, 60) | URGENT, a_job("last", 2, -9)
    found = answered(a_snapshot(a_job("huge", 9, -5) | URGENT, first, SHORT | URGENT, last))
    assert [line.id for line in found.order] == ["short", "first", "huge", "last"]
    assert (found.reserve.head, found.reserve.passing, found.reserve.behind) == ("first", ["short"], [])
    assert found.reserve.shadow is not None


def test_where_classes_are_terms_what_never_starts_stands_behind_all() -> None:
    weights = {"urgent": 0, "approved": 1, "normal": 2}
    found = answered(
        a_snapshot(a_job("huge", 9, 0) | URGENT, BIG, SHORT, class_mode="additive", class_weights=weights)
    )
    assert [line.id for line in found.order] == ["short", "big", "huge"]
    assert found.reserve.behind == []


@st.composite
def cases(draw: st.DrawFn) -> tuple[Snapshot, int]:
    """Jobs of all classes, some larger than the pool, and the policy's window."""
    window = draw(st.integers(1, 4))
    jobs = [
        a_job(f"j{at}", draw(st.integers(1, 10)), at, draw(st.sampled_from([60, 300, 900])))
        | {"class": draw(st.sampled_from(CLASSES))}
        for at in range(draw(st.integers(1, 8)))
    ]
    return a_snapshot(*jobs, window=window, stated=draw(st.booleans())), window


@settings(max_examples=200, deadline=None)
@given(cases())
def test_the_order_keeps_classes_apart_and_passes_stay_in_the_window(case: tuple[Snapshot, int]) -> None:
    snapshot, window = case
    found = answered(snapshot)
    classes = {job.id: CLASSES.index(job.job_class) for job in snapshot.jobs}
    ids = [line.id for line in found.order]
    ranks = [classes[one] for one in ids]
    assert ranks == sorted(ranks)
    head, promised = found.reserve.head, found.reserve.shadow is not None
    if head is None:
        assert not found.reserve.passing
        return
    before = ids[: ids.index(head)]
    assert not promised or not set(before) & set(found.reserve.aside), "Kueue stops at these"
    assert {classes[one] for one in found.reserve.passing} <= {classes[head]}
    assert promised or not found.reserve.passing
    [plain] = order(msgspec.structs.replace(snapshot, policy=ADVISE), levels=False)
    line = [position.id for position in plain.pool.positions if position.uid not in plain.pool.apart]
    assert all(line.index(one) - line.index(head) < window for one in found.reserve.passing)


def test_several_queues_cannot_keep_a_promise() -> None:
    found = answered(a_snapshot(BIG | {"queue": "x"}, SHORT | {"queue": "y"}))
    assert "2 queues" in found.reserve.why_not
    assert [line.id for line in found.order] == ["big", "short"]


def test_parts_of_cards_are_weighed_against_the_cards_that_nodes_register() -> None:
    """Two halves fill one card of two: the whole one is free, and each job starts."""
    cards = [{"uuid": "G1", "memory": 24000}, {"uuid": "G2", "memory": 24000}]
    half, memory = {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}, {"nvidia.com/gpumem": 12000}
    found = answered(
        read_snapshot(
            {
                "now": NOW,
                "policy": POLICY,
                "pools": [{"name": "p", "capacity": {"cpu": 64, "nvidia.com/gpu": 2}}],
                "tenants": [{"name": "a"}],
                "nodes": [{"name": "n1", "allocatable": {"cpu": 64}, "used": {}, "cards": cards}],
                "running": [
                    {"id": "r1", "tenant": "a", "demand": {"nvidia.com/gpu": 1} | memory, "ends": NOW + 600}
                ],
                "jobs": [
                    a_job("half", 0, 0, 60) | {"demand": half},
                    a_job("whole", 0, 1, 60) | {"demand": {"nvidia.com/gpu": 1}},
                    a_job("both", 0, 2, 60) | {"demand": {"nvidia.com/gpu": 2}},
                ],
            }
        )
    )
    assert [line.id for line in found.order] == ["half", "whole", "both"]
    assert (found.reserve.head, found.reserve.aside) == ("both", [])
    assert found.reserve.shadow == "2025-10-09T09:03:50Z"


def test_nodes_are_given_away_in_the_reserved_order_and_to_nobody_behind_the_head() -> None:
    snapshot = a_snapshot(BIG, SHORT | {"demand": {"gpu": 2}}, LONG, fit={"strategy": "binpack"})
    found = answered(on_nodes(snapshot, ("n1", 8, 6)))
    assert [(line.id, line.fit.answer) for line in found.order if line.fit] == [
        ("short", "placed"),
        ("big", "no-quota"),
        ("long", "no-quota"),
    ]


def test_what_is_left_beside_the_head_is_kept_for_it() -> None:
    snapshot = a_snapshot(BIG, SHORT, LONG, fit={"strategy": "binpack"})
    found = answered(on_nodes(snapshot, ("n1", 8, 6)))
    last = found.order[-1]
    assert last.id == "long"
    assert last.fit == PrintedFit(
        "no-quota", ["It waits behind big, the first of pool p that does not fit, and may not pass it."]
    )


def test_what_no_node_ever_holds_does_not_head_the_line() -> None:
    snapshot = a_snapshot(a_job("wide", 8, -5, 60), BIG | {"demand": {"gpu": 4}}, fit={"strategy": "binpack"})
    found = answered(on_nodes(snapshot, ("n1", 4, 4), ("n2", 4, 2)))
    assert (found.reserve.head, found.reserve.aside) == ("big", ["wide"])
    assert [line.id for line in found.order] == ["big", "wide"]
    assert any("No node can ever hold it" in reason for reason in found.order[1].reasons)
    assert not any("starts by" in reason for reason in found.order[1].reasons)


def on_nodes(snapshot: Snapshot, *nodes: tuple[str, int, int]) -> Snapshot:
    """The snapshot with these nodes: name, GPUs, GPUs in use."""
    listed = [
        SnapshotNode(name=name, allocatable={"gpu": 1000 * has}, used={"gpu": 1000 * use})
        for name, has, use in nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=listed)
