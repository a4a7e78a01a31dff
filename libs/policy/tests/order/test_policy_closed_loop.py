"""Order, start, run, end, and round again: what tenants get from it over time."""

import heapq
from collections import Counter
from fractions import Fraction

import pytest

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.waiting import a_waiting_job

WEIGHTS = {"ada": Fraction(3), "bob": Fraction(2), "cyd": Fraction(1)}
CAPACITY = 12
RUN = 40 * SECOND


def rules(rate: Fraction) -> PoolRules:
    return PoolRules(
        capacity={"gpu": CAPACITY},
        classes=("urgent", "normal"),
        rate=rate,
        cap=336 * HOUR,
        entitlements=WEIGHTS,
    )


class Cluster:
    """Starts the first of the order whenever a card is free, and checks each start against the definition."""

    def __init__(self, rate: Fraction) -> None:
        self.order = PoolFacts(rules(rate))
        self.rate = rate
        self.now = 0
        self.running: Counter[str] = Counter()
        self.ends: list[tuple[int, str, str]] = []
        self.waiting: dict[str, list[tuple[int, int, str]]] = {tenant: [] for tenant in WEIGHTS}
        self.started: list[tuple[int, str, str]] = []
        self.count = 0

    def flood(self, tenant: str, jobs: int, job_class: str = "normal") -> None:
        for _ in range(jobs):
            uid = f"{tenant}-{self.count:05d}"
            self.count += 1
            self.order.wait(
                a_waiting_job(uid, tenant=tenant, job_class=job_class, submitted=self.now, demand={"gpu": 1})
            )
            heapq.heappush(self.waiting[tenant], (0 if job_class == "urgent" else 1, self.now, uid))

    def by_definition(self) -> str:
        """Weighted DRF by hand: of the tenants' first jobs, the one with the smallest tuple."""

        def head(tenant: str) -> tuple[int, Fraction, int, str]:
            rank, submitted, uid = self.waiting[tenant][0]
            share = Fraction(self.running[tenant], CAPACITY) / WEIGHTS[tenant]
            return rank, share + self.rate * submitted, submitted, uid

        return min(head(tenant) for tenant in WEIGHTS if self.waiting[tenant])[-1]

    def start_what_fits(self) -> None:
        while self.running.total() < CAPACITY and any(self.waiting.values()):
            place = self.order.at(self.now).front(5)["c", "q"][0]
            assert place.uid == self.by_definition()
            self.order.run(place.uid, place.tenant, place.demand)
            heapq.heappop(self.waiting[place.tenant])
            self.running[place.tenant] += 1
            # Uneven run times: cards come free one by one, as in life.
            heapq.heappush(
                self.ends, (self.now + RUN + 3 * SECOND * (len(self.started) % 7), place.uid, place.tenant)
            )
            self.started.append((self.now, place.tenant, place.uid))

    def advance(self) -> None:
        self.now, uid, tenant = heapq.heappop(self.ends)
        self.order.forget(uid)
        self.running[tenant] -= 1


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(6, 100) / HOUR], ids=["no aging", "aging"])
def test_tenants_that_flood_at_different_times_hold_their_weights_within_one_job(rate: Fraction) -> None:
    cluster = Cluster(rate)
    floods = {0: ("cyd", 150), 30: ("ada", 260), 60: ("bob", 200)}
    for step in range(400):
        if step in floods:
            cluster.flood(*floods[step])
        cluster.start_what_fits()
        # A card's worth of steps after the last flood, nothing that started before it still runs.
        if step > 60 + CAPACITY * 2 and all(cluster.waiting.values()):
            for tenant, weight in WEIGHTS.items():
                assert abs(cluster.running[tenant] - CAPACITY * weight / 6) <= 1
        if not cluster.ends:
            break
        cluster.advance()
    assert cluster.running.total() or not any(cluster.waiting.values())
    assert len(cluster.started) > 350


def test_a_tenant_that_comes_late_with_no_use_is_served_first() -> None:
    cluster = Cluster(Fraction(6, 100) / HOUR)
    cluster.flood("ada", 50)
    cluster.flood("cyd", 50)
    cluster.start_what_fits()
    cluster.now = 10 * SECOND
    cluster.flood("bob", 20)
    seen = len(cluster.started)
    for _ in range(4):
        cluster.advance()
        cluster.start_what_fits()
    assert {tenant for _, tenant, _ in cluster.started[seen : seen + 3]} == {"bob"}


def test_urgent_goes_before_normal_whatever_the_shares() -> None:
    cluster = Cluster(Fraction(6, 100) / HOUR)
    cluster.flood("ada", 40)
    cluster.flood("cyd", 20)
    cluster.start_what_fits()
    cluster.flood("ada", 3, "urgent")
    seen = len(cluster.started)
    for _ in range(3):
        cluster.advance()
        cluster.start_what_fits()
    assert [tenant for _, tenant, _ in cluster.started[seen : seen + 3]] == ["ada"] * 3


def test_a_job_that_waits_is_not_passed_for_ever() -> None:
    """A light tenant's old job against a stream of a heavy tenant that always has the lower share."""
    rate = Fraction(6, 100) / HOUR
    order = PoolFacts(rules(rate))
    order.run("r", "cyd", {"gpu": 6})
    order.wait(a_waiting_job("old", tenant="cyd", demand={"gpu": 1}))
    # The bound that holds at submit: (1/2 - 0) / 0.06 an hour = 8 h 20 min.
    bound = Fraction(1, 2) / rate
    for hour in range(12):
        fresh = a_waiting_job(f"new{hour}", tenant="ada", submitted=hour * HOUR, demand={"gpu": 1})
        order.wait(fresh)
        first = order.at(hour * HOUR).uids()[0]
        assert (first == "old") == (hour * HOUR >= bound)
        order.forget(fresh.uid)
