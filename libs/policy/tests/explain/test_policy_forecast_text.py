"""Changes that would move a job, in words: each sentence with figures worked out by hand."""

import re
from fractions import Fraction

import pytest

from fairlead_contracts.base.instants import HOUR, MINUTE, SECOND
from fairlead_policy.explain.neighbourhood import around_position, count_before
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.told_what_if import told_what_if, what_if_in
from fairlead_testkit.oracles.waiting import a_waiting_job, set_apart

NOW = 100 * HOUR
GPU = "nvidia.com/gpu"
EVEN = {"ada": Fraction(1), "bob": Fraction(1)}


def rules(**changes: object) -> PoolRules:
    stated: dict[str, object] = {
        "capacity": {GPU: 100_000},
        "classes": ("urgent", "normal"),
        "rate": Fraction(1, 100) / HOUR,
        "cap": 20 * HOUR,
        "weights": EVEN,
    }
    # Numbers that divide by 1 are read at a glance: weights are taken for entitlements, as they stand.
    found = {**stated, "relative": False, **changes}
    found["entitlements"] = found["weights"]
    return PoolRules(**found)  # type: ignore[arg-type] # tests say what they change


def a_job(uid: str, tenant: str, *, age: float = 1, gpu: int = 1, job_class: str = "normal") -> WaitingJob:
    return a_waiting_job(
        uid, tenant=tenant, job_class=job_class, submitted=NOW - round(age * HOUR), demand={GPU: 1000 * gpu}
    )


def order_of(scored_by: PoolRules, use: dict[str, int], *jobs: WaitingJob) -> PoolFacts:
    order = PoolFacts(scored_by)
    for tenant, gpu in use.items():
        order.run(f"runs-{tenant}", tenant, {GPU: 1000 * gpu})
    for job in jobs:
        order.wait(job)
    return order


def words(scored_by: PoolRules, use: dict[str, int], uid: str, *jobs: WaitingJob) -> str:
    order = order_of(scored_by, use, *jobs)
    position = order.position(uid, NOW)
    assert position is not None
    found = what_if_in(order.at(NOW), position)
    return "\n".join(told_what_if(found, position, scored_by, NOW))


def test_an_old_job_of_a_higher_share_is_passed_at_an_instant() -> None:
    # The old one has reached the cap: its waiting is worth 20 %. The young one stands at 0 and gains 1 % an hour.
    old, young = a_job("old", "ada", age=30), a_job("young", "bob", age=5)
    text = words(rules(), {"ada": 10}, "young", old, young)
    assert "Before it stands old of ada: it has waited longer, worth 15.0 %, more than the 10.0 %" in text
    # 5 % are missing: five hours, from the fifth day of 1970, 4:00 on. At 9:00 both are equal: at 9:01 it is so.
    assert "It overtakes old of ada at 1970-01-05 09:01 UTC (in 5 h)" in text
    passed = words(rules(), {"ada": 10}, "old", old, young)
    assert "young of bob overtakes it at 1970-01-05 09:01 UTC (in 5 h)" in passed
    assert "Time alone" not in words(rules(rate=Fraction(0)), {"ada": 10}, "old", old, young)


@pytest.mark.parametrize(
    ("cap", "age", "why"),
    [
        (None, 5, "all jobs age alike."),
        (
            20,
            5,
            "all jobs age alike up to the cap, and beyond it no younger job behind can pass an older one.",
        ),
        (
            20,
            25,
            "it has reached the cap of aging, and no younger job behind it can pass it by aging on.",
        ),
        (
            20,
            20,
            "it has reached the cap of aging, and no younger job behind it can pass it by aging on.",
        ),
    ],
)
def test_why_time_alone_changes_nothing_is_said_by_what_holds_of_it(
    cap: int | None, age: int, why: str
) -> None:
    scored_by = rules(cap=None if cap is None else cap * HOUR)
    jobs = a_job("old", "ada", age=30), a_job("late", "bob", age=age), a_job("last", "cyd", age=age - 1)
    even = rules(cap=scored_by.cap, weights=EVEN | {"cyd": Fraction(1)})
    text = words(even, {"bob": 10, "cyd": 20}, "late", *jobs)
    assert f"Waiting longer does not move it past its neighbours: {why}" in text


def test_a_weight_is_rounded_up_so_that_above_it_the_sentence_holds() -> None:
    """30.30303 is what is solved for: at 30.301, above the nearest number of four digits, it is not so yet."""
    jobs = a_job("first", "ada", age=2.5), a_job("late", "bob", age=2.75)
    few = rules(capacity={GPU: 64_000}, rate=Fraction(66, 1000) / HOUR)
    text = words(few, {"bob": 32}, "late", *jobs)
    [told] = re.findall(
        r"It becomes first if operators give bob a weight above ([\d.]+); a smaller one may be enough\.", text
    )
    above = Fraction(told) + Fraction(1, 10**6)
    changed = rules(capacity={GPU: 64_000}, rate=few.rate, weights=EVEN | {"bob": above})
    order = order_of(changed, {"bob": 32}, *jobs)
    assert order.at(NOW).uids() == ["late", "first"]


def test_a_time_is_rounded_up_so_that_then_the_sentence_holds() -> None:
    # 5 % and 10 s are missing.
    old, young = a_job("old", "ada", age=30), a_job("young", "bob", age=5 - 10 / 3600)
    text = words(rules(), {"ada": 10}, "young", old, young)
    assert "It overtakes old of ada at 1970-01-05 09:01 UTC (in 5 h)" in text
    order = order_of(rules(), {"ada": 10}, old, young)
    assert order.at(NOW + 5 * HOUR).uids() == ["old", "young"]
    assert order.at(NOW + 5 * HOUR + MINUTE).uids() == ["young", "old"]


def test_what_does_not_count_takes_room_too() -> None:
    """A resource of weight 0 is left out of shares: jobs take it all the same, and one too large never starts."""
    free = rules(capacity={"cpu": 10_000, GPU: 4000}, resource_weights={GPU: Fraction(0)})
    text = words(free, {}, "late", a_job("first", "ada", age=3, gpu=4), a_job("late", "bob", gpu=4))
    assert (
        "The jobs before it start first: after that, 4 gpu have to be given back before it can start." in text
    )


def test_no_instant_is_told_beyond_one_at_which_a_tree_moves_inside() -> None:
    """Below org, a passes b1 first: c then passes b1 at once, earlier than b1's terms of now would have it."""
    tree = rules(
        capacity={GPU: 12_000},
        rate=Fraction(1, 20) / HOUR,
        cap=5 * HOUR,
        weights={"ada": Fraction(1), "bob": Fraction(2), "cyd": Fraction(1), "org": Fraction(1)},
        parents={"ada": "org", "bob": "org"},
    )
    jobs = [
        a_job("a", "ada", age=4),
        a_job("b0", "bob", age=10),
        a_job("b1", "bob", age=10),
        a_job("c", "cyd", age=3, gpu=0),
    ]
    text = words(tree, {}, "c", *jobs)
    assert "Before it stands b1 of bob" in text
    assert "overtakes" not in text
    assert "Time alone" not in text, "it does change something"
    assert "overtakes it" not in words(tree, {}, "b1", *jobs)
    assert "It overtakes b1 of bob" in words(tree, {}, "c", *jobs[1:]), "nothing moves below org without a"


def test_past_use_is_told_and_that_it_fades() -> None:
    order = PoolFacts(rules())
    order.remember("bob", {GPU: 4000})
    order.wait(a_job("first", "ada"))
    order.wait(a_job("late", "bob"))
    position = order.position("late", NOW)
    assert position is not None
    found = what_if_in(order.at(NOW), position)
    text = "\n".join(told_what_if(found, position, order.rules, NOW))
    assert "gpu: 4 of past use are 4.0 % of the pool, 4.0 % over its weight of 1." in text
    assert "Past use counts here and fades" in text
    assert "Time alone" not in text
    assert "that run end" not in text, "past use does not end"


def test_a_start_out_of_turn_and_a_weight_are_told() -> None:
    text = words(rules(), {"ada": 10, "bob": 30}, "late", a_job("first", "ada"), a_job("late", "bob"))
    assert (
        "Before it stands first of ada: its tenant's share over its weight comes to 10.0 %, this one's to 30.0 %."
        in text
    )
    # At equal shares "first" still goes before "late": 20 cards do not do, and 21 do.
    assert "first of ada falls behind it once ada starts 21 gpu more before that one." in text
    assert "It becomes first once its own tenant gives back 21 of its 30 gpu." in text
    assert "It becomes first if operators give bob a weight above 3; a smaller one may be enough." in text
    assert (
        "As urgent it would be number 1: an operator can grant that with `fairlead approve bob/late --class urgent`."
        in text
    )


def test_a_start_is_told_in_whole_cards() -> None:
    # Equal but for their uids: one thousandth of a card is enough, and nobody can start that.
    jobs = a_job("first", "ada"), a_job("late", "bob")
    text = words(rules(), {}, "late", *jobs)
    assert "first of ada falls behind it once ada starts 1 gpu more before that one." in text


def test_own_jobs_and_higher_classes_stay_before_it() -> None:
    jobs = [
        a_job("rush", "ada", job_class="urgent"),
        a_job("other", "ada"),
        a_job("own", "bob", age=2),
        a_job("mine", "bob"),
    ]
    text = words(rules(), {"bob": 30}, "mine", *jobs)
    assert (
        "gpu: 30 running and 1 for 1 job of its own before it are 31.0 % of the pool, 31.0 % over its weight of 1."
        in text
    )
    assert "Before it stands own of bob: their tenant serves it first." in text
    assert "Before it stands rush of ada: class urgent goes before normal." in text
    assert (
        "It becomes number 3 (higher classes and its own tenant's jobs stay before it) once its own tenant gives back 31"
        not in text
    )
    assert (
        "It becomes number 3 (higher classes and its own tenant's jobs stay before it) once its own tenant gives back 30"
        in text
    )


@pytest.mark.parametrize(
    ("use", "gpu", "sentence"),
    [
        (
            {"ada": 60, "bob": 38},
            4,
            "it needs 2 gpu more than are free (ada holds 60 gpu, bob holds 38 gpu).",
        ),
        (
            {"ada": 60, "bob": 41},
            4,
            "more runs than its pool has, so 5 gpu have to be given back first (ada holds 60 gpu, bob holds 41 gpu).",
        ),
        ({"ada": 10}, 4, "It fits into what its pool has free, together with all jobs before it."),
        (
            {"ada": 10, "bob": 50},
            40,
            "The jobs before it start first: after that, 1 gpu have to be given back before it can start",
        ),
    ],
)
def test_to_be_first_in_line_is_not_to_start(use: dict[str, int], gpu: int, sentence: str) -> None:
    assert sentence in words(rules(), use, "late", a_job("first", "ada"), a_job("late", "bob", gpu=gpu))


def test_own_jobs_that_can_never_start_are_not_among_those_that_a_share_is_told_of() -> None:
    monster, soon, late = (
        a_job(uid, "ada", age=age) for uid, age in (("monster", 3), ("soon", 2), ("late", 1))
    )
    text = words(rules(), {"ada": 30}, "late", set_apart(monster), soon, late)
    assert "gpu: 30 running and 1 for 1 job of its own before it are" in text


def test_in_a_tree_the_level_is_told_at_which_it_loses() -> None:
    tree = rules(
        weights=EVEN | {"org": Fraction(2), "cyd": Fraction(1)}, parents={"ada": "org", "bob": "org"}
    )
    jobs = [a_job("a", "ada"), a_job("b", "bob"), a_job("c", "cyd", age=9)]
    text = words(tree, {"ada": 20, "bob": 30}, "b", *jobs)
    assert (
        "org, gpu: 50 running and 1 for 1 job of its own before it are 51.0 % of the pool, 25.5 % over its weight of 2."
        in text
    )
    assert (
        "Before it stands a of ada (within org): ada's share over its weight comes to 20.0 %, bob's to 30.0 %."
        in text
    )
    assert "Before c of cyd" not in text, (
        "even without any of bob's 30 GPUs org stands at 10 %, and c has waited"
    )


def test_what_is_equal_is_told_by_what_settles_it() -> None:
    text = words(rules(), {}, "late", a_job("late", "bob"), a_job("first", "ada"))
    assert "they are equal in everything, and its uid comes first" in text
    none = words(rules(weights={"ada": Fraction(1)}), {}, "late", a_job("late", "bob"), a_job("first", "ada"))
    assert "Before it stands first of ada: this one's tenant is not in the policy" in none


def test_an_end_that_makes_an_infinite_share_finite_passes_finite_ones_too() -> None:
    additive = rules(
        capacity={"cpu": 10_000, GPU: 0},
        cap=None,
        weights=EVEN | {"cyd": Fraction(1)},
        class_mode="additive",
        class_weights={"urgent": Fraction(0), "normal": Fraction(1)},
    )
    jobs = [
        a_waiting_job(uid, tenant=tenant, submitted=at, demand=demand)
        for uid, tenant, at, demand in (
            ("j1", "ada", 99 * HOUR, {"cpu": 4000}),
            ("j1b", "ada", 99 * HOUR, {"cpu": 4000}),
            ("j3", "cyd", 0, {"cpu": 4000}),
            ("j4", "dan", 0, {"cpu": 4000}),
            ("j2", "bob", HOUR, {"cpu": 4000}),
        )
    ]
    assert order_of(additive, {"bob": 2}, *jobs).at(NOW).uids() == ["j3", "j1", "j1b", "j4", "j2"]
    assert order_of(additive, {}, *jobs).at(NOW).uids() == ["j3", "j2", "j1", "j1b", "j4"]
    text = words(additive, {"bob": 2}, "j2", *jobs)
    assert "\nIt becomes number 2 once its own tenant gives back 2 of its 2 gpu." in text


def test_a_class_that_is_a_term_is_told_as_one() -> None:
    additive = rules(class_mode="additive", class_weights={"urgent": Fraction(0), "normal": Fraction(1, 2)})
    text = words(
        additive, {"ada": 10, "bob": 30}, "a", a_job("a", "ada"), a_job("b", "bob", job_class="urgent")
    )
    assert (
        "Before it stands b of bob: class urgent is worth 50.0 % more than normal, more than the 20.0 % "
        "that its tenant has more over its weight." in text
    )


def test_a_class_that_is_a_term_is_no_share() -> None:
    """The worth of its class is not said of the tenant, whichever of the two stands lower."""
    additive = rules(
        rate=Fraction(0),
        class_mode="additive",
        class_weights={"urgent": Fraction(0), "normal": Fraction(1, 5)},
    )
    jobs = a_job("u", "ada", job_class="urgent"), a_job("n", "bob")
    assert (
        "Before it stands n of bob: its tenant has 50.0 % less over its weight, more than the 20.0 % that class urgent is worth "
        "more than normal." in words(additive, {"ada": 50}, "u", *jobs)
    )
    drf = rules(
        rate=Fraction(1, 10) / SECOND,
        cap=None,
        class_mode="additive",
        class_weights={"urgent": Fraction(0), "normal": Fraction(1000)},
    )
    jobs = a_job("u", "ada", job_class="urgent", age=1), a_job("n", "bob", age=1 + 9999 / 3600)
    assert (
        "Before it stands n of bob: it has waited longer, worth 99990.0 %, and its tenant has 40.0 % less over its weight, more "
        "than the 100000.0 % that class urgent is worth more than normal."
        in words(drf, {"ada": 50, "bob": 10}, "u", *jobs)
    )


def test_a_class_that_is_a_factor_is_told_between_siblings_too() -> None:
    factors = {"urgent": Fraction(10), "normal": Fraction(1)}
    tree = rules(
        class_mode="multiplicative",
        class_weights=factors,
        weights=EVEN | {"org": Fraction(1)},
        parents={"ada": "org", "bob": "org"},
    )
    jobs = a_job("a", "ada", job_class="urgent"), a_job("b", "bob")
    # ada's 40 % are worth 4 % as urgent, less than bob's 10 %.
    text = words(tree, {"ada": 40, "bob": 10}, "b", *jobs)
    assert (
        "Before it stands a of ada (within org): the class weights, which start tags are divided by, are worth 36.0 % "
        "to it, more than the 30.0 % that its tenant has more over its weight." in text
    )
    # At 5 % it would be the first without its class, too.
    text = words(tree, {"ada": 5, "bob": 10}, "b", *jobs)
    assert (
        "Before it stands a of ada (within org): its tenant has 5.0 % less over its weight, and the class weights, which start tags "
        "are divided by, are worth 4.5 % to it." in text
    )


def test_a_job_that_counts_as_another_is_told_by_the_terms_that_it_counts_by() -> None:
    """a2's own terms are 60 % and 50 %: what keeps it behind x are those of a1, which are told by name."""
    tree = rules(
        capacity={GPU: 20_000},
        rate=Fraction(25, 100) / HOUR,
        weights=EVEN | {"org": Fraction(1), "cyd": Fraction(1)},
        parents={"ada": "org", "bob": "org"},
    )
    jobs = a_job("a1", "ada", age=1, gpu=2), a_job("a2", "bob", age=2), a_job("x", "cyd", age=0)
    text = words(tree, {"bob": 10}, "a2", *jobs)
    assert (
        "Before it stands x of cyd: this one counts as a1, which org serves first; cyd has 50.0 % less over its weight than org, "
        "more than the 25.0 % that a1's longer wait is worth." in text
    )
    assert (
        "Before it stands a1 of ada (within org): ada's share over its weight comes to 0.0 %, bob's to 50.0 %: more than the 25.0 % that "
        "this one's longer wait is worth." in text
    )


def test_many_equal_jobs_are_ranked_exactly() -> None:
    """Floats tell none of them apart: the uid does."""
    order = PoolFacts(rules(weights={f"t{number}": Fraction(1) for number in range(40)}))
    for number in range(40):
        order.wait(a_job(f"j{number:02d}", f"t{number}"))
    uids = order.at(NOW).uids()
    for rank, uid in enumerate(uids):
        position = order.position(uid, NOW)
        assert position is not None
        assert sum(count_before(order.at(NOW), position).values()) == rank
        found = around_position(order.at(NOW), position, 2)
        assert [one.uid for one in found.nearest] == uids[max(0, rank - 2) : rank][::-1]
        assert [one.uid for one in found.behind] == uids[rank + 1 : rank + 3]
