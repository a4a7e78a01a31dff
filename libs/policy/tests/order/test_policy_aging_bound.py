"""The bound that users are told: which jobs may pass a waiting one, and which may not."""

import random
from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.waiting import a_waiting_job

rngs = st.integers(0, 2**32).map(random.Random)

RATE = Fraction(1, 8)


def rules(cap: int | None = None) -> PoolRules:
    return PoolRules(
        capacity={"gpu": 12, "cpu": 20},
        classes=("urgent", "normal"),
        rate=RATE,
        cap=cap,
        entitlements={"t0": Fraction(1), "t1": Fraction(2), "t2": Fraction(3)},
    )


def arrival(
    number: int, tenant: str, submitted: int, gpus: int, cpus: int, *, job_class: str = "normal"
) -> WaitingJob:
    return a_waiting_job(
        f"u{number:03d}",
        tenant=tenant,
        job_class=job_class,
        submitted=submitted,
        demand={"gpu": gpus, "cpu": cpus},
    )


def tag(order: PoolFacts, position: Position) -> Fraction:
    if not position.use:
        return Fraction(0)
    return Fraction(position.use, order.rules.capacity[position.dominant]) / order.rules.entitlement_of(
        position.tenant
    )


def random_pool(rng: random.Random, cap: int | None = None) -> PoolFacts:
    order = PoolFacts(rules(cap))
    for number in range(rng.randrange(2, 12)):
        order.run(f"r{number}", f"t{rng.randrange(3)}", {"gpu": rng.randrange(3), "cpu": rng.randrange(4)})
        order.wait(
            arrival(number, f"t{rng.randrange(3)}", rng.randrange(20), rng.randrange(4), rng.randrange(5))
        )
    return order


@given(rngs)
@settings(max_examples=cases(2))
def test_a_later_job_stands_before_an_older_one_only_within_the_bound(rng: random.Random) -> None:
    """The bound holds with a cap, too, while the older job is below it."""
    cap, now = rng.choice([None, rng.randrange(1, 20)]), rng.randrange(40)
    order = random_pool(rng, cap)
    positions = order.at(now).positions()[:]
    for rank, k in enumerate(positions):
        for j in positions[rank + 1 :]:
            if k.submitted > j.submitted:
                lead = tag(order, j) - tag(order, k)
                if cap is None or now - j.submitted <= cap:
                    assert k.submitted - j.submitted < lead / RATE
                elif k.submitted == now:
                    assert lead > RATE * cap


def test_the_bound_is_met_to_the_last_unit_and_never_reached() -> None:
    """A tag of 1/4 at 1/8 a unit is worth two units: one later passes, two later does not, nor does a tie."""
    for later, first in ((1, "k"), (2, "j"), (3, "j")):
        order = PoolFacts(rules())
        order.run("r", "t0", {"gpu": 3})
        order.wait(arrival(9, "t0", 0, 1, 0))
        order.wait(arrival(1, "t1", later, 1, 0))
        assert order.at(0).uids()[0] == {"j": "u009", "k": "u001"}[first]


def test_beyond_the_cap_the_plain_bound_fails() -> None:
    # Rate 1/4, cap 2, tags 1/4 and 0, submits 0 and 1, now 3: the younger one goes first although 1 >= 1/4 / 1/4.
    order = PoolFacts(
        PoolRules(
            capacity={"gpu": 4},
            classes=("normal",),
            rate=Fraction(1, 4),
            cap=2,
            unlisted_entitlement=Fraction(1),
        )
    )
    order.run("r", "j", {"gpu": 1})
    order.wait(arrival(0, "j", 0, 1, 0))
    order.wait(arrival(1, "k", 1, 1, 0))
    assert [position.tenant for position in order.at(2).positions()] == ["j", "k"]
    assert [position.tenant for position in order.at(4).positions()] == ["k", "j"]


@dataclass
class ServedPool:
    """A pool that is served in order, without backfill; jobs are seen as they are submitted."""

    order: PoolFacts = field(default_factory=lambda: PoolFacts(rules()))
    tags: dict[str, Fraction] = field(default_factory=dict)
    at_submit: dict[str, Position] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)

    def look(self, now: int) -> None:
        """No tag is higher than it was before."""
        after = {position.uid: position for position in self.order.at(now).positions()}
        for uid, position in after.items():
            self.at_submit.setdefault(uid, position)
            found = tag(self.order, position)
            assert found <= self.tags.get(uid, found)
            self.tags[uid] = found

    def start_first(self, now: int) -> None:
        """Whoever waits longer than the first was submitted within the bound of its own submission."""
        first, *others = self.order.at(now).positions()[:]
        for j in others:
            if first.submitted > j.submitted:
                known = tag(self.order, self.at_submit[j.uid]) - tag(self.order, first)
                assert first.submitted - j.submitted < known / RATE
        self.order.run(first.uid, first.tenant, first.demand)
        self.running.append(first.uid)


@given(rngs)
@settings(max_examples=cases())
def test_what_is_known_at_submission_holds_until_the_start(rng: random.Random) -> None:
    """Tags never rise while jobs start in order and arrive in submit order: the bound holds for starts, too."""
    course = ServedPool()
    for now in range(16):
        if rng.random() < 0.7:
            course.order.wait(arrival(now, f"t{rng.randrange(3)}", now, rng.randrange(3), rng.randrange(4)))
            course.look(now)
        if course.order.snapshot.waiting() and rng.random() < 0.5:
            course.start_first(now)
        if course.running and rng.random() < 0.3:
            course.order.forget(course.running.pop(rng.randrange(len(course.running))))
        course.look(now)


def test_backfill_of_the_own_tenant_and_late_arrivals_raise_a_tag_by_exactly_their_demand() -> None:
    order = PoolFacts(rules())
    order.wait(arrival(1, "t0", 5, 3, 0))
    order.wait(arrival(2, "t0", 6, 1, 0))
    before = {position.uid: position.use for position in order.at(9).positions()}
    assert before == {"u001": 0, "u002": 3}
    order.run("u002", "t0", {"gpu": 1})
    order.wait(arrival(3, "t0", 4, 2, 0))
    after = {position.uid: position.use for position in order.at(9).positions()}
    assert after == {"u003": 1, "u001": 1 + 2}


def test_a_higher_class_arrival_raises_the_tags_behind_it_by_its_demand_and_no_other_tenants() -> None:
    order = PoolFacts(rules())
    order.wait(arrival(0, "t0", 0, 1, 0))
    order.wait(arrival(1, "t1", 0, 1, 0))
    before = {position.uid: position for position in order.at(5).positions()}
    order.wait(arrival(2, "t0", 5, 3, 0, job_class="urgent"))
    after = {position.uid: position for position in order.at(5).positions()}
    assert after["u000"].use == before["u000"].use + 3
    assert after["u001"] == before["u001"]
