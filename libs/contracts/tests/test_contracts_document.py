"""The policy document: there and back, and every problem at once, each with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.policyfile.document import Aging, Grant, Match, PolicyDocument, Pool, Tenant
from fairlead_contracts.policyfile.read import decode_document, encode_document, read_document

FULL = PolicyDocument(
    classes=["urgent", "normal"],
    aging=Aging(entitlement_per_day=0.1, cap_days=None),
    resource_weights={"cpu": 0.0, "nvidia.com/gpu": 2.0},
    window=50,
    shards=4,
    preemption="protect",
    unlisted_weight=0.5,
    pools=[Pool(name="gpu", members=["c1/gpu", "c2/gpu"]), Pool(name="c3/cpu", members=["c3/cpu"])],
    tenants=[
        Tenant(name="a", weight=3, pool="gpu", match=Match(scopes=["x"], labels={"team": "a"})),
        Tenant(name="b", weight=0),
    ],
    grants=[Grant(tenant="a", classes=["urgent"], job="j1", by="ops", why="deadline")],
)


def problems_of(found: object) -> dict[str, str]:
    with pytest.raises(DocumentError) as refused:
        read_document(found)
    return {problem.field: problem.reason for problem in refused.value.problems}


@pytest.mark.parametrize("document", [PolicyDocument(), FULL], ids=["default", "full"])
def test_there_and_back_again(document: PolicyDocument) -> None:
    assert decode_document(encode_document(document)) == document


def test_every_problem_is_told_at_once_with_its_place() -> None:
    found = {
        "bogus": 1,
        "window": 0,
        "half_life_hours": 0,
        "bands": {"width": 5},
        "hierarchy": {"mode": "flat"},
        "shards": 257,
        "expected_unlisted": 0,
        "divide_by": "use",
        "aging": {"cap_days": -1, "entitlement_per_day": float("nan"), "speed": 1},
        "resource_weights": {"cpu": -1, "memory": float("inf")},
        "unlisted_weight": -1,
        "preemption": "maybe",
        "wake": "sometimes",
        "tenants": [
            {"name": "a b", "weight": "heavy"},
            {"weight": 1},
            {"name": "c", "weigth": 2, "match": {"scopes": "x"}},
            {"name": "c", "weight": 1e-9, "parent": "root", "pool": "nowhere"},
            5,
        ],
        "pools": [{"name": "p", "members": []}, {"name": "p", "members": ["x", "/y", "c/q", "c/q"]}, {"name": "c/z", "members": ["c/y"], "hardware": "shared"}],
        "grants": [{"tenant": "ghost", "classes": ["royal"]}],
    }  # fmt: skip
    assert set(problems_of(found)) == {
        "bogus", "window", "half_life_hours", "bands.width", "hierarchy.mode", "shards", "preemption", "wake", "unlisted_weight",
        "expected_unlisted", "divide_by",
        "aging.cap_days", "aging.entitlement_per_day", "aging.speed", "resource_weights.cpu", "resource_weights.memory",
        "tenants[0].name", "tenants[0].weight", "tenants[1].name", "tenants[2].weigth", "tenants[2].match.scopes",
        "tenants[3].name", "tenants[3].weight", "tenants[3].parent", "tenants[3].pool", "tenants[4]",
        "pools[0].members", "pools[1].name", "pools[1].members", "pools[2].name", "pools[2].hardware",
        "grants[0].tenant", "grants[0].classes",
    }  # fmt: skip


def test_what_is_not_of_its_type_is_told_in_words_with_its_place() -> None:
    found = {
        "classes": "urgent",
        "class_mode": "DRF",
        "mode": "Reserve",
        "fit": {"strategy": True},
        "aging": {"entitlement_per_day": 2_000_000_000_000, "cap_days": 0},
        "half_life_hours": 10**400,
        "resource_weights": {"cpu": "much", "gpu": 1, 3: 1},
        "window": 1.5,
        "unlisted_weight": "a",
        "bands": 5,
        "pools": [{"name": "b", "members": [3, "c/b"], "mode": "no"}, 7],
        "tenants": [{"name": "b", "match": {"labels": {"team": 3}}}],
        "grants": [{"tenant": "b", "classes": ["urgent"], "job": 5, "priority_override": "yes"}],
    }
    assert problems_of(found) == {
        "classes": "must be a list",
        "class_mode": "must be one of strict, additive, multiplicative, or a preset: drf, wdrf",
        "mode": "must be one of advise, reserve",
        "fit.strategy": "must be one of binpack, spread, none",
        "aging.entitlement_per_day": "must be a number from 0 to 1,000,000,000,000",
        "aging.cap_days": "must be above 0, and at most 1,000,000; leave it null for no cap",
        "half_life_hours": "is too large for a number here",
        "resource_weights.cpu": "must be a number",
        "resource_weights": "has a name that is not text: write it in quotes",
        "window": "must be a whole number",
        "unlisted_weight": "must be a number or null",
        "bands": "must be a mapping of keys and values",
        "pools[0].members[0]": "must be text",
        "pools[0].mode": "must be one of advise, reserve or null",
        "pools[1]": "must be a mapping of keys and values",
        "tenants[0].match.labels.team": "must be text",
        "grants[0].job": "must be text or null",
        "grants[0].priority_override": "must be true or false",
    }


def test_another_version_is_the_only_problem() -> None:
    assert list(problems_of({"version": 2, "bogus": 1, "window": -1})) == ["version"]
    assert list(problems_of({"version": True})) == ["version"]


@pytest.mark.parametrize("found", [None, [], "text", 7], ids=repr)
def test_what_is_no_mapping_is_refused(found: object) -> None:
    assert list(problems_of(found)) == ["document"]


@pytest.mark.parametrize("payload", [b"{", b"\xff", b"[" * 100_000], ids=lambda payload: repr(payload[:8]))
def test_what_is_no_json_is_refused(payload: bytes) -> None:
    with pytest.raises(DocumentError, match="not valid JSON"):
        decode_document(payload)


@pytest.mark.parametrize("classes", [[], ["a", "a"], ["a b"], None, "urgent"], ids=repr)
def test_classes_are_names_each_once(classes: object) -> None:
    assert any(field.startswith("classes") for field in problems_of({"classes": classes}))


def test_null_stands_where_it_means_something() -> None:
    found = read_document(
        {"aging": {"cap_days": None}, "unlisted_weight": None, "tenants": [{"name": "a", "match": None}]}
    )
    assert found.aging.cap_days is None
    assert found.tenants == [Tenant(name="a")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "weight", "match", "members", "tenant", "classes"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*PolicyDocument.__struct_fields__, "bogus"]), VALUES))
def test_any_document_is_read_or_refused_with_reasons(found: dict[str, object]) -> None:
    try:
        document = read_document(found)
    except DocumentError as error:
        reasons = [problem.reason for problem in error.problems]
    else:
        reasons = ["none: it is read, and stays what it is"]
        assert decode_document(encode_document(document)) == document
    assert reasons
    assert all(reasons)


def test_a_tree_is_read_and_every_fault_of_it_is_told_at_once() -> None:
    tree = [{"name": "org"}, {"name": "team", "parent": "org"}, {"name": "crew", "parent": "team"}]
    assert read_document({"tenants": tree}).tenants[2].parent == "team"
    found = {
        "tenants": [
            *tree,
            {"name": "lost", "parent": "nobody"},
            {"name": "b", "parent": "c"},
            {"name": "c", "parent": "b"},
            {"name": "self", "parent": "self"},
            {"name": "under", "parent": "b"},
            {"name": "holder", "match": {"scopes": ["x"]}},
            {"name": "held", "parent": "holder"},
        ]
    }
    reasons = problems_of(found)
    assert set(reasons) == {
        "tenants[3].parent",
        "tenants[4].parent",
        "tenants[6].parent",
        "tenants[8].match",
    }
    assert reasons["tenants[4].parent"] == "makes a cycle: b under c under b"


def test_a_parent_that_is_misspelled_elsewhere_is_told_only_there() -> None:
    found = {"tenants": [{"name": "org", "weight": "x"}, {"name": "team", "parent": "org"}]}
    assert set(problems_of(found)) == {"tenants[0].weight"}


def test_a_tenant_is_in_the_pool_of_those_above_it() -> None:
    pools = [{"name": name, "members": [f"c/{name}"]} for name in ("g", "h")]
    tree = [
        {"name": "o", "pool": "g"},
        {"name": "m", "parent": "o"},
        {"name": "same", "parent": "m", "pool": "g"},
        {"name": "other", "parent": "m", "pool": "h"},
        {"name": "everywhere"},
        {"name": "in-g", "parent": "everywhere", "pool": "g"},
        {"name": "in-h", "parent": "everywhere", "pool": "h"},
        {"name": "a", "parent": "b", "pool": "g"},
        {"name": "b", "parent": "a", "pool": "h"},
    ]
    reasons = problems_of({"pools": pools, "tenants": tree})
    assert set(reasons) == {"tenants[3].pool", "tenants[7].parent", "tenants[7].pool", "tenants[8].pool"}
    assert reasons["tenants[3].pool"].startswith("is not the pool of o, which is g:")
    assert read_document({"pools": pools, "tenants": [*tree[:3], *tree[4:7]]}).tenants[2].pool == "g"


def test_a_tree_is_no_deeper_than_positions_can_say() -> None:
    chain = [{"name": f"t{n}", **({"parent": f"t{n - 1}"} if n else {})} for n in range(18)]
    assert set(problems_of({"tenants": chain})) == {"tenants[16].parent", "tenants[17].parent"}


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({"class_mode": "additive"}, {"class_weights"}),
        ({"class_mode": "additive", "class_weights": {"urgent": -1, "approved": 0, "normal": 1}}, {"class_weights.urgent"}),
        ({"class_mode": "multiplicative", "class_weights": {"urgent": 1, "approved": 1, "normal": 0}}, {"class_weights.normal"}),
        ({"class_mode": "wdrf", "class_weights": {"urgent": 9, "approved": 8, "normal": 7, "royal": 1}}, {"class_weights.royal"}),
        ({"class_mode": "sorted"}, {"class_mode"}),
        ({"half_life_hours": -1}, {"half_life_hours"}),
        ({"half_life_hours": float("nan")}, {"half_life_hours"}),
        ({"tenants": [{"name": "a"}], "grants": [{"tenant": "a"}]}, {"grants[0].classes"}),
        ({"unlisted_weight": 1, "grants": [{"tenant": "b", "classes": ["urgent"]}]}, {"grants[0].tenant"}),
        ({"grants": [{"tenant": "b", "classes": ["urgent"], "job": "j"}]}, {"grants[0].tenant"}),
    ],
)  # fmt: skip
def test_modes_that_make_no_sense_are_refused(found: dict[str, object], fields: set[str]) -> None:
    assert set(problems_of(found)) == fields


@pytest.mark.parametrize(
    ("mode", "weights", "wrong"),
    [
        ("additive", {"urgent": 1000, "approved": 100, "normal": 1}, ["approved", "normal"]),
        ("additive", {"urgent": 0, "approved": 0, "normal": 1}, []),
        ("additive", {"urgent": 1, "approved": 2, "normal": 0}, ["normal"]),
        ("multiplicative", {"urgent": 1, "approved": 100, "normal": 1000}, ["approved", "normal"]),
        ("multiplicative", {"urgent": 1000, "approved": 1, "normal": 1}, []),
        ("drf", {"urgent": 1000, "normal": 0}, ["normal"]),
        ("wdrf", {"urgent": 1, "approved": 1, "normal": 2}, ["normal"]),
        ("strict", {"urgent": 1000, "approved": 100, "normal": 1}, []),
    ],
)
def test_weights_follow_the_order_of_classes(mode: str, weights: dict[str, int], wrong: list[str]) -> None:
    found = {"class_mode": mode, "class_weights": weights}
    if not wrong:
        assert read_document(found).class_weights == weights
        return
    reasons = problems_of(found)
    assert list(reasons) == [f"class_weights.{name}" for name in wrong]
    first = "higher" if mode in {"multiplicative", "wdrf"} else "lower"
    assert all(f"the {first} weight goes first" in reason for reason in reasons.values())


def test_a_preset_stands_for_the_numbers_of_its_controller() -> None:
    drf = read_document({"class_mode": "drf"})
    assert (drf.class_mode, drf.class_weights) == ("additive", {"urgent": 0, "normal": 1000})
    assert drf.aging == Aging(entitlement_per_day=8640, cap_days=14)
    wdrf = read_document({"class_mode": "wdrf", "aging": {"entitlement_per_day": 0.06}})
    assert (wdrf.class_mode, wdrf.class_weights["approved"]) == ("multiplicative", 100)
    assert wdrf.aging.entitlement_per_day == 0.06  # the file's own word counts


def test_aging_in_the_old_unit_is_refused_with_what_took_its_place() -> None:
    told = problems_of({"aging": {"share_per_hour": 0.06, "cap_hours": None}, "window": 0})
    assert set(told) == {"aging.share_per_hour", "aging.cap_hours", "window"}
    assert (
        "write this number times 24, times the sum of the weights at the top" in told["aging.share_per_hour"]
    )
    assert "a 24th of it as `cap_days`" in told["aging.cap_hours"]
