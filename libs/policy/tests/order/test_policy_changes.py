"""Any history of changes ends in the order that the same facts give from scratch."""

import random
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from fairlead_policy.exact.scoring import Scores
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.usage.past import Decay, PastUse, RunKey
from fairlead_testkit.cases import cases
from fairlead_testkit.histories import CLASSES, TENANTS, PoolHistory
from fairlead_testkit.waiting import a_waiting_job

DECAY = Decay(half_life=40, tick=10)

rules = st.builds(
    PoolRules,
    capacity=st.sampled_from([{"cpu": 4, "gpu": 2}, {"cpu": 6, "gpu": 3}, {"cpu": 4}, {"gpu": 2, "tpu": 1}]),
    classes=st.sampled_from([CLASSES, CLASSES[::-1]]),
    rate=st.sampled_from([Fraction(0), Fraction(1, 4)]),
    cap=st.sampled_from([None, 5]),
    resource_weights=st.sampled_from([{}, {"tpu": Fraction(0)}, {"cpu": Fraction(1, 2)}]),
    entitlements=st.fixed_dictionaries(
        dict.fromkeys(TENANTS[:2], st.sampled_from([Fraction(0), Fraction(1), Fraction(2)]))
    ),
    unlisted_entitlement=st.sampled_from([Fraction(0), Fraction(1)]),
)


class AnyHistory(PoolHistory):
    """Facts come, change, come again and go; readers look at any moment."""

    def __init__(self) -> None:
        super().__init__(
            PoolRules(capacity={"cpu": 4, "gpu": 2}, classes=CLASSES, unlisted_entitlement=Fraction(1))
        )
        self.clock = 0
        self.use = self.nobodys_use()
        self.runs: dict[RunKey, tuple[str, int | None, dict[str, int]]] = {}
        """Every run that there ever was: whose, until when, of what."""

    def it_runs(self, uid: str, tenant: str, demand: dict[str, int]) -> None:
        self.clock += 3
        self.runs[uid, self.clock] = (tenant, None, demand)
        self.use.run((uid, self.clock), tenant, demand)

    @rule(ticks=st.integers(1, 4), settled=st.integers(0, 6))
    def time_passes(self, ticks: int, settled: int) -> None:
        self.clock += ticks * DECAY.tick
        for tenant, past in self.use.advance(self.clock // DECAY.tick).items():
            self.kept.remember(tenant, past)
        self.use.settle(self.use.now - settled)

    @rule()
    def somebody_takes_over(self) -> None:
        """From what was settled and all runs, told from the beginning."""
        heir = PastUse(DECAY)
        heir.begin(self.use.settled or 0, self.use.kept())
        self.tell(heir)
        heir.advance(self.use.now)
        self.use = heir

    @rule(changed=rules)
    def the_rules_change(self, changed: PoolRules) -> None:
        self.adopt(changed)

    @rule(window=st.integers(1, 5), now=st.integers(0, 30))
    def somebody_looks(self, window: int, now: int) -> None:
        fresh = self.from_scratch()
        for shard in (None, TENANTS[::2], TENANTS[1::2]):
            assert self.kept.at(now).front(window, shard) == fresh.at(now).front(window, shard)
        assert self.kept.at(now).next_flip() == fresh.at(now).next_flip()

    def from_scratch(self) -> PoolFacts:
        fresh = PoolFacts(self.current)
        for job in reversed(self.waiting.values()):
            fresh.wait(job)
        for uid, (tenant, demand) in self.running.items():
            fresh.run(uid, tenant, demand)
        use = self.nobodys_use()
        self.tell(use)
        for tenant, past in use.advance(self.use.now).items():
            fresh.remember(tenant, past)
        return fresh

    def it_ran(self, uid: str) -> None:
        """Whatever ran under the uid is over now."""
        for (name, started), (tenant, ended, demand) in self.runs.items():
            if name == uid and ended is None:
                self.runs[name, started] = (tenant, self.clock, demand)
                self.use.end((name, started), tenant, self.clock, demand)

    def tell(self, use: PastUse) -> None:
        for key, (tenant, ended, demand) in reversed(self.runs.items()):
            if ended is None:
                use.run(key, tenant, demand)
            else:
                use.end(key, tenant, ended, demand)

    def nobodys_use(self) -> PastUse:
        use = PastUse(DECAY)
        use.begin(0, {})
        return use


STEPS = 25
# Each step is a case: after it, all is compared with what is made from scratch.
AnyHistory.TestCase.settings = settings(max_examples=cases(1 / STEPS), stateful_step_count=STEPS)
TestAnyHistory = AnyHistory.TestCase


def scores_of(facts: PoolFacts) -> Scores:
    tenant_queue = facts.snapshot.tenant_queue("ada")
    assert tenant_queue is not None
    return tenant_queue.scored()


def test_an_event_leaves_all_other_tenants_and_the_snapshot_before_it_as_they_were() -> None:
    facts = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    for number in range(40):
        facts.wait(
            a_waiting_job(f"u{number:02}", tenant=TENANTS[number % 2], submitted=number, demand={"gpu": 1})
        )
    before = facts.snapshot
    order = facts.at(0)
    uids, scores = order.uids(), scores_of(facts)
    facts.forget("u01")
    facts.run("r", TENANTS[1], {"gpu": 1})
    assert scores_of(facts) is scores
    assert facts.snapshot.trees[TENANTS[0]] is before.trees[TENANTS[0]]
    assert "u01" not in facts.at(0).uids()
    assert order.uids() == Order(before, 0).uids() == uids


def test_what_is_told_many_times_before_somebody_looks_is_as_if_told_at_once() -> None:
    facts = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    jobs = {
        uid: a_waiting_job(uid, tenant="ada", submitted=number % 7, demand={"gpu": 1})
        for number, uid in enumerate(f"u{number:03}" for number in range(600))
    }
    for uid, job in jobs.items():
        facts.wait(job)
        assert facts.snapshot.tenant_queue("ada") is not None
        if uid.endswith("5"):
            facts.forget(uid)
    waiting = [uid for uid in jobs if not uid.endswith("5")]
    assert facts.snapshot.waiting() == {("c", "q"): len(waiting)}
    expected = PoolFacts(facts.rules)
    expected.wait_all(jobs[uid] for uid in waiting)
    assert facts.at(0).uids() == expected.at(0).uids()


@pytest.mark.parametrize("sparse", [False, True], ids=["one queue", "and a sparse one"])
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "numbers"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=cases(0.02), deadline=None)
def test_the_head_of_a_long_line_is_that_of_all_its_jobs(seed: int, *, strict: bool, sparse: bool) -> None:
    """What somebody looks at of thousands of jobs is made without the rest: it must be the same."""
    dice = random.Random(seed)
    weights = {} if strict else {"urgent": Fraction(5), "normal": Fraction(1)}
    pool = PoolRules(
        capacity={"gpu": 4},
        classes=CLASSES,
        unlisted_entitlement=Fraction(1),
        class_mode="strict" if strict else "additive",
        class_weights=weights,
        rate=Fraction(1, 4),
    )
    facts = PoolFacts(pool)
    jobs = {uid: _any_job(uid, dice, sparse=sparse) for uid in map("u{:04}".format, range(4_500))}
    facts.wait_all(jobs.values())
    facts.at(0).front(3)
    for turn in range(12):
        for uid in dice.sample(sorted(jobs), 3):
            facts.forget(uid)
            del jobs[uid]
            # Some come again as something else, most for the first time.
            again = uid if dice.random() < 0.3 else f"v{turn:04}{uid}"
            jobs[again] = _any_job(again, dice, sparse=sparse)
            facts.wait(jobs[again])
        first = min(jobs.values(), key=lambda job: (job.job_class != "urgent", job.submitted))
        if dice.random() < 0.7:
            facts.forget(first.uid)
            del jobs[first.uid]
        fresh = PoolFacts(pool)
        fresh.wait_all(jobs.values())
        window = dice.choice((1, 5, 40))
        assert facts.at(0).front(window) == fresh.at(0).front(window)
        assert facts.snapshot.waiting() == fresh.snapshot.waiting()
        assert turn < 11 or facts.at(0).uids() == fresh.at(0).uids()


def _any_job(uid: str, dice: random.Random, *, sparse: bool) -> WaitingJob:
    return a_waiting_job(
        uid,
        tenant="ada",
        job_class="urgent" if dice.random() < 0.01 else "normal",
        submitted=dice.randrange(5_000),
        demand={"gpu": dice.randint(1, 4)},
        queue=("c", "seldom") if sparse and dice.random() < 0.002 else ("c", "q"),
    )


def test_telling_a_fact_again_changes_nothing_and_costs_no_scores() -> None:
    order = PoolFacts(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    job = a_waiting_job("u", tenant="ada", submitted=1, demand={"gpu": 1})
    order.wait(job)
    order.run("r", "ada", {"gpu": 1})
    before = order.at(0).places()[:]
    scores = scores_of(order)
    order.wait(msgspec.structs.replace(job))
    order.run("r", "ada", {"gpu": 1, "cpu": 0})
    order.set_rules(PoolRules(capacity={"gpu": 4}, classes=CLASSES, unlisted_entitlement=Fraction(1)))
    order.forget("never seen")
    assert scores_of(order) is scores
    assert order.at(0).places()[:] == before
