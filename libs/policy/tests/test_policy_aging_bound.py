"""What may pass a waiting job, and what may not: the bound that users are told."""

import random
from fractions import Fraction

from fairlead_contracts.decisions import Place
from fairlead_policy import PoolOrder, PoolRules, WaitingJob

RATE = Fraction(1, 8)


def rules(cap: int | None = None) -> PoolRules:
    return PoolRules(
        capacity={"gpu": 12, "cpu": 20},
        classes=("urgent", "normal"),
        rate=RATE,
        cap=cap,
        weights={"t0": Fraction(1), "t1": Fraction(2), "t2": Fraction(3)},
    )


def arrival(
    number: int, tenant: str, submitted: int, gpus: int, cpus: int, *, urgency: str = "normal"
) -> WaitingJob:
    return WaitingJob(
        uid=f"u{number:03d}",
        scope="s",
        id="j",
        tenant=tenant,
        urgency=urgency,
        submitted=submitted,
        demand={"gpu": gpus, "cpu": cpus},
        queue=("c", "q"),
    )


def tag(order: PoolOrder, place: Place) -> Fraction:
    if not place.use:
        return Fraction(0)
    return Fraction(place.use, order.rules.capacity[place.dominant]) / order.rules.weight_of(place.tenant)


def random_pool(rng: random.Random, cap: int | None = None) -> PoolOrder:
    order = PoolOrder(rules(cap))
    for number in range(rng.randrange(2, 12)):
        order.run(f"r{number}", f"t{rng.randrange(3)}", {"gpu": rng.randrange(3), "cpu": rng.randrange(4)})
        order.wait(
            arrival(number, f"t{rng.randrange(3)}", rng.randrange(20), rng.randrange(4), rng.randrange(5))
        )
    return order


def test_a_later_job_stands_before_an_older_one_only_within_the_bound() -> None:
    rng = random.Random(1)
    seen = 0
    for _ in range(300):
        order = random_pool(rng)
        places = order.order(30)
        for rank, k in enumerate(places):
            for j in places[rank + 1 :]:
                if k.submitted > j.submitted:
                    seen += 1
                    assert k.submitted - j.submitted < (tag(order, j) - tag(order, k)) / RATE
    assert seen > 100


def test_with_a_cap_the_bound_holds_while_the_older_job_is_below_it() -> None:
    rng = random.Random(2)
    for _ in range(300):
        cap = rng.randrange(1, 20)
        order = random_pool(rng, cap)
        now = rng.randrange(40)
        places = order.order(now)
        for rank, k in enumerate(places):
            for j in places[rank + 1 :]:
                if k.submitted > j.submitted:
                    lead = tag(order, j) - tag(order, k)
                    if now - j.submitted <= cap:
                        assert k.submitted - j.submitted < lead / RATE
                    if k.submitted == now and now - j.submitted > cap:
                        assert lead > RATE * cap


def test_beyond_the_cap_the_plain_bound_fails() -> None:
    # Rate 1/4, cap 2, tags 1/4 and 0, submits 0 and 1, now 3: the younger one goes first although 1 >= 1/4 / 1/4.
    order = PoolOrder(
        PoolRules(
            capacity={"gpu": 4}, classes=("normal",), rate=Fraction(1, 4), cap=2, unlisted_weight=Fraction(1)
        )
    )
    order.run("r", "j", {"gpu": 1})
    order.wait(arrival(0, "j", 0, 1, 0))
    order.wait(arrival(1, "k", 1, 1, 0))
    assert [place.tenant for place in order.order(2)] == ["j", "k"]
    assert [place.tenant for place in order.order(4)] == ["k", "j"]


def test_a_tag_never_rises_while_jobs_start_in_order_and_arrive_in_submit_order() -> None:
    rng = random.Random(3)
    for _ in range(60):
        order = PoolOrder(rules())
        tags: dict[str, Fraction] = {}
        running: list[str] = []
        for now in range(40):
            if rng.random() < 0.6:
                order.wait(arrival(now, f"t{rng.randrange(3)}", now, rng.randrange(3), rng.randrange(4)))
            places = order.order(now)
            if places and rng.random() < 0.5:
                order.run(places[0].uid, places[0].tenant, places[0].demand)
                running.append(places[0].uid)
            if running and rng.random() < 0.3:
                order.forget(running.pop(rng.randrange(len(running))))
            after = {place.uid: tag(order, place) for place in order.order(now)}
            assert all(value <= tags.get(uid, value) for uid, value in after.items())
            tags = after


def test_a_higher_class_arrival_raises_the_tags_behind_it_by_its_demand_and_no_other_tenants() -> None:
    order = PoolOrder(rules())
    order.wait(arrival(0, "t0", 0, 1, 0))
    order.wait(arrival(1, "t1", 0, 1, 0))
    before = {place.uid: place for place in order.order(5)}
    order.wait(arrival(2, "t0", 5, 3, 0, urgency="urgent"))
    after = {place.uid: place for place in order.order(5)}
    assert after["u000"].use == before["u000"].use + 3
    assert after["u001"] == before["u001"]
