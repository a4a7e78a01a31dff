"""Any history of facts and of policies ends in the order that the same facts give from scratch under the last policy."""

import random
from dataclasses import replace
from fractions import Fraction

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import ClassMode, PoolRules
from fairlead_testkit.cases import cases
from fairlead_testkit.histories import CLASSES, TENANTS, PoolHistory, demands, tenants, uids
from fairlead_testkit.saturation import used_up
from fairlead_testkit.waiting import a_waiting_job

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


class AnyPolicy(PoolHistory):
    """Facts come, change and go, and so does everything that a policy may say, trees and modes among it."""

    def __init__(self) -> None:
        super().__init__(
            PoolRules(capacity={"cpu": 4, "gpu": 2}, classes=CLASSES, unlisted_entitlement=Fraction(1))
        )
        self.past: dict[str, dict[str, int]] = {}

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
        self.adopt(changed)

    @rule(window=st.integers(1, 5), now=st.integers(0, 30), uid=uids)
    def somebody_looks(self, window: int, now: int, uid: str) -> None:
        fresh = self.from_scratch()
        assert self.kept.place(uid, now) == fresh.place(uid, now)
        for shard in (None, TENANTS[::2], TENANTS[1::2]):
            assert self.kept.at(now).front(window, shard) == fresh.at(now).front(window, shard)
        assert self.kept.at(now).next_flip() == fresh.at(now).next_flip()

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
AnyPolicy.TestCase.settings = settings(max_examples=cases(1 / STEPS), stateful_step_count=STEPS)
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
        assert order.at(0).places()[0].tag == 0.125
