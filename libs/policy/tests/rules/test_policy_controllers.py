"""The formulas of the DRF and WDRF controllers, right where their code went wrong: a test for each fault."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import pytest

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_contracts.messages.state import Phase, State
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_contracts.policyfile.read import read_document
from fairlead_kube.kinds.demand import pod_demand, workload_demand
from fairlead_kube.kinds.pods import PodSpec
from fairlead_kube.kinds.workloads import Workload
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Placement, Unfit
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_testkit.inputs.builders import a_document, a_job, a_pool, a_queue
from fairlead_testkit.oracles.waiting import a_waiting_job

CAPACITY = {"cpu": 100_000, "gpu": 10_000}
DRF = read_document({"kind": "ConfigMap", "data": {"aging_alpha": "0.1"}})
WDRF = read_document({"AGING_COEFFICIENT": 0.1, "MAX_AGING_TIME": 3600})
NOW = 1_000_000 * SECOND


def pool(document: PolicyDocument) -> PoolFacts:
    return PoolFacts(Rulebook(document, 1).pool_rules("p", CAPACITY))


def job(uid: str, tenant: str, waited: float, job_class: str = "normal", **changed: object) -> WaitingJob:
    plain = a_waiting_job(
        uid, tenant=tenant, job_class=job_class, submitted=NOW - round(waited * SECOND), demand={"gpu": 1000}
    )
    return msgspec.structs.replace(plain, **changed)


def order_of(document: PolicyDocument, *jobs: WaitingJob, use: dict[str, int] | None = None) -> list[str]:
    order = pool(document)
    for tenant, amount in (use or {}).items():
        order.run(f"r-{tenant}", tenant, {"gpu": amount})
    for one in jobs:
        order.wait(one)
    return order.at(NOW).uids()


def test_urgent_goes_first_not_last() -> None:
    """The score was written as a Kueue priority as it was: the lowest score, the most urgent, went last."""
    assert order_of(DRF, job("n", "a", 10), job("u", "b", 10, "urgent")) == ["u", "n"]
    labelled = [LabelledJob(uid=uid, level=0, tie=(tie, uid)) for uid, tie in (("u", 2), ("n", 1))]
    levels = dict(plan_levels(labelled, [], Band(default=0, lowest=1, highest=100)).writes)
    assert levels["u"] > levels.get("n", 0)  # higher goes first in the frontend


def test_what_the_tenant_holds_counts_not_the_jobs_own_request() -> None:
    """The controllers' share was that of one job's request, and always 0: no tenant could be over its part."""
    small, large = job("small", "heavy", 10), job("large", "light", 10, demand={"gpu": 4000})
    assert order_of(DRF, small, large, use={"heavy": 5000}) == ["large", "small"]
    assert order_of(WDRF, small, large, use={"heavy": 5000}) == ["large", "small"]


def test_the_score_is_weight_plus_share_less_alpha_times_age() -> None:
    order = pool(DRF)
    order.run("r", "a", {"gpu": 5000})
    order.wait(job("x", "a", 100))
    [position] = order.at(NOW).positions()[:]
    # Keys count from the epoch instead of from now: 0.1 a second times the submit instant.
    assert position.tag == 0.5
    assert Fraction(position.key).limit_denominator(1000) == 1000 + Fraction(1, 2) + Fraction(1, 10) * (
        1_000_000 - 100
    )


def test_ten_thousand_seconds_beat_the_class_as_their_formula_says_and_no_sooner() -> None:
    """1000 points at 0.1 a second; their code multiplied the age term by 1000 once more."""
    urgent = job("urgent", "a", 0, "urgent")
    assert order_of(DRF, urgent, job("n", "b", 9_999)) == ["urgent", "n"]
    assert order_of(DRF, urgent, job("n", "b", 10_001)) == ["n", "urgent"]


def test_aging_stops_where_the_configuration_says() -> None:
    """`max_aging_hours` was documented and never used."""
    long = read_document({"kind": "ConfigMap", "data": {"max_aging_hours": "1"}})
    older, younger = job("older", "heavy", 50 * 3600), job("younger", "light", 2 * 3600)
    assert order_of(long, older, younger, use={"heavy": 1000}) == ["younger", "older"]
    assert order_of(DRF, older, younger, use={"heavy": 1000}) == ["older", "younger"]


def test_weights_of_the_wdrf_controller_divide_the_share() -> None:
    """Weights were read and never multiplied with anything: three classes were two tiers."""
    jobs = [
        job("normal", "a", 0, "normal"),
        job("approved", "b", 0, "approved"),
        job("urgent", "c", 0, "urgent"),
    ]
    use = {"a": 5000, "b": 5000, "c": 5000}
    assert order_of(WDRF, *jobs, use=use) == ["urgent", "approved", "normal"]
    # 0.5 / 100 against 0.004 / 1: a share that is small enough passes a class, as the formula says.
    assert order_of(WDRF, *jobs, use={**use, "a": 40}) == ["urgent", "normal", "approved"]


def test_resource_weights_weigh() -> None:
    """RESOURCE_WEIGHTS only chose names: a card counted like a core."""
    weighed = read_document({"RESOURCE_WEIGHTS": {"cpu": 1, "gpu": 10}})
    jobs = job("cards", "a", 0), job("cores", "b", 0)
    order = pool(weighed)
    order.run("r1", "a", {"gpu": 1000})
    order.run("r2", "b", {"cpu": 50_000})
    for one in jobs:
        order.wait(one)
    assert order.at(NOW).uids() == ["cores", "cards"]  # 10 * 0.1 against 1 * 0.5
    plain = pool(WDRF)
    plain.run("r1", "a", {"gpu": 1000})
    plain.run("r2", "b", {"cpu": 50_000})
    for one in jobs:
        plain.wait(one)
    assert plain.at(NOW).uids() == ["cards", "cores"]


def test_a_priority_override_counts_in_place_of_the_class_where_it_is_granted() -> None:
    """The override was parsed and never applied."""
    grants = [{"tenant": "b", "priority_override": True}]
    found = read_document({"class_mode": "wdrf", "tenants": [{"name": "a"}, {"name": "b"}], "grants": grants})
    book = Rulebook(found, 1)
    assert book.override_of(a_job(priority_override=5000), "b") == 5000
    assert book.override_of(a_job(priority_override=5000), "a") is None
    assert book.override_of(a_job(priority_override=-1), "b") is None
    order = PoolFacts(book.pool_rules("p", CAPACITY))
    order.run("r1", "a", {"gpu": 5000})
    order.run("r2", "b", {"gpu": 5000})
    order.wait(job("class", "a", 0, "urgent"))
    order.wait(job("number", "b", 0, "normal", override=5000.0))
    assert order.at(NOW).uids() == ["number", "class"]


def test_the_wdrf_controllers_hour_of_aging_is_a_cap_not_first_come_first_served() -> None:
    """360 points of aging against a share of at most 1 made it FIFO after ten seconds; here the rate is a choice."""
    gentle = read_document(
        {"class_mode": "wdrf", "unlisted_weight": 1, "aging": {"entitlement_per_day": 1.44}}
    )
    older, younger = job("older", "heavy", 3600), job("younger", "light", 0)
    assert order_of(WDRF, older, younger, use={"heavy": 5000}) == ["older", "younger"]
    assert order_of(gentle, older, younger, use={"heavy": 5000}) == ["younger", "older"]
    assert Rulebook(gentle, 1).pool_rules("p", CAPACITY).rate == Fraction(6, 100) / HOUR


# --- what both got wrong around their formulas


def test_the_frontend_serves_by_what_is_written() -> None:
    """One wrote the order upside down, the other into annotations that Kueue does not read: nothing came of it."""
    order = pool(WDRF)
    order.run("r", "heavy", {"gpu": 5000})
    for one in (job("a-old", "heavy", 7), job("b-new", "light", 5)):
        order.wait(one)
    wanted = order.at(NOW).uids()
    assert wanted == ["b-new", "a-old"]
    by_submission = {"a-old": 1, "b-new": 2}
    window = [LabelledJob(uid=uid, level=0, tie=(by_submission[uid], uid)) for uid in wanted]
    written = dict(plan_levels(window, [], Band(default=0, lowest=1, highest=100)).writes)
    assert served([], by_submission) == ["a-old", "b-new"]
    assert served(list(written.items()), by_submission) == wanted


def served(levels: Sequence[tuple[str, int]], by_submission: dict[str, int]) -> list[str]:
    """The jobs as Kueue serves them: the highest priority first, then who came first."""
    priority = dict(levels)
    return sorted(by_submission, key=lambda uid: (-priority.get(uid, 0), by_submission[uid]))


def test_a_name_within_another_name_is_another_job() -> None:
    """The Workload was found by a part of its name: `train` took the priority that was meant for `train-2`."""
    order = pool(WDRF)
    order.run("r", "a", {"gpu": 5000})
    for one in (job("train", "a", 7, id="train"), job("train-2", "b", 5, id="train-2")):
        order.wait(one)
    window = [LabelledJob(uid=uid, level=0, tie=(len(uid), uid)) for uid in order.at(NOW).uids()]
    assert [uid for uid, _ in plan_levels(window, [], Band(default=0, lowest=1, highest=9)).writes] == [
        "train-2"
    ]


def test_whatever_waits_is_seen_and_whatever_runs_counts_in_any_namespace() -> None:
    """The controllers asked for phases that do not exist, found nothing, and counted in three namespaces."""
    facts: list[State] = [
        a_pool(),
        a_queue(),
        a_job("waits", scope="anywhere"),
        a_job("runs", scope="elsewhere", phase=Phase.RUNNING, started=NOW),
        a_job("ended", scope="anywhere", phase=Phase.ENDED),
    ]
    document = a_document(tenants=[Tenant(name="anywhere"), Tenant(name="elsewhere")])
    snapshot = snapshot_of({str(at): fact for at, fact in enumerate(facts)}, document, NOW)
    assert [one.id for one in snapshot.jobs] == ["waits"]
    assert [(one.id, one.tenant) for one in snapshot.running] == [("runs", "elsewhere")]


def test_requests_and_limits_are_not_added_and_a_pod_set_multiplies_its_own_pods() -> None:
    """A card that was requested and limited counted twice, and a second pod set's count multiplied the first's."""
    card = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    spec = {"containers": [{"resources": card}]}
    assert pod_demand(msgspec.convert(spec, PodSpec)) == {"nvidia.com/gpu": 1000}
    sets = [{"name": str(count), "count": count, "template": {"spec": spec}} for count in (1, 3)]
    found = {"metadata": {"name": "w", "namespace": "a"}, "spec": {"podSets": sets}}
    assert workload_demand(msgspec.convert(found, Workload)) == {"nvidia.com/gpu": 4000}


def test_a_gang_fits_as_a_whole_or_not_at_all() -> None:
    """`all(job for job in gang)` is true of every gang."""
    gang = Gang(shapes=(PodShape(count=4, name="worker", demand={"gpu": 1000}),))
    assert isinstance(place(gang, [FitNode(name="n", free={"gpu": 3000})]), Unfit)
    assert isinstance(place(gang, [FitNode(name="n", free={"gpu": 4000})]), Placement)


@pytest.mark.parametrize("preset", ["drf", "wdrf"])
def test_at_a_stated_rate_waiting_is_worth_what_it_says_beside_the_share(preset: str) -> None:
    """Ten seconds outweighed a whole pool at 0.1 a second, and after a factor of 1000 ten milliseconds did.

    Half of the pool at 0.06 an hour is worth 8 h 20 min.
    """
    found = read_document(
        {"class_mode": preset, "unlisted_weight": 1, "aging": {"entitlement_per_day": 1.44}}
    )
    for hours, first in ((8.3, "light"), (8.4, "heavy")):
        jobs = job("heavy", "heavy", hours * 3600), job("light", "light", 0)
        assert order_of(found, *jobs, use={"heavy": 5000})[0] == first


def test_the_share_is_the_largest_over_cpu_memory_and_cards() -> None:
    """`hasattr(dict, 'cpu')` is false: none of them was ever read."""
    order = PoolFacts(Rulebook(DRF, 1).pool_rules("p", {"cpu": 10, "memory": 100, "gpu": 8}))
    seen = []
    for resource, amount in (("cpu", 1), ("memory", 30), ("gpu", 4)):
        order.run(f"r-{resource}", "a", {resource: amount})
        order.wait(job("x", "a", 0, demand={}))
        [placed] = order.at(NOW).positions()[:]
        seen.append((placed.dominant, placed.tag))
    assert seen == [("cpu", 0.1), ("memory", 0.3), ("gpu", 0.5)]
