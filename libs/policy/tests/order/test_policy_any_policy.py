"""Any history of facts and of policies ends in the order that the same facts give from scratch under the last policy."""

import random
from dataclasses import replace
from fractions import Fraction

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.oracles.saturation import used_up
from fairlead_testkit.oracles.waiting import a_waiting_job

TENANTS = ("ada", "bob", "cyd")
CLASSES = ("urgent", "normal")

TREES: tuple[dict[str, str], ...] = (
    {},
    {"ada": "org", "bob": "org"},
    {"ada": "team", "team": "org", "bob": "org", "cyd": "other"},
)


def rules_of(seed: int) -> PoolRules:
    """Flat or a tree, plain or after H-DRF, classes strict or not: everything that a policy may change to."""
    rng = random.Random(seed)
    mode: ClassMode = rng.choice(("strict", "strict", "additive", "multiplicative"))
    capacity = rng.choice([{"cpu": 4, "gpu": 2}, {"cpu": 6, "gpu": 3}, {"cpu": 4}, {"gpu": 2, "tpu": 1}])
    rescaled = rng.random() < 0.4
    return PoolRules(
        capacity=capacity,
        classes=rng.choice([CLASSES, CLASSES[::-1]]),
        rate=rng.choice([Fraction(0), Fraction(1, 4)]),
        cap=rng.choice([None, 5]),
        resource_weights=rng.choice([{}, {"tpu": Fraction(0)}, {"cpu": Fraction(1, 2)}]),
        entitlements={name: Fraction(rng.choice([0, 1, 1, 2])) for name in ("ada", "bob", "org", "team")},
        unlisted_entitlement=Fraction(rng.choice([0, 1])),
        parents=rng.choice(TREES),
        class_mode=mode,
        class_weights={"urgent": Fraction(rng.choice([1, 3])), "normal": Fraction(1)},
        rescaled=rescaled,
        lowest_of_live=rng.random() < 0.5,
        saturated=frozenset(rng.choice([(), ("gpu",), ("cpu",)])) & capacity.keys()
        if rescaled
        else frozenset(),
    )


rules = st.builds(rules_of, st.integers(0, 2**32))
uids = st.integers(0, 9).map(lambda number: f"u{number}")
tenants = st.sampled_from(TENANTS)
demands = st.dictionaries(
    st.sampled_from(("cpu", "gpu", "tpu")), st.sampled_from([0, 1, 2, 2**62]), max_size=2
)
jobs = st.builds(
    WaitingJob,
    uid=uids,
    scope=st.just("s"),
    id=st.just("j"),
    tenant=tenants,
    job_class=st.sampled_from(CLASSES),
    submitted=st.integers(0, 9),
    demand=demands,
    queue=st.sampled_from([JobQueue("c", "q1"), JobQueue("c", "q2")]),
    override=st.sampled_from([None, None, None, 2.0]),
)


class AnyPolicy(RuleBasedStateMachine):
    """Jobs come, change, come again and go, and so does everything that a policy may say, trees and modes among it."""

    def __init__(self) -> None:
        super().__init__()
        self.current = PoolRules(
            capacity={"cpu": 4, "gpu": 2}, classes=CLASSES, unlisted_entitlement=Fraction(1)
        )
        self.kept = PoolFacts(self.current)
        self.waiting: dict[str, WaitingJob] = {}
        self.running: dict[str, tuple[str, dict[str, int]]] = {}
        self.past: dict[str, dict[str, int]] = {}

    @rule(job=jobs)
    def a_job_waits(self, job: WaitingJob) -> None:
        """Lets a job wait, also one that waits or runs already."""
        self.kept.wait(job)
        self.running.pop(job.uid, None)
        self.waiting[job.uid] = job

    @rule(many=st.lists(jobs, min_size=17, max_size=30))
    def many_jobs_wait_at_once(self, many: list[WaitingJob]) -> None:
        """Adds more jobs than a tenant queue scores at first."""
        for number, job in enumerate(many):
            self.a_job_waits(msgspec.structs.replace(job, uid=f"{job.uid}-{number}"))

    @rule()
    def all_that_wait_go(self) -> None:
        """The pool is as good as empty."""
        for uid in list(self.waiting):
            self.a_job_goes(uid)

    @rule(uid=uids, tenant=tenants, demand=demands)
    def a_job_runs(self, uid: str, tenant: str, demand: dict[str, int]) -> None:
        """Whether it was seen to wait or not."""
        self.kept.run(uid, tenant, demand)
        self.waiting.pop(uid, None)
        self.running[uid] = (tenant, demand)

    @rule(uid=uids)
    def a_waiting_job_starts(self, uid: str) -> None:
        """Starts a waiting job, as most do."""
        job = self.waiting.get(uid)
        if job is not None:
            self.a_job_runs(uid, job.tenant, job.demand)

    @rule(uid=uids)
    def a_job_goes(self, uid: str) -> None:
        """One that nobody knows, too."""
        self.kept.forget(uid)
        self.waiting.pop(uid, None)
        self.running.pop(uid, None)

    @rule(tenant=st.sampled_from((*TENANTS, "org")), past=demands)
    def past_use_decays_or_grows(self, tenant: str, past: dict[str, int]) -> None:
        self.kept.remember(tenant, past)
        self.past[tenant] = past

    @rule(tenant=tenants, job_class=st.sampled_from(CLASSES))
    def a_grant_is_given_or_taken(self, tenant: str, job_class: str) -> None:
        for job in list(self.waiting.values()):
            if job.tenant == tenant:
                self.a_job_waits(msgspec.structs.replace(job, job_class=job_class))

    @rule(factor=st.integers(1, 3))
    def the_capacity_changes(self, factor: int) -> None:
        capacity = {name: amount * factor for name, amount in self.current.capacity.items()}
        self.the_rules_change(replace(self.current, capacity=capacity))

    @rule()
    def what_runs_and_waits_says_what_is_used_up(self) -> None:
        if self.current.rescaled:
            running = [demand for _, demand in self.running.values()]
            waiting = [job.demand for job in self.waiting.values()]
            self.the_rules_change(replace(self.current, saturated=used_up(self.current, running, waiting)))

    @rule(changed=rules)
    def the_rules_change(self, changed: PoolRules) -> None:
        self.kept.set_rules(changed)
        self.current = changed

    @rule(window=st.integers(1, 5), now=st.integers(0, 30), uid=uids)
    def somebody_looks(self, window: int, now: int, uid: str) -> None:
        fresh = self.from_scratch()
        assert self.kept.position(uid, now) == fresh.position(uid, now)
        for shard in (None, TENANTS[::2], TENANTS[1::2]):
            assert self.kept.at(now).queue_heads(window, shard) == fresh.at(now).queue_heads(window, shard)
        assert self.kept.at(now).next_flip() == fresh.at(now).next_flip()

    @invariant()
    def it_is_as_from_scratch(self) -> None:
        """Compares with an order made from scratch, to the byte."""
        fresh = self.from_scratch()
        now = 12
        whole = self.kept.at(now).positions()[:]
        assert msgspec.msgpack.encode(whole) == msgspec.msgpack.encode(fresh.at(now).positions()[:])
        assert self.kept.snapshot.standings() == fresh.snapshot.standings()
        assert self.kept.snapshot.waiting() == fresh.snapshot.waiting()
        assert {position.uid for position in whole} == set(self.waiting)

    def from_scratch(self) -> PoolFacts:
        fresh = PoolFacts(self.current)
        for tenant, past in self.past.items():
            fresh.remember(tenant, past)
        fresh.wait_all(reversed(self.waiting.values()))
        for uid, (tenant, demand) in self.running.items():
            fresh.run(uid, tenant, demand)
        return fresh


STEPS = 20
# Each step is a case: after it, all is compared with what is made from scratch.
AnyPolicy.TestCase.settings = settings(max_examples=max(9, cases(2 / STEPS)), stateful_step_count=STEPS)
TestAnyPolicy = AnyPolicy.TestCase


def test_past_use_of_a_tenant_that_becomes_a_parent_counts_once() -> None:
    """Found by the machine above: what its lane remembered was then also its family's."""
    flat = PoolRules(capacity={"cpu": 8}, classes=CLASSES, unlisted_entitlement=Fraction(1))
    order = PoolFacts(flat)
    order.remember("org", {"cpu": 1})
    for rules, parents in ((replace(flat, parents={"ada": "org"}), ["ada", "org"]), (flat, ["org"])):
        order.set_rules(rules)
        order.wait(a_waiting_job("u", tenant=parents[0], demand={}))
        assert {one.tenant: one.share for one in order.snapshot.standings(["org"])} == {"org": 0.125}
        assert order.at(0).positions()[0].tag == 0.125
