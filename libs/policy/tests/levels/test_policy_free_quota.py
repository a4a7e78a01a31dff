"""Jobs that fit into free quota, against a replay that adds the job and looks if a node holds too much then."""

from collections.abc import Mapping

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead_contracts.messages.state import CohortQuota, FlavorQuota, JobShape
from fairlead_policy.levels.free_quota import FreeQuota
from fairlead_testkit.inputs.builders import a_job, a_queue
from fairlead_testkit.inputs.cases import cases

GPU = "gpu"


def quota(
    nominal: int, borrowing: int | None = None, lending: int | None = None, *, flavor: str = "f"
) -> FlavorQuota:
    return FlavorQuota(
        flavor=flavor,
        nominal={GPU: nominal},
        borrowing={} if borrowing is None else {GPU: borrowing},
        lending={} if lending is None else {GPU: lending},
    )


def fits(room: FreeQuota, gpus: int, queue: str = "a") -> bool:
    return room.fits(a_job("x", queue=queue, demand={GPU: gpus}))


def test_a_job_takes_one_flavor_for_each_of_its_pod_sets() -> None:
    queue = a_queue(name="a", quotas=[quota(2, flavor="x"), quota(2, flavor="y")])
    shapes = [JobShape(name=name, pods=1, demand={GPU: 2}) for name in ("one", "two")]
    room = FreeQuota([queue], [], {})
    assert not fits(room, 4)
    assert room.fits(a_job("x", queue="a", demand={GPU: 4}, shapes=shapes))
    assert not room.fits(a_job("x", queue="a", demand={GPU: 6}, shapes=[*shapes, shapes[0]]))


def test_a_job_has_no_room_in_a_flavor_that_the_frontend_says_refuses_it() -> None:
    queue = a_queue(name="a", quotas=[quota(2, flavor="x"), quota(2, flavor="y")])
    room = FreeQuota([queue], [], {"a": {("y", GPU): 2}})
    assert fits(room, 1), "in x"
    refused = a_job("r", queue="a", demand={GPU: 1}, refused_by=("x",))
    assert not room.fits(refused), "y is used up"
    assert not room.fits(msgspec.structs.replace(refused, refused_by=("x", "y")))
    room.hold("a", {("y", GPU): 1}, sign=-1)
    assert room.placed(refused) == {("y", GPU): 1}


def test_a_queue_that_states_no_quota_or_starts_nothing_has_no_room() -> None:
    assert not fits(FreeQuota([a_queue(name="a")], [], {}), 1)
    assert not fits(FreeQuota([a_queue(name="a", quotas=[quota(4)], active=False)], [], {}), 1)
    assert not fits(FreeQuota([], [], {}), 1)


def test_cohorts_in_a_circle_end_nothing() -> None:
    cohorts = [CohortQuota(name="p", parent="q"), CohortQuota(name="q", parent="p")]
    assert fits(FreeQuota([a_queue(name="a", cohort="p", quotas=[quota(1)])], cohorts, {}), 1)


limits = st.none() | st.integers(0, 4)
amounts = st.integers(0, 5)


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, tuple[str, FlavorQuota]], dict[str, int]]:
    """Nodes by name, each with the one above it; and what is held in the queues."""
    nodes = {"top": ("", quota(draw(amounts)))}
    for name in ("left", "right"):
        nodes[name] = ("top", quota(draw(amounts), draw(limits), draw(limits)))
    for name in ("a", "b", "c"):
        above = draw(st.sampled_from(["top", "left", "right"]))
        nodes[name] = (above, quota(draw(amounts), draw(limits), draw(limits)))
    return nodes, {name: draw(amounts) for name in ("a", "b", "c")}


def holds(nodes: Mapping[str, tuple[str, FlavorQuota]], held: Mapping[str, int], queue: str) -> bool:
    """Whether a queue, and whoever is above it, holds no more than it has and may borrow.

    A node hands up what it holds beyond what it does not lend; nothing is subtracted from what is free.
    """

    def sums(name: str) -> tuple[int, int]:
        above, own = nodes[name]
        below = [sums(child) for child, (parent, _) in nodes.items() if parent == name]
        total = own.nominal[GPU] + sum(quota for quota, _ in below)
        used = held.get(name, 0) + sum(use for _, use in below)
        kept = max(0, total - own.lending[GPU]) if own.lending and above else 0
        return total - kept, max(0, used - kept)

    def totals(name: str) -> tuple[int, int]:
        below = [sums(child) for child, (parent, _) in nodes.items() if parent == name]
        own = nodes[name][1]
        return own.nominal[GPU] + sum(quota for quota, _ in below), held.get(name, 0) + sum(
            use for _, use in below
        )

    at = queue
    while at:
        above, own = nodes[at]
        total, used = totals(at)
        if not above:
            return used <= total
        if own.borrowing and used > total + own.borrowing[GPU]:
            return False
        if used <= (max(0, total - own.lending[GPU]) if own.lending else 0):
            return True  # nothing of it is felt above
        at = above
    return True


def room_of(nodes: Mapping[str, tuple[str, FlavorQuota]], held: Mapping[str, int]) -> FreeQuota:
    return FreeQuota(
        [a_queue(name=name, cohort=nodes[name][0], quotas=[nodes[name][1]]) for name in ("a", "b", "c")],
        [
            CohortQuota(name=name, parent=nodes[name][0], quotas=[nodes[name][1]])
            for name in ("top", "left", "right")
        ],
        {name: {("f", GPU): amount} for name, amount in held.items()},
    )


@given(trees(), st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5)), max_size=6))
def test_what_is_held_later_leaves_the_same_room_as_what_was_held_from_the_start(
    tree: tuple[dict[str, tuple[str, FlavorQuota]], dict[str, int]], changes: list[tuple[str, int]]
) -> None:
    nodes, held = tree
    room, now = room_of(nodes, held), dict(held)
    for queue, amount in changes:
        more = max(amount, -now[queue])
        room.hold(queue, {("f", GPU): abs(more)}, sign=1 if more > 0 else -1)
        now[queue] += more
    anew = room_of(nodes, now)
    assert [room.free(queue, ("f", GPU)) for queue in "abc"] == [
        anew.free(queue, ("f", GPU)) for queue in "abc"
    ]


@settings(max_examples=cases(5))
@given(trees(), st.integers(1, 6), st.sampled_from("abc"))
def test_what_fits_is_what_breaks_no_limit(
    tree: tuple[dict[str, tuple[str, FlavorQuota]], dict[str, int]], gpus: int, queue: str
) -> None:
    nodes, held = tree
    # Where somebody holds too much already, Kueue subtracts that from what others keep for themselves: see below.
    assume(all(holds(nodes, held, name) for name in held))
    room = room_of(nodes, held)
    assert fits(room, gpus, queue) == holds(nodes, {**held, queue: held[queue] + gpus}, queue)


def test_what_is_held_above_beyond_all_quota_is_missing_below_as_in_kueue() -> None:
    nodes = {
        "top": ("", quota(0)),
        "left": ("top", quota(1, None, 0)),
        "right": ("top", quota(0)),
        "a": ("top", quota(0)),
        "b": ("left", quota(1)),
        "c": ("top", quota(0)),
    }
    assert room_of(nodes, {"a": 0, "b": 0, "c": 0}).free("b", ("f", GPU)) == 2
    assert room_of(nodes, {"a": 0, "b": 0, "c": 1}).free("b", ("f", GPU)) == 1
