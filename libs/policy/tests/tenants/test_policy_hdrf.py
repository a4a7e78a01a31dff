"""The examples that tell H-DRF from plain DRF in a tree; what holds of it always stands with the scenes of the order."""

from collections.abc import Mapping
from fractions import Fraction

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.saturation import used_up
from fairlead_testkit.oracles.waiting import a_waiting_job


def job(uid: str, tenant: str, submitted: int = 0, **demand: int) -> WaitingJob:
    return a_waiting_job(uid, tenant=tenant, submitted=submitted, demand=demand)


def rules(parents: Mapping[str, str], **changed: object) -> PoolRules:
    plain: dict[str, object] = {
        "capacity": {"cpu": 10, "gpu": 10},
        "classes": ("normal",),
        "entitlements": {name: Fraction(1) for name in ("A", "B", "X", "Y", "P", "org", *"cgxyb", *(f"t{n}" for n in range(6)))},
        "parents": parents,
        "rescaled": True,
    }  # fmt: skip
    return PoolRules(**{**plain, **changed})  # type: ignore[arg-type] # fields by name


def test_what_another_organisation_takes_couples_through_the_saturated_resources() -> None:
    """A = {X = {x: 2 CPU, g: 8 of 10 GPU and nothing waiting}, Y: 3 CPU}: B's 2 GPUs turn x and y round."""
    parents = {"x": "X", "g": "X", "X": "A", "Y": "A"}
    expected = {0: ["y", "x"], 2: ["x", "y"]}
    for taken, names in expected.items():
        free = rules(parents)
        saturated = used_up(free, [{"cpu": 5, "gpu": 8 + taken}], [{"cpu": 1}, {"cpu": 1}])
        assert saturated == ({"gpu"} if taken else set())
        order = PoolFacts(rules(parents, saturated=saturated))
        order.run("r1", "x", {"cpu": 2})
        order.run("r2", "g", {"gpu": 8})
        order.run("r3", "Y", {"cpu": 3})
        order.run("r4", "B", {"gpu": taken})
        order.wait(job("x", "x", cpu=1))
        order.wait(job("y", "Y", cpu=1))
        assert order.at(0).uids() == names


def starving(**changed: object) -> list[str]:
    """org = {c: 8 CPU jobs wait, g: all GPUs and 3 GPU jobs wait} against P: 8 CPU jobs wait."""
    order = PoolFacts(rules({"c": "org", "g": "org"}, **changed))
    order.run("held", "g", {"gpu": 10})
    for number in range(8):
        order.wait(job(f"P{number}", "P", cpu=1))
        order.wait(job(f"c{number}", "c", cpu=1))
    for number in range(3):
        order.wait(job(f"g{number}", "g", gpu=1))
    return [uid[0] for uid in order.at(0).uids()]


def test_a_complementary_sibling_does_not_starve() -> None:
    assert starving(rescaled=False) == [*"P" * 8, *"c" * 8, *"ggg"]
    assert starving(saturated=frozenset({"gpu"})) == [*"Pc" * 8, *"ggg"]
    # Until the GPUs are known to be used up, the one sibling that uses something makes the share of all.
    assert starving()[:8] == [*"P" * 8]
    assert starving(lowest_of_live=True)[0] == "P"


def test_empty_teams_go_first_only_by_the_minimum_of_all_that_wait() -> None:
    teams = {f"t{number}": "org" for number in range(6)}
    firsts = {}
    for live in (True, False):
        order = PoolFacts(rules(teams, lowest_of_live=live))
        for number in range(6):
            for turn in range(2):
                order.wait(job(f"a-{turn}-{number}", f"t{number}", cpu=1))
        for turn in range(6):
            order.wait(job(f"z-{turn}", "P", cpu=1))
        firsts[live] = order.at(0).uids().index("z-0")
    assert firsts == {True: 6, False: 1}


def test_a_blocked_job_stands_behind_the_others_of_its_class() -> None:
    order = PoolFacts(rules({}, saturated=frozenset({"gpu"})))
    order.wait(job("g", "g", 0, gpu=1))
    order.wait(job("c", "g", 5, cpu=1))
    order.wait(job("p", "P", 9, cpu=1))
    positions = order.at(9).positions()[:]
    assert [position.uid for position in positions] == ["c", "p", "g"]
    assert [position.blocked for position in positions] == [False, False, True]
