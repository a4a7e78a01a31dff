"""The terms that are told between two neighbours add up to the difference of their keys, and each is what brute force
counts: in every mode of classes, flat, in trees, and with H-DRF.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.figures import MANY, percent
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import Neighbour
from fairlead_policy.explain.explanation import neighbour_of
from fairlead_policy.explain.neighbour_text import RowCauses, before_in_words
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.oracle import Pick, Score
from fairlead_testkit.oracles.told_what_if import what_if_in
from fairlead_testkit.oracles.tree_scenes import TreeScene, picks, pool
from fairlead_testkit.oracles.waiting import a_waiting_job, judged

LEAVES = ("a", "b", "c", "d")
CLASSES = ("urgent", "normal")
TREES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"a": "A", "b": "A"},
    {"a": "A", "b": "A", "A": "O", "c": "O"},
    {"a": "A", "b": "A", "c": "B", "d": "B"},
)
LEAST = 1e-4
"""Smallest lead, as a share, that is always worth a word."""
MODES: tuple[ClassMode, ...] = ("strict", "additive", "multiplicative")


def demand_of(rng: random.Random) -> dict[str, int]:
    return {name: rng.randint(0, 2) for name in ("cpu", "gpu") if rng.random() < 0.7}


def scene_of(seed: int) -> TreeScene:
    rng = random.Random(seed)
    parents, mode = rng.choice(TREES), rng.choice(MODES)
    capacity = {"cpu": rng.choice([4, 6, 10]), "gpu": rng.choice([0, 3, 4, 10, 10])}
    rescaled = rng.random() < 0.4
    usable = [name for name, amount in capacity.items() if amount]
    weights = [Fraction(text) for text in ("1", "1", "1", "2", "3", "0.5", "0")]
    rules = PoolRules(
        capacity=capacity,
        classes=CLASSES,
        rate=rng.choice([Fraction(0), Fraction(1, 20), Fraction(1, 6), Fraction(1)]),
        cap=rng.choice([None, None, 1, 4]),
        resource_weights=rng.choice([{}, {}, {"cpu": Fraction(1, 2)}]),
        entitlements={name: rng.choice(weights) for name in sorted({*LEAVES, *parents.values()})},
        parents=parents,
        class_mode=mode,
        class_weights={"urgent": Fraction(rng.choice([1, 3]), 4), "normal": Fraction(1)}
        if mode == "additive"
        else {"urgent": Fraction(3), "normal": rng.choice([Fraction(1), Fraction(1, 4)])},
        rescaled=rescaled,
        lowest_of_live=rng.random() < 0.5,
        saturated=frozenset(rng.sample(usable, rng.randint(0, 1))) if rescaled else frozenset(),
    )
    waiting = tuple(
        judged(
            a_waiting_job(
                f"u{number:02d}",
                tenant=rng.choice(LEAVES),
                job_class=rng.choice(CLASSES),
                submitted=rng.randint(0, 8),
                demand=demand_of(rng),
                override=None if rules.strict else rng.choice([None, None, None, 0.5, 2.0]),
            ),
            rules.capacity,
        )
        for number in range(rng.randint(2, 10))
    )
    running = tuple((f"r{number}", rng.choice(LEAVES), demand_of(rng)) for number in range(rng.randint(0, 4)))
    return TreeScene(rules, waiting, running, rng.randint(0, 12))


class CountedTerms:
    """The terms that a job counts by below a tenant: the largest tuple of that tenant's jobs up to it."""

    def __init__(self, order: Sequence[Pick], uid: str, side: str, scene: TreeScene) -> None:
        until = [pick.job.uid for pick in order].index(uid)
        among = [pick for pick in order[: until + 1] if side in pick.scores]
        pick = max(among, key=lambda one: one.scores[side])
        self.uid = pick.job.uid
        self.score: Score = pick.scores[side]
        self.tag = pick.shares[side] or Fraction(0)
        cap, submitted = scene.rules.cap, pick.job.submitted
        self.waiting = scene.rules.rate * (submitted if cap is None else max(submitted, scene.now - cap))
        self.key = self.score[3]


def check_position(position: Position, pick: Pick) -> None:
    """Each level's start tag, and whether it is infinite."""
    levels = {one.tenant: (one.tag, one.unbounded_by) for one in position.within}
    levels[position.top or position.tenant] = (position.tag, position.unbounded_by)
    assert levels.keys() == pick.shares.keys()
    for tenant, (tag, unbounded_by) in levels.items():
        share = pick.shares[tenant]
        assert (unbounded_by is None) == (share is not None)
        assert isclose(tag, share or 0, abs_tol=1e-12)


def check_words(told: Neighbour, position: Position, scene: TreeScene) -> None:
    """Checks that the words say who has less, who has waited longer, and by how much."""
    words = before_in_words(told, position, scene.rules)
    if "comes to" in words:  # both are told; beside it nothing but who has waited longer
        check_both(told, position, scene, words)
        return
    for lead, better, worse in (
        (told.share_lead, f"{percent(told.share_lead)} less ", f"the {percent(-told.share_lead)} that "),
        (told.waiting_lead, f"longer, worth {percent(told.waiting_lead)}", "longer wait is worth"),
    ):
        if abs(lead) > LEAST:
            assert (better if lead > 0 else worse) in words
    if told.class_lead > LEAST:
        assert percent(told.class_lead) in words.partition(", more than ")[0]
    if told.class_lead < -LEAST:
        assert percent(-told.class_lead) in words.partition(", more than ")[2]


def check_both(told: Neighbour, position: Position, scene: TreeScene, words: str) -> None:
    """The figures of both, of the level where they part ways."""
    own = told.own_side or position.tenant
    this = {level.tenant: level.tag for level in position.within}[own] if told.within else position.tag
    its = this - told.share_lead
    many = scene.rules.relative and max(its, this) >= MANY
    first, second = (f"{one:.1f} times" if many else percent(one) for one in (its, this))
    assert first.removesuffix(" times") in words.partition("comes to ")[2]
    sides, levels = told.side or told.own_side, told.within
    assert (
        f"{own if sides or levels else 'this one'}{'' if (sides or levels) and scene.rules.relative else "'s"} to {second}"
        in words
    )
    assert not told.class_lead
    if told.waiting_lead > LEAST:
        assert words.endswith(f", and it has waited longer, worth {percent(told.waiting_lead)}.")
    if told.waiting_lead < -LEAST:
        assert words.endswith(
            f": more than the {percent(-told.waiting_lead)} that this one's longer wait is worth."
        )


def check(told: Neighbour, own: CountedTerms, bar: CountedTerms) -> None:
    assert bar.score < own.score
    leads = (told.share_lead, told.class_lead, told.waiting_lead)
    if own.score[:3] != bar.score[:3]:
        apart = [mine != its for mine, its in zip(own.score[:3], bar.score[:3], strict=True)]
        assert told.term == ("class", "used-up", "infinite")[apart.index(True)]
        return
    lead = own.key - bar.key
    assert isclose(told.share_lead, own.tag - bar.tag, abs_tol=1e-12)
    assert isclose(told.waiting_lead, own.waiting - bar.waiting, abs_tol=1e-12)
    assert isclose(sum(leads), lead, abs_tol=1e-12)
    if lead:
        decides = leads[("share", "class", "waiting").index(told.term)]
        assert isclose(decides, max(leads), abs_tol=1e-12)
    else:
        assert told.term == ("submitted" if own.score[4] != bar.score[4] else "uid")


@given(st.integers(0, 2**32).map(scene_of))
@settings(max_examples=cases(), deadline=None)
def test_the_terms_that_are_told_add_up_to_the_difference_of_the_keys(scene: TreeScene) -> None:
    order, found = pool(scene), picks(scene)
    tenants = {pick.job.uid: pick.job.tenant for pick in found}
    for pick in found:
        position = order.position(pick.job.uid, scene.now)
        assert position is not None
        what_if = what_if_in(order.at(scene.now), position)
        check_position(position, pick)
        for told in what_if.nearest:
            if tenants[told.uid] == pick.job.tenant:
                assert told.term in ("class", "used-up", "own-order")
                assert (told.share_lead, told.class_lead, told.waiting_lead) == (0, 0, 0)
                continue
            own = CountedTerms(found, pick.job.uid, told.own_side or pick.job.tenant, scene)
            bar = CountedTerms(found, told.uid, told.side or told.tenant, scene)
            assert (told.own_effective, told.effective) == (
                "" if own.uid == pick.job.uid else own.uid,
                "" if bar.uid == told.uid else bar.uid,
            )
            check(told, own, bar)
            if told.term in ("share", "waiting") or (told.term == "class" and not scene.rules.strict):
                check_words(told, position, scene)


TOLD = {
    "class": ("class ",),
    "own-order": ("their tenant serves it first",),
    "share": ("its tenant comes to ", "its tenant has "),
    "waiting": ("it has waited longer",),
    "submitted": ("their keys are equal, and it was submitted first",),
    "uid": ("they are equal in everything, and its uid comes first",),
}
"""Words of a row of a whole order on each term."""


def side_by_side(scene: TreeScene) -> TreeScene:
    plain = replace(scene.rules, parents={}, class_mode="strict", rescaled=False, saturated=frozenset())
    return replace(scene, rules=plain)


@given(st.integers(0, 2**32).map(scene_of).map(side_by_side))
@settings(max_examples=cases(), deadline=None)
def test_a_whole_order_tells_of_each_row_the_term_that_decides(scene: TreeScene) -> None:
    order = pool(scene).at(scene.now)
    positions = list(order.positions())
    causes = RowCauses(scene.rules, scene.now)
    assert causes.tells
    told = [cause for part in order.positions().parts() for cause in causes.of(part)]
    assert told[:1] == ["first"][: len(positions)]
    for (before, position), cause in zip(pairwise(positions), told[1:], strict=True):
        found = neighbour_of(position, before, scene.rules, scene.now)
        equal = isclose(found.share_lead, found.waiting_lead, abs_tol=1e-9)
        level = isclose(found.share_lead, -found.waiting_lead, rel_tol=1e-9, abs_tol=1e-15)
        if found.term not in TOLD or position.unbounded or before.unbounded:
            assert cause in {"", TOLD["own-order"][0]} or cause.startswith("class ")
        elif found.share_lead and level:
            assert cause == "" or cause.startswith((TOLD["own-order"][0], "class "))
        elif not equal or found.term in ("class", "own-order"):
            assert cause.startswith(TOLD[found.term])
