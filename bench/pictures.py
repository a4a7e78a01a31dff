"""Draws the pictures of docs/policy.md: `python bench/pictures.py` writes docs/pictures/*.svg, the same bytes each time.

Each comes from a simulated pool. Who starts says the core that orders real clusters, where backlogs are short; in the
pictures of days it is the definition that the tests hold the core to, start for start, as that is faster.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from pictures_plots import Axis, Plot, PlotLine, Point, svg

from fairlead_contracts.base.instants import DAY, HOUR, MINUTE, Micros, to_seconds
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.policyfile.document import Aging
from fairlead_policy.explain.counterfactuals import passes_at
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules, exactly
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_testkit.inputs.builders import a_weighted_policy
from fairlead_testkit.oracles.contention import Arrival, ByFormula, Contention, Course, entitlements_of
from fairlead_testkit.oracles.contention_by_core import ByCore, demand
from fairlead_testkit.oracles.waiting import a_waiting_job

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
DEFAULT = Aging()
CARDS = 24
SLOTS = 60
"""Slots of the pictures of days: an hour's job on each."""
LENGTHS = tuple(minutes * MINUTE for minutes in (18, 27, 21, 33, 24, 30, 15, 36))
"""Uneven, so that cards come free one by one, as in life."""
HOURS = tuple(HOUR * percent // 100 for percent in (60, 110, 140, 80, 125, 95, 90))
"""An hour in the mean."""
TENANTS = {"ada": 3, "bob": 2, "cyd": 1}
KINDS = {"ada": "a", "bob": "b", "cyd": "c"}
PLENTY = 1000
"""Jobs: more than are started."""
SHARES = Axis("share of the pool", [(part / 100, f"{part} %") for part in range(0, 101, 25)])
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
"""Entitlements a day; the first stands for none at all on the logarithmic axis."""
BACKLOGS = ((1 / 24, "1 h"), (0.25, "6 h"), (1, "1 d"), (2, "2 d"), (4, "4 d"))


def hours(count: int, step: int = 1) -> Axis:
    """Time from the beginning."""
    return Axis("hours", [(hour, str(hour)) for hour in range(0, count + 1, step)])


def rules(weights: Mapping[str, int], aging: Aging = DEFAULT) -> PoolRules:
    """Rules of one pool of cards."""
    return Rulebook(a_weighted_policy(weights, aging=aging), 1).pool_rules("gpu", demand(CARDS))


def shares_over(course: Course, begin: int, length: int, weights: Mapping[str, int]) -> list[PlotLine]:
    """Lines of the tenants' parts of the pool over hours from a beginning, with what each is entitled to at the end."""
    parts = entitlements_of(weights)
    steps = range(5, 60 * length + 1, 5)
    return [
        PlotLine(
            f"{tenant}, weight {weight}",
            KINDS[tenant],
            [
                (step / 60, float(course.share(tenant, start, start + 5 * MINUTE)))
                for step in steps
                for start in [begin * HOUR + (step - 5) * MINUTE]
            ],
            part=float(parts[tenant]),
        )
        for tenant, weight in weights.items()
    ]


def shares() -> list[Plot]:
    """Plots of shares: three tenants come to an empty pool one by one; then one of two equal ones comes three days late."""
    floods = [
        Arrival(at=turn * HOUR, tenant=name, jobs=PLENTY) for turn, name in enumerate(("cyd", "ada", "bob"))
    ]
    marks = [(0.0, "cyd comes"), (1.0, "ada comes"), (2.0, "bob comes")]
    course = Contention(CARDS, ByCore(rules(TENANTS)), lengths=LENGTHS).play(6 * HOUR, floods)
    title = f"Three tenants on {CARDS} cards, default aging; dashed: entitlement by weight"
    plots = [Plot(title, hours(6), SHARES, shares_over(course, 0, 6, TENANTS), marks)]
    two = {"ada": 1, "bob": 1}
    order = ByFormula(SLOTS, entitlements_of(two), exactly(DEFAULT.entitlement_per_day) / DAY)
    late = [Arrival(tenant="bob", jobs=7 * 24 * SLOTS), Arrival(at=3 * DAY, tenant="ada", jobs=24 * SLOTS)]
    course = Contention(SLOTS, order, lengths=HOURS).play(3 * DAY + 5 * HOUR, late)
    title = "Two of weight 1: bob's queue is three days older than ada's"
    lines = shares_over(course, 71, 6, two)
    return [*plots, Plot(title, hours(6), SHARES, lines, [(1.0, "ada comes, 72 h after bob")])]


def weights() -> list[Plot]:
    """A weight is changed while all have jobs waiting."""
    before, after = dict.fromkeys(TENANTS, 1), {"ada": 4, "bob": 1, "cyd": 1}
    order = ByCore(rules(before))
    pool = Contention(CARDS, order, lengths=LENGTHS)
    pool.play(2 * HOUR - 1, [Arrival(tenant=tenant, jobs=PLENTY) for tenant in TENANTS])
    order.core.set_rules(rules(after))
    title = "All weigh 1, then ada weighs 4; dashed: entitlement after the change"
    lines = shares_over(pool.play(6 * HOUR), 0, 6, after)
    return [Plot(title, hours(6), SHARES, lines, [(2.0, "ada: 1 to 4")])]


def under_backlog(days: float, rate: Fraction) -> tuple[Course, Micros]:
    """Equal backlogs that never shrink, of so many days' work of the pool together, and from when on shares stand still."""
    backlog = Fraction(days).limit_denominator(24)
    settled = DAY + int(4 * backlog * DAY)
    pool = Contention(SLOTS, ByFormula(SLOTS, entitlements_of(TENANTS), rate / DAY), lengths=HOURS)
    for tenant in TENANTS:
        pool.keep(tenant, int(backlog * 24 * SLOTS / len(TENANTS)))
    return pool.play(settled + 2 * DAY), settled


def aging() -> list[Plot]:
    """Waits and shares by the rate of aging, under a backlog of one day."""
    courses = {
        rate: under_backlog(1, Fraction(0) if rate == RATES[0] else Fraction(str(rate))) for rate in RATES
    }
    ticks = [(rate, "0" if rate == RATES[0] else f"{rate:g}") for rate in RATES]
    axis = Axis("entitlement_per_day (default 0.1)", ticks, logarithmic=True)
    waits = _lines(lambda course, begin, tenant: max(course.waits(tenant, begin)) / DAY, courses)
    parts = _lines(_share, courses, entitled=True)
    scale = Axis("days", [(half / 2, f"{half / 2:g}") for half in range(6)])
    mark = [(DEFAULT.entitlement_per_day, "default")]
    return [
        Plot(
            "The longest wait, with a day's work of the pool waiting, a third of it each tenant's",
            axis,
            scale,
            waits,
            mark,
        ),
        Plot("Mean share of the pool; dashed: entitlement", axis, SHARES, parts, mark),
    ]


def backlog() -> list[Plot]:
    """Shares by how much waits, at the default rate."""
    rate = exactly(DEFAULT.entitlement_per_day)
    courses = {days: under_backlog(days, rate) for days, _ in BACKLOGS}
    axis = Axis("work of the whole pool that waits, a third of it each tenant's", BACKLOGS, logarithmic=True)
    lines = _lines(_share, courses, entitled=True)
    title = "Mean share of the pool by backlog, default aging; dashed: entitlement"
    return [Plot(title, axis, SHARES, lines)]


def _share(course: Course, begin: Micros, tenant: str) -> float:
    return float(course.share(tenant, begin, begin + 2 * DAY))


def _lines(
    figure: Callable[[Course, Micros, str], float],
    courses: Mapping[float, tuple[Course, Micros]],
    *,
    entitled: bool = False,
) -> list[PlotLine]:
    parts = entitlements_of(TENANTS)
    return [
        PlotLine(
            f"{tenant}, weight {weight}",
            KINDS[tenant],
            [(x, figure(course, begin, tenant)) for x, (course, begin) in courses.items()],
            part=float(parts[tenant]) if entitled else None,
        )
        for tenant, weight in TENANTS.items()
    ]


def cap() -> list[Plot]:
    """Plots of the cap: two jobs age alike until one is beyond it; then the other passes it."""
    scored_by = rules({"ada": 1, "cyd": 1}, Aging(cap_days=7))
    order = PoolFacts(scored_by)
    order.run("r", "cyd", demand(CARDS // 4))
    for uid, tenant, submitted in (("old", "cyd", 0), ("young", "ada", 4 * DAY)):
        order.wait(a_waiting_job(uid, tenant=tenant, submitted=submitted, demand=demand(1)))
    old, young = (_position(order, uid) for uid in ("old", "young"))
    flip = passes_at(young, old, scored_by, 0) or 0

    def worth(position: Position, day: float) -> float:
        waited = day - to_seconds(position.submitted) / to_seconds(DAY)
        return DEFAULT.entitlement_per_day * min(max(0.0, waited), 7.0) - position.tag

    def line(name: str, kind: str, position: Position, begin: int) -> PlotLine:
        points: Sequence[Point] = [(day / 4, worth(position, day / 4)) for day in range(4 * begin, 57)]
        return PlotLine(name, kind, points)

    lines = [line("old: tag 0.5", "b", old, 0), line("young: tag 0", "a", young, 4)]
    days = Axis("days", [(day, str(day)) for day in range(0, 15, 2)])
    heights = Axis("worth of waiting - tag", [(tick / 4, f"{tick / 4:g}") for tick in range(-2, 4)])
    marks = [
        (7.0, "the old one reaches the cap"),
        (flip / DAY, f"day {flip / DAY:.1f}: the young one passes"),
    ]
    title = "entitlement_per_day 0.1, cap_days 7: the higher line goes first"
    return [Plot(title, days, heights, lines, marks)]


def _position(order: PoolFacts, uid: str, now: Micros = 0) -> Position:
    position = order.position(uid, now)
    if position is None:
        raise LookupError(uid)
    return position


DRAWN: Mapping[str, Callable[[], list[Plot]]] = {
    "shares": shares,
    "weights": weights,
    "aging": aging,
    "backlog": backlog,
    "cap": cap,
}


def main() -> None:
    """Draw them all."""
    reader = argparse.ArgumentParser(description="Draws the pictures of docs/policy.md.")
    reader.add_argument("--into", type=Path, default=PICTURES, help="a folder (default: docs/pictures)")
    into: Path = reader.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    for name, plots in DRAWN.items():
        (into / f"{name}.svg").write_text(svg(plots()), encoding="utf-8")


if __name__ == "__main__":
    main()
