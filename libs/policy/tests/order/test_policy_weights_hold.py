"""Weights hold under backlog: what tenants get of a contended pool by the default policy, and what gaming it is worth.

Figures come from the formula itself, exact, by a simulator that imports nothing of the core; the core is held to
it start for start, here on small pools and in the long form on those of the figures.
"""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from fairlead_contracts.base.instants import DAY, HOUR, Micros
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.inputs.builders import a_weighted_policy
from fairlead_testkit.oracles.contention import (
    ENDLESS,
    Arrival,
    ByFormula,
    Contention,
    ContentionOrder,
    Course,
    entitlements_of,
)
from fairlead_testkit.oracles.contention_by_core import ByCore, CoreBesideFormula, demand

RATE = Fraction(1, 10) / DAY
"""Default rate of aging, as it has to be: a day of waiting is worth a tenth of a part."""
WEIGHTS = {"ada": 3, "bob": 2, "cyd": 1}
EQUAL = {"ada": 1, "bob": 1, "cyd": 1}
SLOTS = 60
LENGTHS = tuple(HOUR * percent // 100 for percent in (60, 110, 140, 80, 125, 95, 90))
"""An hour in the mean, uneven; seven, so that no pattern of turns falls in with them."""
BACKLOGS = {
    "an hour": Fraction(1, 24),
    "six hours": Fraction(1, 4),
    "a day": Fraction(1),
    "three days": Fraction(3),
}
"""Work that waits, over all tenants, in days of the whole pool."""


def rules_of(policy: PolicyDocument, slots: int) -> PoolRules:
    return Rulebook(policy, 1).pool_rules("gpu", demand(slots))


def by_formula(weights: Mapping[str, int], slots: int = SLOTS) -> ByFormula:
    return ByFormula(slots, entitlements_of(weights), RATE)


def compared(weights: Mapping[str, int], slots: int = SLOTS) -> CoreBesideFormula:
    return CoreBesideFormula(ByCore(rules_of(a_weighted_policy(weights), slots)), by_formula(weights, slots))


def jobs_in(days: Fraction, tenants: int, slots: int = SLOTS) -> int:
    """Jobs of one slot and an hour of each of some tenants, that the whole pool needs so long for."""
    return int(days * 24 * slots / tenants)


def settled(backlog: Fraction) -> Micros:
    """The instant at which a constant backlog has been replaced long enough for shares to stand still."""
    return DAY + int(4 * backlog * DAY)


def under_backlog(
    order: ContentionOrder, weights: Mapping[str, int], backlog: Fraction, slots: int = SLOTS
) -> Course:
    """Equal backlogs that never shrink, until shares stand still and two days on."""
    pool = Contention(slots, order, lengths=LENGTHS)
    for tenant in weights:
        pool.keep(tenant, jobs_in(backlog, len(weights), slots))
    return pool.play(settled(backlog) + 2 * DAY)


def worst_error(course: Course, weights: Mapping[str, int], begin: Micros) -> Fraction:
    """The largest distance of a share from its entitlement, as a part of that."""
    shares = course.shares(weights, begin, begin + 2 * DAY)
    return max(abs(shares[tenant] / part - 1) for tenant, part in entitlements_of(weights).items())


@pytest.mark.parametrize(
    ("backlog", "limit"),
    [
        ("an hour", Fraction(1, 100)),
        ("six hours", Fraction(2, 100)),
        ("a day", Fraction(10, 100)),
        ("three days", Fraction(25, 100)),
    ],
)
def test_shares_stay_near_the_weights_under_equal_backlogs(backlog: str, limit: Fraction) -> None:
    course = under_backlog(by_formula(WEIGHTS), WEIGHTS, BACKLOGS[backlog])
    assert worst_error(course, WEIGHTS, settled(BACKLOGS[backlog])) <= limit


@pytest.mark.deep
@pytest.mark.parametrize("backlog", BACKLOGS)
def test_the_core_gives_the_same_course_on_the_pool_of_the_figures(backlog: str) -> None:
    under_backlog(compared(WEIGHTS), WEIGHTS, BACKLOGS[backlog])


@pytest.mark.parametrize("weights", [WEIGHTS, {"ada": 30, "bob": 20, "cyd": 10}, EQUAL])
def test_the_core_starts_what_the_formula_says_under_backlog(weights: Mapping[str, int]) -> None:
    course = under_backlog(compared(weights, 6), weights, Fraction(1), slots=6)
    assert len(course.starts) > 900


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "backfill"])
def test_the_core_starts_what_the_formula_says_of_jobs_of_mixed_sizes_and_arrivals(strict: bool) -> None:
    pool = Contention(24, compared(WEIGHTS, 24), lengths=LENGTHS, strict=strict)
    pool.keep("ada", 12, size=3)
    pool.keep("bob", 6, size=5)
    floods = [Arrival(at=n * 5 * HOUR, tenant="cyd", jobs=2 + n % 3, size=1 + n % 8) for n in range(12)]
    course = pool.play(3 * DAY, floods)
    assert {job.tenant for _, job in course.starts} == set(WEIGHTS)


@pytest.mark.parametrize(
    ("backlog", "weights", "light"),
    [
        ("an hour", EQUAL, "cyd"),
        ("six hours", WEIGHTS, "cyd"),
        ("a day", EQUAL, "cyd"),
        ("a day", WEIGHTS, "ada"),
        ("three days", EQUAL, "cyd"),
        pytest.param("three days", WEIGHTS, "cyd", marks=pytest.mark.deep),
    ],
)
def test_who_runs_nothing_starts_when_the_next_slot_comes_free(
    backlog: str, weights: Mapping[str, int], light: str
) -> None:
    """The one job of a light tenant is the next that starts, however long the others' backlogs before it."""
    others = [tenant for tenant in weights if tenant != light]
    pool = Contention(SLOTS, by_formula(weights), lengths=LENGTHS)
    for tenant in others:
        pool.keep(tenant, jobs_in(BACKLOGS[backlog], len(others)))
    begin = settled(BACKLOGS[backlog])
    pool.play(begin)
    before = len(pool.course.starts)
    pool.play(begin + 2 * HOUR, [Arrival(at=begin + HOUR, tenant=light)])
    after = [(at, job.tenant) for at, job in pool.course.starts[before:] if at >= begin + HOUR]
    assert after[0][1] == light
    assert after[0][0] <= min(at for at, held in pool.course.held if at > begin + HOUR)


def full_day(jobs: int, slots: int) -> int:
    """A number of jobs that last for days."""
    return jobs * 24 * slots


@pytest.mark.parametrize("slots", [80, 120])
def test_a_queue_of_placeholders_of_three_days_takes_at_most_58_percent_from_an_equal_tenant(
    slots: int,
) -> None:
    """Three days are worth 0.3 of a part of lead: 57.5 % against 42.5 %, to within one job."""
    two = {"early": 1, "late": 1}
    pool = Contention(slots, by_formula(two, slots), lengths=LENGTHS)
    pool.play(3 * DAY, [Arrival(tenant="early", jobs=full_day(5, slots))])
    course = pool.play(5 * DAY, [Arrival(at=3 * DAY, tenant="late", jobs=full_day(1, slots))])
    share = course.share("early", 3 * DAY + 4 * HOUR, 5 * DAY)
    assert Fraction(57, 100) - Fraction(1, slots) <= share <= Fraction(58, 100)


def test_a_queue_of_placeholders_takes_no_more_from_one_that_submits_only_what_it_runs() -> None:
    """However fresh the other's jobs: a head that waits three days longer is all that the placeholders are."""
    two = {"early": 1, "late": 1}
    pool = Contention(120, by_formula(two, 120), lengths=LENGTHS)
    pool.keep("early", 24 * 3 * 69)
    pool.keep("late", 3)
    course = pool.play(9 * DAY)
    assert max(course.waits("early", 7 * DAY)) <= Fraction(31, 10) * DAY
    assert course.share("early", 7 * DAY, 9 * DAY) <= Fraction(58, 100)


def test_a_tenant_far_above_its_part_with_endless_runs_starts_within_the_bound() -> None:
    """Ten days for each part of lead over whoever is served before it, and nearly all of them: the bound is met."""
    slots, held = 24, 18
    pool = Contention(slots, by_formula(EQUAL, slots), lengths=LENGTHS)
    pool.play(0, [Arrival(tenant="ada", jobs=held, lasts=ENDLESS)])
    pool.keep("bob", 24)
    pool.keep("cyd", 24)
    pool.play(30 * DAY, [Arrival(at=DAY, tenant="ada")])
    starts = [job for _, job in pool.course.starts]
    [old] = [number for number, job in enumerate(starts) if job.tenant == "ada" and job.submitted == DAY]
    latest = max(job.submitted for job in starts[:old]) - DAY
    # The others hold what is left, three each, and one less when one of theirs starts.
    bound = Fraction(held - 2, slots // 3) * 10 * DAY
    assert bound - DAY < latest < bound, "nobody submitted later passes it, and hardly anybody less"
    assert not any(job.tenant == "ada" for job in starts[held:old])


NAMES = 10


@pytest.mark.parametrize("names", [1, 5, 20])
def test_who_splits_into_names_gets_a_part_for_each_and_never_more(names: int) -> None:
    """Names of weight 1 that `unlisted_weight` lets in take n of n + 5 beside tenants of weight 3 and 2."""
    slots, weights = SLOTS, {"ada": Fraction(3), "bob": Fraction(2)}
    mallory = [f"mallory-{number}" for number in range(names)]
    parts = entitlements_of(weights | dict.fromkeys(mallory, Fraction(1)))
    # The unit is a policy constant, the same however many names there are.
    scale = (5 + names) / Fraction(5 + NAMES)
    pool = Contention(slots, ByFormula(slots, {name: part * scale for name, part in parts.items()}, RATE))
    for tenant in parts:
        pool.keep(tenant, 6 * slots // len(parts))
    course = pool.play(3 * DAY)
    taken = sum(course.shares(mallory, DAY, 3 * DAY).values())
    assert abs(taken - Fraction(names, names + 5)) <= Fraction(names, slots)


@pytest.mark.parametrize("size", [4, 7, 16, 30])
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "backfill"])
def test_who_bundles_jobs_into_gangs_is_never_more_than_one_gang_above_its_part(
    size: int, strict: bool
) -> None:
    """A gang starts only while its tenant stands no higher than the others, so it is all that is ever gained."""
    weights = {"ada": 1, "bob": 1, "cyd": 1, "dan": 1}
    pool = Contention(SLOTS, by_formula(weights), lengths=LENGTHS, strict=strict)
    for tenant in weights:
        pool.keep(tenant, 6 if tenant == "ada" else 2 * SLOTS, size if tenant == "ada" else 1)
    course = pool.play(3 * DAY)
    most = max(held.get("ada", 0) for at, held in course.held if at > DAY)
    assert most < SLOTS // 4 + size + 1
    assert course.share("ada", DAY, 3 * DAY) <= Fraction(most, SLOTS)


@pytest.mark.parametrize(("strict", "starts"), [(True, 1), (False, 0)], ids=["strict", "backfill"])
def test_aging_does_not_help_a_gang_where_small_jobs_slip_past_it(strict: bool, starts: int) -> None:
    """A gang at the head from its first minute starts in a strict queue; with backfill never so much comes free."""
    pool = Contention(SLOTS, by_formula(EQUAL), lengths=LENGTHS, strict=strict)
    for tenant in ("bob", "cyd"):
        pool.keep(tenant, SLOTS // 2)
    pool.play(HOUR)
    course = pool.play(14 * DAY, [Arrival(at=HOUR, tenant="ada", size=SLOTS // 6)])
    assert sum(job.tenant == "ada" for _, job in course.starts) == starts
